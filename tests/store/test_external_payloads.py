"""Deliveries of external workers read the payload of their job once, and not at all with a wrong lease. They look for
their pages once, and never wait for each other."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from silkline.api.external import CLAIM_SIZE, ExternalWorkers, Lease
from silkline.api.problems import Problem
from silkline.config import Settings
from silkline.errors import LeaseLost, NotFound, SpecError
from silkline.model.database import Database
from silkline.model.job import AttemptEnd, End
from silkline.store import jobs
from tests.store.given import queued
from tests.unit.test_chosen_keys import PAGE, TWIN

URLS = [f"https://h.example/{'x' * 100}{number}" for number in range(500)]


class Reads:
    """A database that counts the long payloads that its statements return."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.long_payloads = 0
        self.statements: list[str] = []
        self.before_reading: Callable[[], object] = lambda: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def rows(self, name: str, **parameters: Any) -> list[dict[str, Any]]:
        self.statements.append(name)
        if name == "urls.by_keys":
            self.before_reading()
        found = self._database.rows(name, **parameters)
        self.long_payloads += sum(len(str(row.get("payload", ""))) > 32_768 for row in found)
        return found


def page(url: str) -> dict[str, Any]:
    return {
        "url": url, "final_url": None, "success": True, "http_status": 200, "error": None, "data": {}, "metadata": {},
    }  # fmt: skip


def claimed(database: Database) -> tuple[ExternalWorkers, Reads, str, Lease]:
    job = queued(database, "extension", payload={"urls": URLS})
    reads: Any = Reads(database)
    workers = ExternalWorkers(reads, Settings())
    ((lease, _),) = workers.claim(["extension"], 1, "w")
    reads.long_payloads = 0
    return workers, reads, job.id, lease


def test_only_the_first_delivery_reads_the_payload(database: Database) -> None:
    workers, reads, id, lease = claimed(database)
    for url in URLS[:3]:
        delivered = workers.deliver(id, lease, [page(url)])
        assert (delivered.recorded, reads.long_payloads) == (1, 1)
    assert delivered.counts.discovered == len(URLS)


def test_a_delivery_of_many_pages_looks_for_them_once(database: Database) -> None:
    """Every look is a scan of the ledger."""
    workers, reads, id, lease = claimed(database)
    workers.deliver(id, lease, [page(URLS[0])])
    reads.statements.clear()
    assert workers.deliver(id, lease, [page(URLS[1])]).recorded == 1
    for_one = list(reads.statements)
    reads.statements.clear()
    delivered = workers.deliver(id, lease, [page(url) for url in URLS[1:400]])
    assert (delivered.recorded, delivered.known) == (398, 1)
    assert reads.statements == for_one


def test_two_urls_with_one_key_are_two_pages(database: Database) -> None:
    both = queued(database, "extension", payload={"urls": [PAGE, TWIN]})
    only_one = queued(database, "extension", payload={"urls": [PAGE]})
    workers = ExternalWorkers(database, Settings())
    leases = {job.id: lease for lease, job in workers.claim(["extension"], 2, "w")}
    assert workers.deliver(both.id, leases[both.id], [page(PAGE), page(TWIN)]).recorded == 2
    with pytest.raises(SpecError, match="not one of the URLs"):
        workers.deliver(only_one.id, leases[only_one.id], [page(TWIN)])


def test_a_second_delivery_is_refused_while_the_first_is_stored(database: Database) -> None:
    """It does not wait: it has a turn that others need. Deliveries for other jobs are stored."""
    workers, reads, id, lease = claimed(database)
    queued(database, "extension", payload={"urls": URLS})
    ((other_lease, other),) = workers.claim(["extension"], 1, "w")
    seen: list[object] = []

    def meanwhile() -> None:
        reads.before_reading = lambda: None
        for write in (_deliver, _finish):
            with pytest.raises(Problem) as refused:
                write(workers, id, lease)
            seen.append(refused.value.kind)
        seen.append(workers.deliver(other.id, other_lease, [page(URLS[0])]).recorded)

    reads.before_reading = meanwhile
    assert workers.deliver(id, lease, [page(URLS[0])]).recorded == 1
    assert seen == ["conflict", "conflict", 1]
    _finish(workers, id, lease)


def test_a_claim_takes_few_large_jobs(database: Database) -> None:
    large = {"urls": ["https://h.example/" + "x" * (CLAIM_SIZE // 2)]}
    for _ in range(4):
        queued(database, "extension", payload=large)
    queued(database, "extension", payload={"url": "https://h.example/"})
    workers = ExternalWorkers(database, Settings())
    assert [len(workers.claim(["extension"], 100, "w")) for _ in range(4)] == [2, 2, 1, 0]
    for _ in range(3):
        queued(database, "extension", metadata={"note": "x" * (CLAIM_SIZE // 2)})
    assert [len(workers.claim(["extension"], 100, "w")) for _ in range(3)] == [2, 1, 0]


def _deliver(workers: ExternalWorkers, id: str, lease: Lease) -> None:
    workers.deliver(id, lease, [page(URLS[0])])


def _finish(workers: ExternalWorkers, id: str, lease: Lease) -> None:
    workers.finish(id, lease, AttemptEnd(End.COMPLETED))


@pytest.mark.parametrize("write", [_deliver, _finish, lambda workers, id, lease: workers.renew(id, lease)])
def test_a_wrong_lease_reads_no_payload(
    database: Database, write: Callable[[ExternalWorkers, str, Lease], None]
) -> None:
    workers, reads, id, lease = claimed(database)
    for wrong in (replace(lease, secret="0" * 32), replace(lease, number=lease.number + 1)):
        with pytest.raises(LeaseLost):
            write(workers, id, wrong)
        with pytest.raises(LeaseLost):
            jobs.owned(reads, id, wrong.number, wrong.worker_id)  # type: ignore[arg-type]
    with pytest.raises(NotFound):
        write(workers, "x", lease)
    assert reads.long_payloads == 0

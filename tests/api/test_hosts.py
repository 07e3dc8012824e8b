"""Why is it slow? The hosts of a job, those it waits for first, and what may be read of a ledger that is long."""

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from silkline.api import ledger_counts
from silkline.api.ledger_counts import LedgerCounts
from silkline.errors import StoreError
from silkline.model import host_wait as reasons
from silkline.model.database import Database
from silkline.model.host_wait import Wait
from silkline.model.job import Job, NewJob, Verb
from silkline.model.ledger import Checkpoint, NewUrl
from silkline.store import jobs, urls
from silkline.store.opening import open_database
from silkline.warc_files import folder_of
from tests.support.served import Client, Served

EVIL = "<script>alert('silk')</script>"
COUNTED = {"out_of_scope", "host", "discovered", "queued", "done", "unchanged", "failed", "skipped"}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def quiet(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    """A server that runs nothing and takes nobody for dead, and its database."""
    folder = tmp_path_factory.mktemp("quiet")
    url = f"sqlite:///{folder / 'silkline.db'}"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres").create_database()
    with closing(Served(url, folder, slots=0, fence_after=3_000, stale_after=4_000)) as server:
        server.ready()
        yield server, url


@pytest.fixture
def client(quiet: tuple[Served, str]) -> Client:
    return quiet[0].ready()


@pytest.fixture
def database(quiet: tuple[Served, str]) -> Iterator[Database]:
    with closing(open_database(quiet[1])) as database:
        yield database


def waiting(host: str = "slow.example", **changes: Any) -> dict[str, Any]:
    soon = (datetime.now(UTC) + timedelta(hours=3)).timestamp()
    return Wait(host, 7, 1, reasons.CRAWL_DELAY, "", 5.0, soon, 35.0)._replace(**changes)._asdict()


def running(database: Database, *waits: dict[str, Any], rate: float | None = None, limit: int | None = None) -> Job:
    """A crawl of two hosts that says for whom it waits."""
    new, _ = jobs.enqueue(database, NewJob("site", {"url": "https://slow.example/", "limit": limit}))
    job = jobs.claim_one(database, "somebody", "somewhere", new.id)
    assert job is not None
    found = [NewUrl(id, id, f"https://slow.example/{id}", "slow.example", 0) for id in range(1, 8)]
    found.append(NewUrl(8, 8, "https://other.example/", "other.example", 1, "skipped", "robots"))
    urls.record(database, job, Checkpoint(found=found, live={"waits": list(waits), "rate": rate}))
    return job


def test_hosts_that_wait_and_hosts_by_size(client: Client, database: Database) -> None:
    job = running(database, waiting(), waiting("third.example", reason=reasons.BUSY, next_at=None))
    found = client.get(f"/v1/jobs/{job.id}/hosts").json
    first, second = found["waiting"]
    assert (first["host"], first["queued"], first["in_flight"], first["seconds"]) == ("slow.example", 7, 1, 5.0)
    assert (first["reason"], first["says"]) == (
        "crawl_delay",
        "robots.txt asks for 5 s between pages; next page in 3 h",
    )
    assert datetime.fromisoformat(first["next_at"]) > datetime.now(UTC)
    assert (second["next_at"], second["says"]) == (
        None,
        "1 of its pages are being fetched, the maximum at the same time",
    )
    assert [each["host"] for each in found["items"]] == ["slow.example", "other.example"]
    assert set(found["items"][0]) == COUNTED
    assert client.get(f"/v1/jobs/{job.id}").json["links"]["hosts"] == f"/v1/jobs/{job.id}/hosts"
    client.get("/v1/jobs/019a8f6e-5dc2-7340-86fe-b900fe2551e3/hosts").problem(404, "not-found")


def test_the_end_is_no_nearer_than_that_of_the_slowest_host(client: Client, database: Database) -> None:
    job = running(database, waiting(seconds_left=9_999.0), rate=7.0)
    assert client.get(f"/v1/jobs/{job.id}").json["progress"]["eta_seconds"] == 9_999.0
    job = running(database, waiting(seconds_left=0.1), rate=7.0)
    assert client.get(f"/v1/jobs/{job.id}").json["progress"]["eta_seconds"] == 1.0
    job = running(database, waiting(seconds_left=9_999.0), rate=0.5, limit=3)
    assert client.get(f"/v1/jobs/{job.id}").json["progress"]["eta_seconds"] == 6.0, "three pages, whoever they are from"


def test_a_job_that_does_not_run_waits_for_nobody(client: Client, database: Database) -> None:
    new, _ = jobs.enqueue(database, NewJob("site", {"url": "https://slow.example/"}, paused=True))
    with database.transaction() as transaction:
        urls.write(transaction, new.id, Checkpoint(live={"waits": [waiting()]}), database.now())
    assert client.get(f"/v1/jobs/{new.id}/hosts").json == {"waiting": [], "items": []}
    assert "asks for 5 s" not in client.get(f"/jobs/{new.id}/hosts").text


def test_names_of_hosts_never_become_markup(client: Client, database: Database) -> None:
    odd = [{"host": EVIL}, ["slow.example", 1.0], waiting(queued=EVIL)]
    job = running(database, waiting(EVIL), waiting("x", reason=EVIL), waiting("y", reason="errors", detail=EVIL), *odd)
    assert [each["host"] for each in client.get(f"/v1/jobs/{job.id}/hosts").json["waiting"]] == [EVIL, "x", "y"]
    for tab in ("hosts", "overview"):
        text = client.get(f"/jobs/{job.id}/{tab}").text
        assert "&lt;script&gt;" in text
        assert EVIL not in text


def test_a_kind_that_nobody_knows_is_named(client: Client, database: Database) -> None:
    new, _ = jobs.enqueue(database, NewJob("word_count", {"url": "https://slow.example/"}))
    message = "No running worker knows the kind word_count"
    assert message in client.get(f"/v1/jobs/{new.id}").json["message"]
    assert message in client.get(f"/jobs/{new.id}").text


@pytest.mark.parametrize("way", ["api", "page"])
def test_a_job_that_is_removed_leaves_no_file(
    client: Client, database: Database, quiet: tuple[Served, str], way: str
) -> None:
    data: Path = quiet[0].data
    ids = [jobs.enqueue(database, NewJob("site", {"url": "https://slow.example/"}))[0].id for _ in range(2)]
    for id in ids:
        jobs.wish(database, id, Verb.CANCEL)
        folder_of(data, id).mkdir(parents=True)
        (folder_of(data, id) / "000001-000-1.warc.gz").write_bytes(b"an answer")
        (data / "logs").mkdir(exist_ok=True)
        for suffix in (".log", ".log.1"):
            (data / "logs" / f"{id}{suffix}").write_text("a line\n")
    gone, kept = ids
    if way == "api":
        assert client.ask("DELETE", f"/v1/jobs/{gone}").status == 204
    else:
        sent = client.post(f"/jobs/{gone}/delete", b"", Content_Type="application/x-www-form-urlencoded")
        assert sent.status == 303, sent
    assert not folder_of(data, gone).exists()
    assert sorted(path.name for path in (data / "logs").iterdir() if gone in path.name) == []
    assert folder_of(data, kept).exists()
    assert len([path for path in (data / "logs").iterdir() if kept in path.name]) == 2


def test_a_job_that_still_waits_keeps_its_files(client: Client, database: Database, quiet: tuple[Served, str]) -> None:
    id = jobs.enqueue(database, NewJob("site", {"url": "https://slow.example/"}))[0].id
    folder_of(quiet[0].data, id).mkdir(parents=True)
    client.ask("DELETE", f"/v1/jobs/{id}").problem(409, "refused", "cancel it first")
    assert folder_of(quiet[0].data, id).exists()


class Slow:
    """A count that takes as long as it is told to."""

    __name__ = "slow"

    def __init__(self) -> None:
        self.go = threading.Event()
        self.times = 0

    def __call__(self, database: Database, job_id: str) -> str:
        self.times += 1
        assert self.go.wait(60)
        return json.dumps([job_id, self.times])


def test_nobody_waits_for_a_long_count_and_it_is_made_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_counts, "SOON", 0.01)
    job, slow, counted = running(database), Slow(), LedgerCounts(database)
    known = counted.get(urls.reasons, job)
    assert known == [("skipped", "robots", 1)]
    for _ in range(2):
        assert counted.soon(job, slow, urls.reasons) == [None, known]
    found: list[Any] = []
    asking = [threading.Thread(target=lambda: found.append(counted.get(slow, job))) for _ in range(3)]
    for thread in asking:
        thread.start()
    slow.go.set()
    for thread in asking:
        thread.join(60)
    assert found == [json.dumps([job.id, 1])] * 3
    assert counted.soon(job, slow) == found[:1]
    assert slow.times == 1


def test_a_count_that_fails_fails_for_those_who_asked_and_is_tried_again(database: Database) -> None:
    job, counted, times = running(database), LedgerCounts(database), []

    def breaks(database: Database, job_id: str) -> int:
        times.append(job_id)
        if len(times) == 1:
            raise StoreError("the disk is gone")
        return 7

    with pytest.raises(StoreError, match="the disk is gone"):
        counted.get(breaks, job)
    assert counted.get(breaks, job) == 7

"""External workers: a browser extension, or a program in another language. Like every worker they need a lease.

They may deliver pages only for the URLs of the job. Deliveries use the same checkpoint as a crawl, fenced by the lease,
so a worker that lost its lease cannot store anything.
"""

from __future__ import annotations

import hashlib
import random
import re
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from silkline.api.answer_models import to_json
from silkline.api.private_addresses import foreign_private_url
from silkline.api.problems import Problem
from silkline.config import Settings
from silkline.errors import SpecError, StoreError, Unavailable
from silkline.kinds import registry
from silkline.model.database import Database
from silkline.model.fetched import ADDRESS_BLOCKED, BAD_REDIRECT
from silkline.model.job import AttemptEnd, Backoff, Decision, End, Job, Wish, decide
from silkline.model.ledger import DONE, FAILED, QUEUED, SKIPPED, Checkpoint, Counts, NewResult, NewUrl, Settled
from silkline.model.url import canonical, host_of, parse, url_key
from silkline.store import jobs, urls

NAME_LETTERS = "A-Za-z0-9_.-"  # the lease is in a header, so the name of a worker in it is ASCII
LONGEST_NAME = 40
_LEASE = re.compile(rf"([0-9]{{1,18}})\.([{NAME_LETTERS}]{{1,{LONGEST_NAME}}})-([0-9a-f]{{32}})")
ENDS = (End.COMPLETED, End.TEMPORARY, End.PERMANENT, End.RELEASED, End.PAUSED, End.STOPPED, End.CANCELLED)
SKIP_CHUNK = 5_000
CLAIM_SIZE = 4 << 20  # bytes of specs and metadata after which one claim takes no further job


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write data of one job. Only the worker that claimed the job knows the secret.

    Everybody who may read jobs sees `worker_id`, so that has only a hash of the secret.
    """

    number: int
    name: str
    secret: str

    @property
    def worker_id(self) -> str:
        return f"external-{self.name}-{hashlib.sha256(self.secret.encode()).hexdigest()[:32]}"

    def __str__(self) -> str:
        return f"{self.number}.{self.name}-{self.secret}"


def read_lease(text: str | None) -> Lease:
    if not text:
        raise Problem("lease-missing", "send the lease that the claim returned in the header `Silkline-Lease`")
    match = _LEASE.fullmatch(text)
    if match is None:
        raise Problem("lease-lost", "this text is not a lease; send the lease that the claim returned")
    return Lease(int(match[1]), match[2], match[3])


@dataclass(frozen=True, slots=True)
class Delivered:
    """The result of a delivery."""

    recorded: int
    known: int
    counts: Counts
    job: Job


class ExternalWorkers:
    """What an external worker can do: claim, renew, deliver, finish."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._backoff = Backoff(settings.backoff_base, settings.backoff_cap)
        self._lock = threading.Lock()
        self._busy: set[str] = set()  # jobs whose ledger a request changes now

    def claim(self, kinds: Sequence[str], wanted: int, name: str) -> list[tuple[Lease, Job]]:
        """Claim jobs of the kinds that external workers run, never of the kinds that a supervisor runs.

        Fewer than `wanted`, if they are large.
        """
        known = registry.kinds(test_kinds=self._settings.test_kinds)
        for kind in kinds:
            if kind not in known or not known[kind].external:
                can = ", ".join(sorted(name for name, each in known.items() if each.external))
                raise SpecError(f"external workers cannot run {kind[:100]!r} jobs; they can run: {can}")
        unclaimed = Lease(0, name, secrets.token_hex(16))
        claimed: list[tuple[Lease, Job]] = []
        size = 0
        while len(claimed) < wanted and size < CLAIM_SIZE:  # one by one, because each may have 16 MB
            found = jobs.claim(self._database, unclaimed.worker_id, "outside", kinds, 1)
            if not found:
                break
            job = jobs.owned(self._database, found[0].id, found[0].run_lease, unclaimed.worker_id)
            job = replace(job, payload=_with_plain_urls(job.payload))
            claimed.append((replace(unclaimed, number=job.run_lease), job))
            size += len(to_json([job.payload, job.metadata]))
        return claimed

    def check(self, id: str, lease: Lease) -> None:
        """Raise a `LeaseLost` or `NotFound` for a lease that is not that of the job."""
        jobs.owned_outline(self._database, id, lease.number, lease.worker_id)

    def renew(self, id: str, lease: Lease) -> Wish:
        return jobs.renew(self._database, id, lease.number, lease.worker_id)

    def deliver(self, id: str, lease: Lease, pages: Sequence[dict[str, Any]]) -> Delivered:
        """Store pages in one checkpoint. A delivery can be repeated: pages that are already stored do not change."""
        job = jobs.owned_outline(self._database, id, lease.number, lease.worker_id)
        with self._alone(job.id):
            try:
                return self._record(job, pages)
            except Unavailable:
                raise
            except StoreError as error:
                raise _conflict() from error

    def finish(self, id: str, lease: Lease, ended: AttemptEnd) -> Job:
        """End the attempt. The same rules as for every job decide what happens to it."""
        job = jobs.owned_outline(self._database, id, lease.number, lease.worker_id)
        if ended.end is End.COMPLETED:
            with self._alone(job.id):
                self._open(job)
                self._skip_the_rest(job)
        jobs.finish(self._database, job, lambda now: self._decide(now, ended))
        return jobs.outline(self._database, id)

    @contextmanager
    def _alone(self, id: str) -> Iterator[None]:
        """Refuse a second delivery for one job: two at once would use the same new ids of its ledger.

        Nobody waits here, because a request here has a turn to write. `WriteLimit` lets those of one lease wait.
        """
        with self._lock:
            if id in self._busy:
                raise _conflict()
            self._busy.add(id)
        try:
            yield
        finally:
            with self._lock:
                self._busy.remove(id)

    def _decide(self, job: Job, ended: AttemptEnd) -> Decision:
        jitter = random.random()  # noqa: S311 - spreads retries, guards nothing
        return decide(job, ended, backoff=self._backoff, now=self._database.now(), jitter=jitter)

    def _record(self, job: Job, pages: Sequence[dict[str, Any]]) -> Delivered:
        self._open(job)
        settled: list[Settled] = []
        results: dict[str, NewResult] = {}
        addresses = [_address(page) for page in pages]
        rows = urls.by_urls(self._database, job.id, addresses)
        for address, page in zip(addresses, pages, strict=True):
            row = rows.get(address)
            if row is None:
                raise SpecError(f"{address[:200]!r} is not one of the URLs of this job; nothing was stored")
            if address in results or row.state != QUEUED:
                continue
            if page["final_url"] is not None and canonical(page["final_url"]) is None:
                page = _without_content(page, BAD_REDIRECT)
            elif foreign_private_url(address, _landed(address, page), self._settings):
                page = _without_content(page, ADDRESS_BLOCKED)
            settled.append(_end(row.id, page))
            results[address] = _result(row.id, address, page)
        counts = urls.record(self._database, job, Checkpoint(settled=settled, results=[*results.values()]))
        return Delivered(len(results), len(pages) - len(results), counts, job)

    def _open(self, job: Job) -> None:
        """Write the URLs of the job into the ledger, before the first delivery. Only this reads the whole payload."""
        if urls.last_id(self._database, job.id):
            return
        job = jobs.owned(self._database, job.id, job.run_lease, job.worker_id)
        asked = dict.fromkeys(filter(None, map(canonical, _asked(job))))
        found = [NewUrl(id, url_key(url), url, host_of(url), 0) for id, url in enumerate(asked, 1)]
        urls.record(self._database, job, Checkpoint(found=found))

    def _skip_the_rest(self, job: Job) -> None:
        """Mark URLs that were not delivered as skipped, because a completed job has no queued URLs."""
        while rest := urls.queued(self._database, job.id, wanted=SKIP_CHUNK):
            gone = [Settled(each.id, SKIPPED, "not_delivered", None, each.attempts) for each in rest]
            urls.record(self._database, job, Checkpoint(settled=gone))


def _with_plain_urls(payload: dict[str, Any]) -> dict[str, Any]:
    """The URLs as a browser writes them: a worker that parses them in another way must not reach another address."""
    urls = {"urls": [parse(url) or url for url in payload["urls"]]} if payload.get("urls") else {}
    url = {"url": parse(payload["url"]) or payload["url"]} if payload.get("url") else {}
    return {**payload, **url, **urls}


def _asked(job: Job) -> Iterator[str]:
    if job.payload.get("url"):
        yield job.payload["url"]
    yield from job.payload.get("urls", ())


def _address(page: dict[str, Any]) -> str:
    address = canonical(page["url"])
    if address is None:
        raise SpecError(f"{page['url'][:200]!r} is not a web address")
    return address


def _landed(address: str, page: dict[str, Any]) -> str:
    return canonical(page["final_url"] or "") or address


def _without_content(page: dict[str, Any], error: str) -> dict[str, Any]:
    """What is left of a page with a private or invalid address: the page that a worker opened may have led it there."""
    return {**page, "final_url": None, "success": False, "error": error, "data": {}, "metadata": {}}


def _conflict() -> Problem:
    return Problem("conflict", "another request delivers pages for this job at the same time")


def _end(url_id: int, page: dict[str, Any]) -> Settled:
    if page["success"]:
        return Settled(url_id, DONE, http_status=page["http_status"])
    return Settled(url_id, FAILED, page["error"] or "failed", http_status=page["http_status"])


def _result(url_id: int, address: str, page: dict[str, Any]) -> NewResult:
    """The result, with keys that the cache does not find: nobody checked what an external worker delivers."""
    told = {name: value for name, value in page["metadata"].items() if name != "files"}  # only our browser makes files
    metadata = {**told, "http_status": page["http_status"], "error": page["error"]}
    return NewResult(
        url_id=url_id,
        original_url=address,
        original_key=None,
        final_url=_landed(address, page),
        final_key=0,
        data=to_json(page["data"]).decode(),
        success=page["success"],
        metadata=to_json(metadata).decode(),
    )

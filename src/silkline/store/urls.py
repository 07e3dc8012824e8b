"""Reads and writes the ledger: every URL of a job, with its state and reason. `record` writes a checkpoint.

It has only the first URLs that look like a trap, or that the pages of one host bring in masses; `not_stored` says how
many more there were, at least. `model.ledger` has the types.
"""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any

from silkline.errors import CommitsLost, Refused, StoreError
from silkline.metrics.instruments import CHECKPOINT_SECONDS
from silkline.model.database import Database, Transaction
from silkline.model.job import Job
from silkline.model.ledger import (
    DONE,
    FAILED,
    QUEUED,
    REDIRECTED,
    SKIPPED,
    STATES,
    UNCHANGED,
    Checkpoint,
    Counts,
    NewResult,
    NewUrl,
    NewUrls,
    QueuedUrl,
    RootEnd,
    Settled,
    Url,
    added_up,
    not_stored,
)
from silkline.store import checkpoint_counts, count_history, html, links, pages, redirects, shard_links
from silkline.store.jobs import fence
from silkline.store.shard_members import by_member, family, from_cursor, member_of, members
from silkline.store.text import clean, clean_json, to_json

Check = Callable[[Transaction], None]
INDEX_CHUNK = 200_000
MOST_HOSTS = 100
_ALL_IDS = 2**62


def record(database: Database, job: Job, checkpoint: Checkpoint, known: int | None = None) -> Counts:
    """One checkpoint: results, ledger and counters in one transaction, fenced by the lease of `job`.

    `known`: how many checkpoints the attempt knows of. If the ledger has another number, the database lost commits (a
    failover, or a crash with `synchronous_commit = off`), and what the attempt has in memory does not fit any more.
    """
    began = time.perf_counter()
    with database.transaction() as transaction:
        fence(transaction, job, lock=False)
        now = database.now()
        counts = write(transaction, job.id, checkpoint, now, known)
        if checkpoint.shard is not None:
            shard_links.write(transaction, job, checkpoint.shard, now)
        fence(transaction, job)
    CHECKPOINT_SECONDS.observe(time.perf_counter() - began)
    if checkpoint.shard is not None:
        shard_links.wake_receivers(database, job, checkpoint.shard)
    return counts


def seed(database: Database, job_id: str, found: Sequence[NewUrl]) -> None:
    """Put the seeds of a job that has not started into its ledger."""
    with database.transaction() as transaction:
        write(transaction, job_id, Checkpoint(found=found), database.now())


def write(
    transaction: Transaction, job_id: str, checkpoint: Checkpoint, now: datetime, known: int | None = None
) -> Counts:
    """The writes of a checkpoint. Only `record` and `seed` call this."""
    found = checkpoint.found if isinstance(checkpoint.found, NewUrls) else NewUrls(checkpoint.found)
    settled, results = _last_word(job_id, checkpoint.settled), checkpoint.results
    ledger = _opened(transaction, job_id, now, known)
    if found:
        transaction.columns("urls.append", _clean_columns(found), ledger=ledger)
    if settled and transaction.many("urls.settle", Settled._fields, settled, ledger=ledger) != len(settled):
        raise StoreError(f"the ledger of job {job_id} is inconsistent: a settled URL was not queued")
    if results:
        stored = [each._replace(data=clean_json(each.data), metadata=clean_json(each.metadata)) for each in results]
        transaction.many("results.append", NewResult._fields, stored, job_id=job_id, now=now)
        pages.append(transaction, job_id, stored, now)
    links.append(transaction, job_id, checkpoint.links)
    html.append(transaction, job_id, checkpoint.html, checkpoint.dictionaries)
    moved = ((each.id, each.detail) for each in settled if each.reason == REDIRECTED and each.detail)
    redirects.append(transaction, job_id, moved, now)
    ended = Counter(map(_settled_state, settled))
    fresh = Counter(found.column("state"))
    still = ended.pop(QUEUED, 0)
    moved_to = {state: fresh[state] + ended[state] for state in (DONE, UNCHANGED, FAILED, SKIPPED)}
    row = transaction.rows(
        "urls.count",
        job_id=job_id,
        pending=fresh[QUEUED] - (len(settled) - still),
        discovered=len(found),
        **moved_to,
        bytes=checkpoint.bytes,
        in_flight=checkpoint.in_flight,
        seconds=checkpoint.seconds,
        live=to_json(checkpoint.live),
        now=now,
    )[0]
    _check_commits(job_id, known, row["checkpoints"] - 1)  # now the row is locked
    count_history.take(transaction, job_id, age=row["seconds"], now=now)
    added = {"discovered": len(found), "bytes": checkpoint.bytes, "results": len(results), "checkpoints": 1}
    checkpoint_counts.add(transaction, now, **moved_to, **added)
    return _counts(row)


def _opened(transaction: Transaction, job_id: str, now: datetime, known: int | None) -> Any:
    """What the rows of a job begin with in the ledger. URLs that were left over get their state first, because the
    checkpoint may queue others."""
    ledger, leftover, checkpoints = _ledger(transaction, job_id)
    _check_commits(job_id, known, checkpoints)
    if ledger is None:
        transaction.rows("urls.open_state", job_id=job_id, now=now)
        ledger, leftover, _ = _ledger(transaction, job_id)
    if leftover is not None:
        _rewrite_some_leftovers(transaction, job_id, 0, _ALL_IDS, now)
    return ledger


def _ledger(transaction: Transaction, job_id: str) -> tuple[Any, str | None, int]:
    """What the rows of a job begin with, the reason of the URLs that were left over, and the number of checkpoints.
    None: it has no ledger."""
    found = transaction.rows("urls.ledger", job_id=job_id)
    return (found[0]["ledger"], found[0]["leftover"], found[0]["checkpoints"]) if found else (None, None, 0)


def _check_commits(job_id: str, known: int | None, found: int) -> None:
    if known is not None and found != known:
        raise CommitsLost(
            f"the ledger of job {job_id} has {found} checkpoints, not {known}: the database lost commits"
            if found < known
            else f"the ledger of job {job_id} has {found} checkpoints, not {known}: another process wrote it"
        )


def _clean_columns(found: NewUrls) -> dict[str, list[Any]]:
    columns = dict(zip(NewUrl._fields, found.columns, strict=True))
    details = columns["detail"]
    if details.count(None) != len(details):
        columns["detail"] = [clean(detail) for detail in details]
    return columns


def _last_word(job_id: str, settled: Sequence[Settled]) -> Sequence[Settled]:
    """The last entry of each URL: within one checkpoint a URL may be tried several times."""
    latest: dict[int, Settled] = {}
    for each in settled:
        if each.id in latest and latest[each.id].state != QUEUED:
            raise StoreError(f"the ledger of job {job_id} is inconsistent: URL {each.id} was settled twice")
        latest[each.id] = each if each.detail is None else each._replace(detail=clean(each.detail))
    return list(latest.values())


_settled_state = itemgetter(Settled._fields.index("state"))


def counts(database: Database, job_id: str) -> Counts:
    """The counters of a job; all zero before it has any. Those of its shards are added up, in one snapshot."""
    return counts_of(database, [job_id]).get(job_id, Counts())


def counts_of(database: Database, job_ids: Sequence[str]) -> dict[str, Counts]:
    """The counters of several jobs."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in database.rows("urls.states", job_ids=json.dumps(list(job_ids))):
        found.setdefault(row["asked"], []).append(row)
    return {id: added_up([_counts(row) for row in rows], rows[0]["crawling"]) for id, rows in found.items()}


# These values of the last checkpoint are not valid after the attempt has ended.
_ONLY_RUNNING = frozenset({"in_flight", "rates", "waits", "urls"})


def _counts(row: dict[str, Any]) -> Counts:
    runs = row.get("runs", True)
    in_flight = min(row["in_flight"], row["total_pending"]) if runs else 0
    live = json.loads(row["live"])
    return Counts(
        discovered=row["discovered"],
        queued=row["total_pending"] - in_flight,
        in_flight=in_flight,
        done=row["done"],
        unchanged=row["unchanged"],
        failed=row["failed"],
        skipped=row["skipped"],
        bytes=row["bytes"],
        checkpoints=row["checkpoints"],
        seconds=row["seconds"],
        updated_at=row["updated_at"],
        live=live if runs else {name: value for name, value in live.items() if name not in _ONLY_RUNNING},
    )


def tally(database: Database, job_id: str) -> dict[str, int]:
    """The number of URLs in each state, from the rows of the ledger. The counters must be equal."""
    found: Counter[str] = Counter()
    for member in members(database, job_id):
        found.update({row["state"]: row["urls"] for row in database.rows("urls.tally", job_id=member)})
    return {state: found[state] for state in STATES}


def reasons(database: Database, job_id: str) -> list[tuple[str, str, int]]:
    """State, reason and number of URLs that failed or were skipped, most frequent first."""
    found: Counter[tuple[str, str]] = Counter()
    for member in members(database, job_id):
        for row in database.rows("urls.tally_reasons", job_id=member):
            found[row["state"], row["reason"]] += row["urls"]
    return [(*why, number) for why, number in sorted(found.items(), key=lambda each: (-each[1], *each[0]))]


def spent(
    database: Database, job_id: str, row_bytes: int, large: int, large_bytes: int
) -> list[tuple[str, int, int, int]]:
    """Hosts that are large or have a trap: their URLs in the scope, the bytes of those rows, and those of a trap.

    A row takes `row_bytes` beside its URL. Reads the whole ledger of the job.
    """
    rows = database.rows("urls.spent", job_id=job_id, row_bytes=row_bytes, large=large, large_bytes=large_bytes)
    return [(row["host"], row["urls"], row["bytes"], row["trapped"]) for row in rows]


def bytes_by_source(database: Database, job_id: str, row_bytes: int, large_bytes: int) -> list[tuple[str, int]]:
    """Hosts, and the bytes of the rows that their pages brought, if those are many. Reads the whole ledger."""
    rows = database.rows("urls.bytes_by_source", job_id=job_id, row_bytes=row_bytes, large_bytes=large_bytes)
    return [(row["host"], row["bytes"]) for row in rows]


def why_not_stored(database: Database, job_id: str) -> str:
    """An addition for messages about a URL that is not in the ledger. Empty if every URL was stored."""
    number = not_stored(counts(database, job_id))
    return f" (at least {number:,} URLs beyond the budget of a host were counted, but not stored)" if number else ""


def statuses(database: Database, job_id: str) -> list[tuple[int, int]]:
    """Each HTTP status and its number of URLs. Reads the whole ledger of the job."""
    found: Counter[int] = Counter()
    for member in members(database, job_id):
        found.update({row["http_status"]: row["urls"] for row in database.rows("urls.tally_statuses", job_id=member)})
    return sorted(found.items())


def hosts(database: Database, job_id: str, *, wanted: int = MOST_HOSTS) -> list[dict[str, Any]]:
    """The hosts with the most URLs, each with the number in every state; hosts that are only linked to come last.

    Reads the whole ledger of the job.
    """
    several = members(database, job_id)
    found = [row for member in several for row in database.rows("urls.tally_hosts", job_id=member, wanted=wanted)]
    if len(several) > 1:
        found.sort(key=lambda row: (row["out_of_scope"] == row["discovered"], -row["discovered"], row["host"]))
    return found[:wanted]


def failures(
    database: Database,
    job_id: str,
    *,
    state: str = FAILED,
    reason: str | None = None,
    after: int = 0,
    wanted: int = 100,
) -> list[Url]:
    """URLs that failed, or were skipped, after a cursor; for one reason if it is named."""
    return _pages(database, job_id, "urls.page_by_reason", after, wanted, state=state, reason=reason)


def named_on(database: Database, job_id: str, id: int, *, wanted: int = 100) -> list[Url]:
    """URLs that were discovered on one page. Reads the whole ledger of the job."""
    found: list[Url] = []
    for member in family(database, job_id):
        rows = database.rows("urls.named_on", job_id=member, id=id, wanted=wanted - len(found))
        found += [Url(**row) for row in rows]
    return found


def by_ids(database: Database, job_id: str, ids: Sequence[int]) -> dict[int, Url]:
    """Several URLs of the ledger, by id."""
    found: dict[int, Url] = {}
    for member, some in by_member(database, job_id, ids) if ids else ():
        found |= {row["id"]: Url(**row) for row in database.rows("urls.by_ids", job_id=member, ids=json.dumps(some))}
    return found


def page(database: Database, job_id: str, *, after: int = 0, wanted: int = 500, state: str | None = None) -> list[Url]:
    """Rows of the ledger after a cursor, in the order of discovery."""
    if state is None:
        return _pages(database, job_id, "urls.page", after, wanted)
    return _pages(database, job_id, "urls.page_by_state", after, wanted, state=state)


def _pages(database: Database, job_id: str, name: str, after: int, wanted: int, **more: Any) -> list[Url]:
    """Rows after a cursor, of one shard after the other."""
    found: list[Url] = []
    for member in from_cursor(members(database, job_id), after):
        rows = database.rows(name, job_id=member, after=after, wanted=wanted - len(found), **more)
        found += [Url(**row) for row in rows]
        if len(found) >= wanted:
            break
    return found


def queued(database: Database, job_id: str, *, after: int = 0, wanted: int = 10_000) -> list[QueuedUrl]:
    """Queued URLs, after a cursor."""
    return [QueuedUrl(**row) for row in database.rows("urls.queued", job_id=job_id, after=after, wanted=wanted)]


def queued_part(
    database: Database, job_id: str, *, foreign: bool, after: int = 0, wanted: int = 10_000
) -> list[QueuedUrl]:
    """The same: those that their hosts link to, or those that only other hosts do. Sitemaps are in both parts."""
    name = "urls.queued_foreign" if foreign else "urls.queued_own"
    return [QueuedUrl(**row) for row in database.rows(name, job_id=job_id, after=after, wanted=wanted)]


def roots(database: Database, job_id: str, *, chunk: int = 50_000) -> Iterator[list[str]]:
    """Seeds and the targets of their redirects, in chunks. They define the scope of the crawl."""
    after = 0
    while rows := database.rows("urls.roots", job_id=job_id, after=after, wanted=chunk):
        after = rows[-1]["id"]
        yield [row["url"] for row in rows]


def root_ends(database: Database, job_id: str) -> list[RootEnd]:
    """How the seeds of a job ended, the most frequent end first. Reads the whole ledger of the job."""
    return [RootEnd(**row) for row in database.rows("urls.root_ends", job_id=job_id)]


def skip_queued(database: Database, job: Job, reason: str) -> Counts:
    """Give every URL still queued the state `skipped`, for a crawl that ends before them. Fenced by the lease.

    The reason is stored once, with the counters, and the view `crawl_urls` shows it: the cost does not depend on how
    many URLs are left over.
    """
    with database.transaction() as transaction:
        fence(transaction, job)
        locked = transaction.rows("urls.lock_counts", job_id=job.id, now=database.now())
        pending = locked[0]["total_pending"] if locked else 0
        if pending:
            transaction.rows("urls.leave_queued", job_id=job.id, reason=reason, now=database.now())
            checkpoint_counts.add(transaction, database.now(), skipped=pending)
        fence(transaction, job)
    return counts(database, job.id)


def _rewrite_leftovers(database: Database, job_id: str, chunk: int = 100_000) -> None:
    """Give URLs that were left over their state in the ledger itself, before others of the job are queued again."""
    for after, upto in itertools.chain(_ranges(database, job_id, chunk), [(_ALL_IDS, _ALL_IDS)]):
        with database.transaction() as transaction:
            if not _rewrite_some_leftovers(transaction, job_id, after, upto, database.now()):
                return


def _rewrite_some_leftovers(transaction: Transaction, job_id: str, after: int, upto: int, now: datetime) -> bool:
    """Rewrite a range of ids; the last one ends with `_ALL_IDS`. Whoever does so takes the counters first. Returns
    whether there was something to do."""
    transaction.rows("urls.lock_counts", job_id=job_id, now=now)
    ledger, leftover, _ = _ledger(transaction, job_id)
    if leftover is None:
        return False
    transaction.rows("urls.rewrite_leftovers", ledger=ledger, after=after, upto=upto, reason=leftover)
    if upto == _ALL_IDS:
        transaction.rows("urls.no_leftovers", job_id=job_id)
    return True


def requeue_failed_roots(database: Database, job_id: str, check: Check | None = None) -> int:
    """Queue the URLs of depth 0 again that failed, and all others with the same reasons. Returns how many. `check` as
    in `requeue`."""
    reasons = {end.reason for end in root_ends(database, job_id) if end.state == FAILED and end.reason}
    return sum(requeue(database, job_id, reason, check=check) for reason in sorted(reasons))


def queued_depths(database: Database, job_id: str) -> dict[int, int]:
    """How many URLs are queued at each depth."""
    return {row["depth"]: row["urls"] for row in database.rows("urls.queued_depths", job_id=job_id)}


def every(database: Database, job_id: str, *, chunk: int = 5_000) -> Iterator[list[tuple[str, str, str]]]:
    """Every (url, host, found_via) of the ledger, in chunks of up to 40 MB, to rebuild the seen-set."""
    after = 0
    while rows := database.rows("urls.every", job_id=job_id, after=after, wanted=chunk):
        after = rows[-1]["id"]
        yield [(row["url"], row["host"], row["found_via"]) for row in rows]


def last_id(database: Database, job_id: str) -> int:
    return int(database.rows("urls.last_id", job_id=job_id)[0]["id"])


def by_id(database: Database, job_id: str, id: int) -> Url | None:
    found = database.rows("urls.by_id", job_id=member_of(database, job_id, id), id=id)
    return Url(**found[0]) if found else None


def by_key(database: Database, job_id: str, url_key: int, url: str) -> Url | None:
    """One URL of the ledger, by the index of an ended crawl or a scan of a live one. Two URLs can have one key."""
    for name in ("urls.by_indexed_key", "urls.by_key"):
        for member in family(database, job_id):
            found = database.rows(name, job_id=member, url_key=url_key, url=url)
            if found:
                return Url(**found[0])
    return None


def by_keys(database: Database, job_id: str, keys: Sequence[int]) -> dict[int, Url]:
    """Several URLs of the ledger, by key. Keys that the index does not have are found by a scan."""
    found: dict[int, Url] = {}
    several = family(database, job_id)
    for name, member in itertools.product(("urls.by_indexed_keys", "urls.by_keys"), several):
        missing = [key for key in keys if key not in found]
        rows = database.rows(name, job_id=member, keys=json.dumps(missing)) if missing else []
        found |= {row["url_key"]: Url(**row) for row in rows}
    return found


def by_urls(database: Database, job_id: str, wanted: Sequence[str]) -> dict[str, Url]:
    """The same by URL, because two URLs can have one key. Needs at most one scan of the ledger."""
    from silkline.model.url import url_key  # here, because commands that only read do not need the URL parser

    found: dict[str, Url] = {}
    keys = {url: url_key(url) for url in wanted}
    several = family(database, job_id)
    for name, member in itertools.product(("urls.by_indexed_keys", "urls.by_keys"), several):
        missing = list({key for url, key in keys.items() if url not in found})
        rows = database.rows(name, job_id=member, keys=json.dumps(missing)) if missing else []
        found |= {row["url"]: Url(**row) for row in rows if row["url"] in keys}
    return found


def index(database: Database, job_id: str, *, chunk: int = INDEX_CHUNK) -> None:
    """Index the URLs of an ended crawl by key. Safe to repeat."""
    for member in members(database, job_id):
        for after, upto in _ranges(database, member, chunk):
            database.rows("urls.index", job_id=member, after=after, upto=upto)


def _ranges(database: Database, job_id: str, chunk: int) -> Iterator[tuple[int, int]]:
    """The ids of a ledger in ranges. Ids of shards are far apart, so each range begins where the next id is."""
    after = 0
    while found := database.rows("urls.page", job_id=job_id, after=after, wanted=1):
        first = found[0]["id"] - 1
        after = first + chunk
        yield first, after


def requeue(database: Database, job_id: str, reason: str, *, chunk: int = 2_000, check: Check | None = None) -> int:
    """Queue the URLs again that failed for one reason. Returns their number.

    `check` is called in each transaction, and raises an error if the ledger must not change any more: an attempt that
    runs would not learn of these URLs.
    """
    return sum(_requeue(database, member, reason, chunk, check) for member in members(database, job_id))


def _requeue(database: Database, job_id: str, reason: str, chunk: int, check: Check | None) -> int:
    _rewrite_leftovers(database, job_id)
    total = 0
    while True:
        with database.transaction() as transaction:
            # Serialize concurrent requeues: each takes the row of the counters first, so they cannot deadlock.
            transaction.rows("urls.requeued", job_id=job_id, urls=0, now=database.now())
            if check is not None:
                check(transaction)
            ids = [row["id"] for row in transaction.rows("urls.requeue", job_id=job_id, reason=reason, wanted=chunk)]
            moved = len(ids)
            for name in ("results.withdraw", "pages.withdraw"):
                transaction.rows(name, job_id=job_id, url_ids=json.dumps(ids))
            transaction.rows("urls.requeued", job_id=job_id, urls=moved, now=database.now())
            checkpoint_counts.add(transaction, database.now(), requeued=moved)
        total += moved
        if moved < chunk:
            return total


def check_status(transaction: Transaction, job: Job) -> None:
    """Raise `Refused` unless the job still has this status, and keep it so until the commit."""
    for row in transaction.rows("urls.hold_status", id=job.id):
        if row["status"] != job.status:
            raise Refused(f"job {job.id} is {row['status']} now: try again")

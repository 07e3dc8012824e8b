"""Links between shards arrive exactly once: shards, deaths, repeats and late commits in any order.

A small web is crawled by shards that live in this process and use the real statements of PostgreSQL. Each may die at
any step, lose the answer to a commit, or commit late, when another attempt already runs. After each step the whole
crawl is compared with the web.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from silkline.crawl.host_owners import abroad
from silkline.crawl.messages import encoder, links_decoder
from silkline.crawl.plan_from_spec import plan_of
from silkline.crawl.shard_traffic import OpenParcel, ShardTraffic
from silkline.errors import LeaseLost
from silkline.metrics import process
from silkline.model.database import Database
from silkline.model.job import Decision, Job, NewJob, Status, Wish
from silkline.model.ledger import DONE, Checkpoint, NewResult, NewUrl, Settled
from silkline.model.parcel import Links
from silkline.model.sharding import FINISHED, OVER_LIMIT, ids_before
from silkline.model.spec import SiteSpec
from silkline.store import jobs, results, shard_links, shards, urls
from silkline.store.jobs import fence
from silkline.store.opening import open_database

SHARDS = 2
PAGES = 24
_encode, _decode = encoder().encode, links_decoder()


WORK = ("fetch", "fetch_and_save", "fetch_and_save", "read", "take_in_oldest", "take_in_newest", "save")
FAULTS = ("die", "die_after_commit", "die_between_rows", "save_late", "save_and_lose_the_lease", "commit_late")
ACTIONS = (*WORK, *FAULTS)


def url_of(page: int) -> str:
    return f"http://h{page % SHARDS}.example/{page}"


def page_of(url: str) -> int:
    return int(url.rpartition("/")[2])


@dataclass
class Memory:
    """What one attempt of a shard knows, and has not stored."""

    job: Job
    traffic: ShardTraffic
    next_id: int
    seen: set[str]
    pending: dict[int, str]
    stored: int
    found: list[NewUrl] = field(default_factory=list)
    settled: list[Settled] = field(default_factory=list)
    results: list[NewResult] = field(default_factory=list)
    parcels: list[OpenParcel] = field(default_factory=list)

    def add(self, url: str, source: int | None) -> None:
        if url not in self.seen:
            self.seen.add(url)
            self.found.append(NewUrl(self.next_id, page_of(url), url, "h", 1, found_on=source))
            self.pending[self.next_id] = url
            self.next_id += 1

    def fetch(self, links: dict[int, list[int]]) -> None:
        allowed = self.traffic.outlook.allowed
        if not self.pending or (allowed is not None and self.stored >= allowed):
            return
        id, url = min(self.pending.items())
        del self.pending[id]
        self.stored += 1
        self.settled.append(Settled(id, DONE))
        self.results.append(NewResult(id, url, page_of(url), url, page_of(url), "{}", True, "{}"))
        for target in links[page_of(url)]:
            if target % SHARDS == self.job.shard:
                self.add(url_of(target), id)
            else:
                several = _encode([Links(id, 1, "link", "", [url_of(target)])])
                self.traffic.send(abroad(target % SHARDS), 1, several)

    def read(self) -> None:
        for parcel in self.traffic.read():
            self.traffic.begin(parcel)
            self.parcels.append(parcel)

    def take_in(self, which: int) -> None:
        """The links of one row that was read; rows are answered in any order."""
        if self.parcels:
            parcel = self.parcels.pop(which % len(self.parcels))
            for _, packed in parcel.parts:
                for links in _decode(packed):
                    for url in links.urls:
                        self.add(url, links.found_on)
            self.traffic.complete(parcel)

    def checkpoint(self) -> Checkpoint:
        limited = self.traffic.outlook.allowed is not None
        wanted = (2 if self.pending else -1) if limited else 0
        packed = self.traffic.pack(None, wanted)
        checkpoint = Checkpoint(found=self.found, settled=self.settled, results=self.results, shard=packed)
        self.found, self.settled, self.results = [], [], []
        return checkpoint


class Shards(RuleBasedStateMachine):
    database: Database
    finished = 0
    faults: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.alive: dict[int, Memory] = {}
        self.late: dict[int, tuple[ExitStack, Any, Job]] = {}  # transactions that wrote everything and did not commit

    @initialize(
        tree=st.lists(st.integers(0, 4), min_size=PAGES - 1, max_size=PAGES - 1),
        limit=st.sampled_from([None, None, 4]),
    )
    def begin(self, tree: list[int], limit: int | None) -> None:
        """Exactly one page links to each page but the first: a link that is lost is a page that is lost."""
        self.limit = limit
        self.links: dict[int, list[int]] = {page: [] for page in range(PAGES)}
        for page, source in enumerate(tree, 1):
            self.links[max(0, page - 1 - source)].append(page)
        payload = {"url": url_of(0), "shards": SHARDS, "limit": limit}
        job, _ = jobs.enqueue(self.database, NewJob("site", payload, max_retries=1_000))
        self.parent = job.id
        for _ in "12":  # its worker dies before it has handed the parent over; each shard is made once
            claimed = jobs.claim_one(self.database, "w", "h", self.parent)
            now = self.database.now()
            assert jobs.rescue(self.database, claimed, Decision(Status.QUEUED, Wish.RUN, now, 0, 0, "", None))
        assert shards.open_shards(self.database, jobs.claim_one(self.database, "w", "h", self.parent))
        assert [shard.shard for shard in shards.of(self.database, self.parent)] == list(range(SHARDS))
        self.reachable = {url_of(page) for page in range(PAGES)}
        self.ending: str | None = None

    @rule(steps=st.lists(st.tuples(st.integers(0, SHARDS - 1), st.sampled_from(ACTIONS)), min_size=25, max_size=40))
    def live(self, steps: list[tuple[int, str]]) -> None:
        for shard, action in steps:
            self.start(shard)
            getattr(self, action)(shard)

    # Steps of a shard.

    def start(self, shard: int) -> None:
        if shard in self.alive or shard in self.late:
            return
        job = shards.of(self.database, self.parent)[shard]
        if job.status is not Status.QUEUED:
            return
        job = jobs.claim_one(self.database, f"w{shard}", "h", job.id)
        plan = plan_of(SiteSpec(url=url_of(0), limit=self.limit), fetchers=1, concurrency=1)
        plan = msgspec.structs.replace(plan, shard=shard, shards=SHARDS)
        traffic = ShardTraffic(_Progress(self.database, job), plan)  # type: ignore[arg-type]
        traffic.load()
        rows = urls.page(self.database, job.id, wanted=1_000)
        memory = Memory(
            job,
            traffic,
            max([ids_before(shard), *(row.id for row in rows)]) + 1,
            {row.url for row in rows},
            {row.id: row.url for row in rows if row.state == "queued"},
            sum(row.state == DONE for row in rows),
        )
        if not rows and shard == 0:
            memory.add(url_of(0), None)
        self.alive[shard] = memory

    def fetch(self, shard: int) -> None:
        if shard in self.alive:
            self.alive[shard].fetch(self.links)

    def fetch_and_save(self, shard: int) -> None:
        self.fetch(shard)
        self.save(shard)

    def read(self, shard: int) -> None:
        if shard in self.alive:
            self.alive[shard].read()

    def take_in_oldest(self, shard: int) -> None:
        if shard in self.alive:
            self.alive[shard].take_in(0)

    def take_in_newest(self, shard: int) -> None:
        if shard in self.alive:
            self.alive[shard].take_in(-1)

    def save(self, shard: int) -> None:
        self._make_way(shard)
        if shard in self.alive:
            memory = self.alive[shard]
            urls.record(self.database, memory.job, memory.checkpoint())
            memory.traffic.look()

    # Faults.

    def die(self, shard: int) -> None:
        if shard in self.alive:
            self.faults["died"] += 1
            self._rescue(self.alive.pop(shard).job)

    def die_after_commit(self, shard: int) -> None:
        """The answer to the commit is still on its way."""
        self.save(shard)
        self.die(shard)

    def die_between_rows(self, shard: int) -> None:
        """Of several rows of one sender only the newest was taken in."""
        self.read(shard)
        self.take_in_newest(shard)
        self.die_after_commit(shard)

    def save_and_lose_the_lease(self, shard: int) -> None:
        self.save_late(shard)
        if shard in self.late:
            self._rescue(self.late[shard][2])

    def save_late(self, shard: int) -> None:
        """Write a checkpoint, and commit it later. Meanwhile another attempt may have the job."""
        self._make_way(shard)
        if shard not in self.alive:
            return
        memory = self.alive.pop(shard)
        stack = ExitStack()
        transaction = stack.enter_context(self.database.transaction())
        # It stays open for dozens of steps. On a busy machine they take longer than a checkpoint may pause.
        transaction.script("SET LOCAL idle_in_transaction_session_timeout = 0")
        fence(transaction, memory.job, lock=False)
        checkpoint = memory.checkpoint()
        assert checkpoint.shard is not None
        urls.write(transaction, memory.job.id, checkpoint, self.database.now())
        shard_links.write(transaction, memory.job, checkpoint.shard, self.database.now())
        self.late[shard] = (stack, transaction, memory.job)

    def commit_late(self, shard: int) -> None:
        self._commit(shard)

    def _make_way(self, shard: int) -> None:
        """A late checkpoint locks the rows of its shard and, in a crawl with a limit, the row of the parent."""
        for each in list(self.late) if self.limit is not None else [shard]:
            self._commit(each)

    def _commit(self, shard: int) -> None:
        """The end of a late checkpoint: it counts only if its attempt still holds the lease."""
        if shard not in self.late:
            return
        stack, transaction, job = self.late.pop(shard)
        holds = jobs.get(self.database, job.id).run_lease == job.run_lease
        try:
            with stack:
                fence(transaction, job)
        except LeaseLost:
            assert not holds
            self.faults["was refused"] += 1
        else:
            assert holds
            self.faults["committed late"] += 1
            self._rescue(job)  # its process has forgotten everything: it died

    def _rescue(self, job: Job) -> None:
        now = self.database.now() - timedelta(seconds=1)
        current = jobs.get(self.database, job.id)
        assert jobs.rescue(self.database, current, Decision(Status.QUEUED, Wish.RUN, now, 0, 0, "crashed", None))

    # What must be true.

    @invariant()
    def nothing_is_there_twice(self) -> None:
        if not hasattr(self, "parent"):
            return
        rows = urls.page(self.database, self.parent, wanted=1_000)
        assert max(Counter(row.url for row in rows).values(), default=1) == 1
        assert {row.url for row in rows} <= self.reachable
        counts = urls.counts(self.database, self.parent)
        assert counts.discovered == len(rows) == counts.done + counts.queued + counts.in_flight
        assert self.limit is None or counts.done <= self.limit

    @invariant()
    def the_end_is_the_end(self) -> None:
        if not hasattr(self, "parent") or self.late:
            return  # a late checkpoint holds the row of the parent
        verdict = shards.settle(self.database, self.parent, lambda database, ids: None)
        done = {row.url for row in urls.page(self.database, self.parent, wanted=1_000) if row.state == DONE}
        if verdict is not None and verdict.ending == FINISHED:
            assert done == self.reachable
        if verdict is not None and verdict.ending == OVER_LIMIT:
            assert len(done) == self.limit

    def teardown(self) -> None:
        """Without further faults every shard finishes, and every page is stored once."""
        if not hasattr(self, "parent"):
            return
        for shard in list(self.late):
            self._commit(shard)
        for _ in range(300):
            for shard in range(SHARDS):
                self.start(shard)
                self.read(shard)
                while shard in self.alive and self.alive[shard].parcels:
                    self.take_in_oldest(shard)
                self.fetch(shard)
                self.save(shard)
            verdict = shards.settle(self.database, self.parent, lambda database, ids: None)
            if verdict is not None and verdict.ending is not None:
                break
        stored = Counter(result.final_url for result in results.every(self.database, self.parent))
        expected = len(self.reachable) if self.limit is None else min(self.limit, len(self.reachable))
        assert set(stored) <= self.reachable
        assert stored.total() == len(stored) == expected
        type(self).finished += 1
        with self.database.transaction() as transaction:
            transaction.script("DELETE FROM crawl_jobs")


@dataclass
class _Progress:
    database: Database
    job: Job


@pytest.mark.timeout(120)
def test_links_between_shards_arrive_exactly_once(migrated_postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Every attempt is a process of its own. Here they are one process: if an earlier test gave it a meter, a checkpoint
    # would wait for ever for the row of this meter, which a late one holds.
    monkeypatch.setattr(process, "meter_id", lambda: None)
    Shards.database = open_database(migrated_postgres_url)
    try:
        run_state_machine_as_test(
            Shards,
            settings=settings(
                max_examples=12,
                stateful_step_count=3,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                derandomize=True,
                phases=(Phase.explicit, Phase.generate),  # shrinking takes minutes
                database=None,
            ),
        )
    finally:
        Shards.database.close()
    assert Shards.finished >= 12
    assert {"died", "committed late", "was refused"} <= set(Shards.faults)

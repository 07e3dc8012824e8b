"""The kind `page`: one page, or a batch of pages. Each has one result, and no link is followed.

The first checkpoint writes every URL into the ledger. After that, each URL gets its end in the checkpoint that stores
its result. So a new attempt continues where the last one stopped. A page that could not be fetched has a result too,
with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import uvloop

from silkline.crawl.fetcher import Fetcher
from silkline.crawl.field_counts import check_fields
from silkline.crawl.file_budget import fitted
from silkline.crawl.kept_pages import PageKeeper, with_html
from silkline.crawl.messages import FoundUrl, PageOutcome
from silkline.crawl.outcomes import body_of, rendering_of
from silkline.crawl.page_hooks import installed_hooks
from silkline.crawl.plan import Plan, Rendering, Tuning
from silkline.crawl.plan_from_spec import plan_of
from silkline.crawl.purpose import onward
from silkline.crawl.reading import Body, Reading
from silkline.crawl.recorder import Recorder
from silkline.crawl.render_queue import open_files
from silkline.crawl.seed_verdict import check_seeds
from silkline.crawl.small_leader import SmallLeader
from silkline.crawl.url_queue import FrontierUrl
from silkline.fetch.robots import Robots
from silkline.kinds import cache
from silkline.kinds.browser import rendering_for
from silkline.kinds.reader_limits import limits_of, reader_for
from silkline.model import fetched as reasons
from silkline.model.cached import PERSONAL, is_personal
from silkline.model.fetched import Fetched
from silkline.model.job import End
from silkline.model.kind import Context, KindSettings
from silkline.model.ledger import DONE, FAILED, QUEUED, NewResult, QueuedUrl, Settled
from silkline.model.spec import Extracting, Fetching, PageSpec, SiteSpec
from silkline.model.url import canonical, host_of, url_key
from silkline.store.page_cache import HIDDEN_KEYS
from silkline.store.results import Result
from silkline.warc_files import open_archive, place_of

# A user may be waiting for the page: fewer and shorter waits than in a crawl.
TUNING: Final = Tuning(
    retry_base=0.5,
    longest_wait=60.0,
    fail_long_waits=True,
    robots_count=False,
    flush_seconds=0.0,
    refill_rows=1_000,
    booking_seconds=0.0,
)
_MOST_COPIES: Final = 100
"""Results from the cache that are in memory before they are stored."""
_encode = msgspec.json.Encoder().encode


def run(context: Context[PageSpec]) -> End | None:
    spec = context.spec
    plan = plan_for(spec, context.settings, spec.all_urls(), rendering_for(spec, context))
    plan = msgspec.structs.replace(fitted(plan, context.log), by_name=True, hooks=installed_hooks())
    if spec.warc:
        plan = msgspec.structs.replace(plan, archive=place_of(Path(context.settings.data), context.progress.job))
    return uvloop.run(_work(context, plan))


def plan_for(spec: Fetching, settings: KindSettings, urls: Sequence[str], rendering: Rendering | None = None) -> Plan:
    """The engine's plan for fetching the pages of a spec."""
    names = (*Fetching.model_fields, *Extracting.model_fields, "keep_html")
    shared = {name: getattr(spec, name) for name in names if name in type(spec).model_fields}
    like = SiteSpec.model_construct(**shared, urls=tuple(urls), scope="any")
    return plan_of(
        like,
        fetchers=1,
        concurrency=settings.max_concurrent_http,
        contact=settings.contact,
        tuning=limits_of(settings, TUNING),
        rendering=rendering,
    )


async def _work(context: Context[PageSpec], plan: Plan) -> End | None:
    job = PageJob(context, plan)
    leader = SmallLeader(context, plan, reader_for(context, plan))
    try:
        job.recorder = recorder = leader.recorder
        order = await leader.run(job)
        context.log.info("%d pages stored, %d still to do", recorder.stored, recorder.pending)
        if order is None:
            await recorder.ask(check_seeds, context.progress, context.log)
            check_fields(plan, recorder.fields, context.log)
        return order
    finally:
        leader.close()


class PageJob:
    """One attempt of a batch of pages. Implements `SmallJob`."""

    full = False
    over = False
    recorder: Recorder

    def __init__(self, context: Context[PageSpec], plan: Plan) -> None:
        self._spec = context.spec
        self._database = context.progress.database
        self._plan = plan
        self._archive = open_archive(plan.archive)
        self._keeper = PageKeeper() if plan.keep_html else None
        self._files = open_files(plan)
        self._asked = {canonical(url) or url: url for url in reversed(self._spec.all_urls())}
        self._personal = is_personal(self._spec.model_dump(include={*PERSONAL}))

    async def begin(self, fetcher: Fetcher) -> None:
        if self.recorder.next_id == 1:
            self.recorder.append([_seed(address) for address in reversed(self._asked)])
            await self.recorder.save()

    async def search(self) -> None:
        """All URLs of the job are known from the beginning."""

    async def select(self, rows: list[QueuedUrl]) -> list[QueuedUrl]:
        """Settle the URLs that are in the cache, and those that are not valid. Returns the others."""
        left: list[QueuedUrl] = []
        for row in rows:
            cached = await self.recorder.ask(cache.fresh, self._database, row.url, self._spec) if self._caches else None
            if cached is not None:
                self.recorder.end(*_copied(row, self._asked.get(row.url, row.url), cached))
            elif canonical(row.url) is None:
                ended = self.ended(FrontierUrl(0, row.id, row.url, 0), Settled(row.id, FAILED, reasons.BAD_URL), None)
                self.recorder.end(ended.settled, ended.result)
            else:
                left.append(row)
            if self.recorder.unsaved_results >= _MOST_COPIES:
                await self.recorder.save()
        return left

    @property
    def _caches(self) -> bool:
        return self._spec.max_age is not None

    # How answers are used. Implements `Purpose`.

    def introduced(self, host: str, url: str, rules: Robots) -> None:
        """A page job does not use sitemaps."""

    def is_over(self, entry: FrontierUrl) -> bool:
        return False

    def must_wait(self, entry: FrontierUrl) -> bool:
        return False

    def body(self, host: str, entry: FrontierUrl, fetched: Fetched) -> Body:
        return body_of(entry, fetched, simhash=False, sitemap=False, headers=self._plan.wants_headers)

    def follow(self, entry: FrontierUrl, fetched: Fetched, target: str) -> FrontierUrl:
        return onward(entry, target)

    def read(self, host: str, entry: FrontierUrl, fetched: Fetched, reading: Reading) -> PageOutcome:
        if self._archive is not None:
            self._archive.add(entry.id, fetched)
        if self._files is not None and reading.reason is None:
            fetched = self._files.keep(entry.id, fetched)
        state = DONE if reading.reason is None else FAILED
        detail = (reading.detail or "")[:1000] or None
        settled = Settled(entry.id, state, reading.reason, detail, entry.attempts + 1, fetched.status or None)
        result = self._result(entry, settled, fetched, reading.data)
        ended = PageOutcome(settled, result, entry.depth, tally=reading.tally)
        return ended if self._keeper is None or reading.reason else with_html(ended, self._keeper, entry, fetched)

    def ended(self, entry: FrontierUrl, settled: Settled, fetched: Fetched | None) -> PageOutcome:
        return PageOutcome(settled, self._result(entry, settled, fetched, "{}"), entry.depth)

    def close(self) -> None:
        if self._archive is not None:
            self._archive.close()

    def _result(self, entry: FrontierUrl, settled: Settled, fetched: Fetched | None, data: str) -> NewResult:
        address = entry.chain.split(" ", 1)[0] if entry.chain else entry.url
        keys = HIDDEN_KEYS if self._personal else (url_key(address), url_key(entry.url))
        metadata = metadata_of(entry, settled, fetched)
        if settled.reason is None:
            metadata["content"] = self._plan.content
        return NewResult(
            url_id=entry.id,
            original_url=self._asked.get(address, address),
            original_key=keys[0],
            final_url=entry.url,
            final_key=keys[1],
            data=data,
            success=settled.reason is None,
            metadata=_encode(metadata).decode(),
        )


def metadata_of(entry: FrontierUrl, settled: Settled, fetched: Fetched | None) -> dict[str, Any]:
    """How a page was fetched, or why it could not be fetched."""
    metadata: dict[str, Any] = {}
    if fetched is not None:
        metadata = {
            "http_status": fetched.status or None,
            "content_type": fetched.content_type,
            "bytes": fetched.wire_bytes,
            "seconds": round(fetched.timings.total, 4),
            "first_byte": round(fetched.timings.first_byte, 4),
        }
        metadata |= rendering_of(fetched)
    if entry.chain:
        metadata["redirected_from"] = entry.chain.split()
    if settled.reason is not None:
        metadata["error"] = settled.reason
        metadata["detail"] = settled.detail or ""
        metadata["retryable"] = reasons.is_temporary(settled.reason)
    return metadata


def _seed(address: str) -> FoundUrl:
    host = host_of(address) if canonical(address) else ""
    return FoundUrl(url_key(address), address, host, 0, QUEUED, None, None, None, "seed")


def _copied(row: QueuedUrl, asked: str, cached: Result) -> tuple[Settled, NewResult]:
    """Turn a page from the cache into a result of this job."""
    metadata = {
        **{name: value for name, value in cached.metadata.items() if name != "files"},  # they belong to the other job
        "cached": True,
        "cached_from": cached.job_id,
        "fetched_at": cached.created_at.isoformat(),
    }
    key, final_key = HIDDEN_KEYS
    data, said = _encode(cached.data).decode(), _encode(metadata).decode()
    status = cached.metadata.get("http_status")
    settled = Settled(row.id, DONE, None, f"from the cache: job {cached.job_id}", 0, status)
    return settled, NewResult(row.id, asked, key, cached.final_url, final_key, data, True, said)

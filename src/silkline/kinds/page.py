"""The kind `page`: one page, or a batch of them, each with one result, and no link followed.

The ledger gets every URL in the first checkpoint; from then on each ends in the checkpoint that stores its result, so
an attempt that died is taken up where it was. A page that could not be had has a result too, which says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import uvloop

from silkline.crawl.document import Document
from silkline.crawl.equip import open_client
from silkline.crawl.file_budget import fitted
from silkline.crawl.frontier import FrontierUrl
from silkline.crawl.guarded_reader import GuardedReader
from silkline.crawl.messages import FoundUrl
from silkline.crawl.outcomes import as_seen, rendering_of
from silkline.crawl.plan import Plan, Rendering, Tuning, plan_of
from silkline.crawl.recorder import Recorder
from silkline.crawl.render_queue import open_renderer
from silkline.crawl.seed_verdict import check_seeds, try_failed_seeds_again
from silkline.fetch.client import HttpClient
from silkline.fetch.render import Renderer
from silkline.kinds import cache
from silkline.kinds.books import Books
from silkline.kinds.browser import rendering_for
from silkline.kinds.reader_limits import limits_of, reader_for
from silkline.kinds.visits import Visit, Visits
from silkline.model import fetched as reasons
from silkline.model.cached import PERSONAL, is_personal
from silkline.model.fetched import Fetched
from silkline.model.job import End
from silkline.model.kind import Context, KindSettings
from silkline.model.ledger import DONE, FAILED, QUEUED, NewResult, QueuedUrl, Settled
from silkline.model.spec import Fetching, PageSpec, SiteSpec
from silkline.model.url import canonical, host_of, url_key
from silkline.parse.sniff import sniff
from silkline.store.results import Result
from silkline.warc_files import Archive, open_archive, place_of

# Somebody may be waiting for the page: fewer and shorter waits than a crawl has.
TUNING: Final = Tuning(retry_base=0.5, longest_wait=60.0)
_CHUNK: Final = 1_000
_encode = msgspec.json.Encoder().encode


def run(context: Context) -> End | None:
    spec: PageSpec = context.spec
    rendering = rendering_for(spec, context)
    plan = fitted(plan_for(spec, context.settings, spec.all_urls(), rendering), context.log)
    return uvloop.run(_work(context, plan))


def plan_for(spec: Fetching, settings: KindSettings, urls: Sequence[str], rendering: Rendering | None = None) -> Plan:
    """How the pages of a spec are asked for, in the engine's own terms."""
    shared = {name: getattr(spec, name) for name in Fetching.model_fields}
    like = SiteSpec.model_construct(**shared, urls=tuple(urls), scope="any")
    return plan_of(
        like,
        fetchers=1,
        concurrency=settings.max_concurrent_http,
        contact=settings.contact,
        tuning=limits_of(settings, TUNING),
        rendering=rendering,
    )


async def _work(context: Context, plan: Plan) -> End | None:
    archive = _archive(context)
    client = open_client(plan)
    renderer = open_renderer(plan, client) if plan.rendering is not None else None
    recorder = Recorder(context.progress, plan, context.log)
    reader = reader_for(context, plan)
    try:
        return await PageJob(context, plan, client, recorder, reader, archive, renderer).run()
    finally:
        reader.close()
        if renderer is not None:
            renderer.close()
        if archive is not None:
            archive.close()
        client.close()
        client.resolver.close()
        recorder.close()


def _archive(context: Context) -> Archive | None:
    data = Path(context.settings.data)
    return open_archive(place_of(data, context.progress.job)) if context.spec.warc else None


class PageJob:
    """One attempt at a batch of pages."""

    def __init__(
        self,
        context: Context,
        plan: Plan,
        client: HttpClient,
        recorder: Recorder,
        reader: GuardedReader,
        archive: Archive | None = None,
        renderer: Renderer | None = None,
    ) -> None:
        self._archive = archive
        self._renderer = renderer
        self._context = context
        self._spec: PageSpec = context.spec
        self._plan = plan
        self._recorder = recorder
        self._reader = reader
        self._visits = Visits(plan, client, reader, self._visited, show=self._show if renderer is not None else None)
        self._asked = {canonical(url) or url: url for url in reversed(self._spec.all_urls())}
        self._personal = is_personal(self._spec.model_dump(include={*PERSONAL}))
        self._books = Books(context, recorder)
        recorder.in_flight = lambda: self._visits.in_flight
        recorder.live = lambda: {"urls": self._visits.under_way()}

    async def run(self) -> End | None:
        recorder = self._recorder
        await recorder.ask(try_failed_seeds_again, self._context.progress)
        await recorder.open()
        if recorder.next_id == 1:
            recorder.append([_seed(address) for address in reversed(self._asked)])
            await recorder.save()
        order = await self._books.keep(self._visit_all(), self._visits.stop)
        self._context.log.info("%d pages stored, %d still to do", recorder.stored, recorder.pending)
        if order is None:
            await recorder.ask(check_seeds, self._context.progress, self._context.log)
        return order

    async def _visit_all(self) -> None:
        """Everything that is still queued in the ledger, from the cache or from the web."""
        cursor, more = 0, True
        while more and not self._visits.stopping:
            rows, cursor = await self._recorder.ask(self._recorder.read_queued, cursor, _CHUNK, None)
            more = len(rows) >= _CHUNK
            found = await self._recorder.ask(self._look_up, rows)
            for row in rows:
                if row.id in found:
                    await self._books.end(*_copied(row, self._asked.get(row.url, row.url), found[row.id]))
                elif canonical(row.url) is None:
                    await self._visited(Visit(FrontierUrl(0, row.id, row.url, 0), None, FAILED, reasons.BAD_URL))
                else:
                    self._visits.add(FrontierUrl(0, row.id, row.url, 0))
        await self._visits.run()

    def _look_up(self, rows: list[QueuedUrl]) -> dict[int, Result]:
        if self._spec.max_age is None:
            return {}
        database = self._context.progress.database
        found = ((row.id, cache.fresh(database, row.url, self._spec)) for row in rows)
        return {id: result for id, result in found if result is not None}

    # What came of a URL.

    async def _visited(self, visit: Visit) -> None:
        document = Document(reason=visit.reason, detail=visit.detail)
        state = visit.state or FAILED
        if visit.reason is None and visit.fetched is not None:
            document = await self._reader.document(visit.fetched)
            state = DONE if document.reason is None else FAILED
            if self._archive is not None:
                self._archive.add(visit.entry.id, visit.fetched)
        status = visit.fetched.status if visit.fetched is not None else 0
        tries = visit.entry.attempts + (visit.fetched is not None)
        detail = document.detail[:1000] or None
        settled = Settled(visit.entry.id, state, document.reason, detail, tries, status or None)
        self._recorder.count_bytes(_wire_bytes(visit.fetched))
        await self._books.end(settled, self._result(visit, document))

    async def _show(self, fetched: Fetched) -> Fetched:
        """The page as its scripts make it, if they are to run."""
        assert self._renderer is not None and self._plan.rendering is not None  # noqa: S101, PT018
        if sniff(fetched.body, fetched.content_type) != "html":
            return fetched
        if self._plan.rendering.auto and not (await self._reader.document(fetched)).needs_scripts:
            return fetched
        return await self._renderer.render(fetched)

    def _result(self, visit: Visit, document: Document) -> NewResult:
        entry = visit.entry
        address = entry.chain.split(" ", 1)[0] if entry.chain else entry.url
        final = as_seen(entry.url, visit.fetched)[0] if visit.fetched is not None else entry.url
        keys = cache.HIDDEN_KEYS if self._personal else (url_key(address), url_key(final))
        metadata = metadata_of(visit, document)
        if document.reason is None:
            metadata["content"] = self._plan.content
        return NewResult(
            url_id=entry.id,
            original_url=self._asked.get(address, address),
            original_key=keys[0],
            final_url=final,
            final_key=keys[1],
            data=document.data,
            success=document.reason is None,
            metadata=_encode(metadata).decode(),
        )


def metadata_of(visit: Visit, document: Document) -> dict[str, Any]:
    """What is worth knowing about how a page was had, or why it was not."""
    metadata: dict[str, Any] = {}
    fetched = visit.fetched
    if fetched is not None:
        metadata = {
            "http_status": fetched.status or None,
            "content_type": fetched.content_type,
            "bytes": fetched.wire_bytes,
            "seconds": round(fetched.timings.total, 4),
            "first_byte": round(fetched.timings.first_byte, 4),
        }
        metadata |= rendering_of(fetched)
    if visit.entry.chain:
        metadata["redirected_from"] = visit.entry.chain.split()
    if document.reason is not None:
        metadata["error"] = document.reason
        metadata["detail"] = document.detail
        metadata["retryable"] = reasons.is_temporary(document.reason)
    return metadata


def _wire_bytes(fetched: Fetched | None) -> int:
    if fetched is None:
        return 0
    return fetched.wire_bytes + (fetched.rendered.wire_bytes if fetched.rendered is not None else 0)


def _seed(address: str) -> FoundUrl:
    host = host_of(address) if canonical(address) else ""
    return FoundUrl(url_key(address), address, host, 0, QUEUED, None, None, None, "seed")


def _copied(row: QueuedUrl, asked: str, cached: Result) -> tuple[Settled, NewResult]:
    """A page from the cache becomes a result of this job."""
    metadata = {
        **cached.metadata,
        "cached": True,
        "cached_from": cached.job_id,
        "fetched_at": cached.created_at.isoformat(),
    }
    key, final_key = cache.HIDDEN_KEYS
    data, said = _encode(cached.data).decode(), _encode(metadata).decode()
    status = cached.metadata.get("http_status")
    settled = Settled(row.id, DONE, None, f"from the cache: job {cached.job_id}", 0, status)
    return settled, NewResult(row.id, asked, key, cached.final_url, final_key, data, True, said)


run.spec = PageSpec  # type: ignore[attr-defined]

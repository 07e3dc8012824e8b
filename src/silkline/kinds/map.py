"""The kind `map`: the URLs of a site, as its sitemaps list them; with `links`, as a crawl finds them.

Sitemaps are found in robots.txt, else where sites keep them by habit. Each is in the ledger, and so is each URL that
it lists, with a result that says where it stood and when the page was changed last. The pages are not fetched.
"""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Final

import msgspec
import uvloop

from silkline.crawl.equip import open_client
from silkline.crawl.file_budget import fitted
from silkline.crawl.frontier import FrontierUrl
from silkline.crawl.guarded_reader import GuardedReader
from silkline.crawl.isolated_reader import ReaderDied
from silkline.crawl.messages import FoundUrl
from silkline.crawl.plan import Plan
from silkline.crawl.reading import SITEMAP
from silkline.crawl.recorder import Recorder
from silkline.crawl.scope import OUT_OF_SCOPE, domain_of
from silkline.crawl.seed_verdict import check_seeds, try_failed_seeds_again
from silkline.crawl.sitemap_limits import (
    FOREIGN,
    MOST_FOREIGN,
    MOST_NESTED,
    MOST_SITEMAPS,
    MOST_URLS,
    OVER_LIMIT,
)
from silkline.fetch.client import HttpClient
from silkline.kinds import site
from silkline.kinds.books import Books
from silkline.kinds.cache import HIDDEN_KEYS
from silkline.kinds.page import plan_for
from silkline.kinds.reader_limits import reader_for
from silkline.kinds.visits import Visit, Visits
from silkline.model.fetched import READER_DIED
from silkline.model.job import End
from silkline.model.kind import Context
from silkline.model.ledger import DONE, FAILED, QUEUED, SKIPPED, NewResult, Settled
from silkline.model.spec import Fetching, MapSpec, SiteSpec
from silkline.model.url import canonical, host_of, origin_of, url_key
from silkline.parse.sitemap import Sitemap
from silkline.parse.sitemap import SitemapEntry as Listed
from silkline.store import urls

GUESSES: Final = ("/sitemap.xml", "/sitemap_index.xml")
MAX_BODY: Final = 52_428_800
NO_SITEMAP: Final = "no_sitemap"
_NOTED: Final = 1_000  # sitemaps beyond the limit that are in the ledger with that reason; more would only fill it
_LOOKS_LIKE_ONE: Final = (".xml", ".xml.gz", ".txt", ".rss", ".atom")
_encode = msgspec.json.Encoder().encode


def run(context: Context) -> End | None:
    spec: MapSpec = context.spec
    if spec.links:
        return site.run(dataclasses.replace(context, spec=crawl_of(spec)))
    plan = fitted(plan_for(spec, context.settings, spec.all_urls()), context.log)
    return uvloop.run(_work(context, plan))


def crawl_of(spec: MapSpec) -> SiteSpec:
    """The crawl that finds what no sitemap lists: every page is fetched for its links, and nothing else is kept."""
    shared = {name: getattr(spec, name) for name in Fetching.model_fields}
    given = {**shared, "content": "none", "url": spec.url, "urls": spec.urls, "limit": spec.limit}
    return SiteSpec.model_validate(given)


async def _work(context: Context, plan: Plan) -> End | None:
    client = open_client(plan)
    recorder = Recorder(context.progress, plan, context.log)
    reader = reader_for(context, plan)
    try:
        return await MapJob(context, plan, client, recorder, reader).run()
    finally:
        reader.close()
        client.close()
        client.resolver.close()
        recorder.close()


class MapJob:
    """One attempt at a map."""

    def __init__(
        self, context: Context, plan: Plan, client: HttpClient, recorder: Recorder, reader: GuardedReader
    ) -> None:
        self._context = context
        self._spec: MapSpec = context.spec
        self._plan = plan
        self._client = client
        self._reader = reader
        self._recorder = recorder
        self._books = Books(context, recorder)
        self._visits = Visits(plan, client, reader, self._visited, max_body=MAX_BODY)
        self._seen: set[int] = set()
        self._seeds = [url for url in map(canonical, self._spec.all_urls()) if url is not None]
        self._domains = {domain_of(host_of(url)) for url in self._seeds}
        self._most = self._spec.limit or MOST_URLS
        self._listed = 0
        self._sitemaps = 0

    async def run(self) -> End | None:
        recorder = self._recorder
        await recorder.ask(try_failed_seeds_again, self._context.progress)
        await recorder.open()
        self._listed = recorder.stored
        await recorder.ask(self._remember)
        order = await self._books.keep(self._read_all(), self._visits.stop)
        if order is None and recorder.pending:
            await recorder.ask(self._skip_the_rest)
        self._context.log.info("%d URLs in %d sitemaps", self._listed, self._sitemaps)
        if order is None:
            await recorder.ask(check_seeds, self._context.progress, self._context.log, None)
        return order

    def _remember(self) -> None:
        job = self._context.progress.job
        for rows in urls.keys(self._context.progress.database, job.id):
            self._seen.update(key for key, _ in rows)

    def _skip_the_rest(self) -> None:
        urls.skip_queued(self._context.progress.database, self._context.progress.job, OVER_LIMIT)

    async def _read_all(self) -> None:
        if self._recorder.next_id == 1:
            for found in await asyncio.gather(*(self._sitemaps_of(origin) for origin in self._origins())):
                self._append([(url, via, 0) for url, via in found])
            self._append([(url, "seed", 0) for url in self._seeds if url.partition("?")[0].endswith(_LOOKS_LIKE_ONE)])
        else:
            rows, _ = await self._recorder.ask(self._recorder.read_queued, 0, MOST_SITEMAPS, None)
            for row in rows:
                self._visits.add(FrontierUrl(row.depth, row.id, row.url, row.depth, 0, "", row.found_via))
        await self._visits.run()

    def _origins(self) -> list[str]:
        return list(dict.fromkeys(origin_of(url) for url in self._seeds))

    async def _sitemaps_of(self, origin: str) -> list[tuple[str, str]]:
        """Where the sitemaps of an origin are, and how we know."""
        rules = await self._visits.load_rules(origin)
        named = [url for url in (canonical(each, base=origin) for each in rules.sitemaps) if url is not None]
        if named:
            own = [url for url in named if self._is_ours(url)]
            foreign = [url for url in named if not self._is_ours(url)][:MOST_FOREIGN]
            return [(url, "robots") for url in own + foreign]
        guesses = [origin + path for path in GUESSES]
        if not self._plan.ignore_robots and rules.reason is None:
            guesses = [url for url in guesses if rules.allows(url)]
        return [(url, "guess") for url in guesses]

    def _append(self, sitemaps: list[tuple[str, str, int]]) -> None:
        """Sitemaps that are not known yet; those that may not be read are left out with the reason."""
        rows: list[FoundUrl] = []
        for url, via, depth in sitemaps:
            if self._sitemaps < MOST_SITEMAPS + _NOTED and self._is_new(url):
                self._sitemaps += 1
                fits = depth <= MOST_NESTED and self._sitemaps <= MOST_SITEMAPS
                foreign = via == "sitemap_index" and not self._is_ours(url)
                reason = OVER_LIMIT if not fits else OUT_OF_SCOPE if foreign else None
                state, detail = SKIPPED if reason else QUEUED, FOREIGN if reason == OUT_OF_SCOPE else None
                rows.append(FoundUrl(url_key(url), url, host_of(url), depth, state, reason, detail, None, via))
        for id, row in enumerate(rows, self._recorder.append(rows)):
            if row.state == QUEUED:
                self._visits.add(FrontierUrl(row.depth, id, row.url, row.depth, 0, "", row.found_via))

    def _is_ours(self, url: str) -> bool:
        return domain_of(host_of(url)) in self._domains

    def _is_new(self, url: str) -> bool:
        key = url_key(url)
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    # What came of a sitemap.

    async def _visited(self, visit: Visit) -> None:
        entry, fetched = visit.entry, visit.fetched
        status = fetched.status if fetched is not None else None
        tries = entry.attempts + (fetched is not None)
        if visit.reason is not None or fetched is None:
            # That a guess was wrong is no failure.
            missing = entry.via == "guess" and visit.reason in ("http_404", "http_410")
            state, reason = (SKIPPED, NO_SITEMAP) if missing else (visit.state or FAILED, visit.reason)
            await self._books.end(Settled(entry.id, state, reason, visit.detail or None, tries, status), None)
            return
        self._recorder.count_bytes(fetched.wire_bytes)
        sitemap = await self._reader.sitemap(entry.url, fetched.body)
        if isinstance(sitemap, ReaderDied):
            await self._books.end(Settled(entry.id, FAILED, READER_DIED, sitemap.why, tries, status), None)
            return
        if sitemap.kind == "index":
            self._append([(listed.url, "sitemap_index", entry.depth + 1) for listed in sitemap.entries])
        elif sitemap.kind != "unknown":
            self._take(entry, sitemap)
        reason = NO_SITEMAP if sitemap.kind == "unknown" else SITEMAP
        await self._books.end(Settled(entry.id, SKIPPED, reason, _summary(sitemap), tries, status), None)
        if self._listed >= self._most:
            self._visits.stop()

    def _take(self, entry: FrontierUrl, sitemap: Sitemap) -> None:
        """The URLs of one sitemap, each with its result; nothing is awaited, so they share its checkpoint."""
        fresh = [listed for listed in sitemap.entries if self._is_new(listed.url)]
        ours = [listed for listed in fresh if self._is_ours(listed.url)]
        rest = {listed.url for listed in ours[self._most - self._listed :]}
        ours = ours[: self._most - self._listed]
        strangers = {listed.url for listed in fresh} - {listed.url for listed in ours} - rest
        self._recorder.append([_row(listed, entry, SKIPPED, OVER_LIMIT) for listed in fresh if listed.url in rest])
        self._recorder.append(
            [_row(listed, entry, SKIPPED, OUT_OF_SCOPE) for listed in fresh if listed.url in strangers]
        )
        first = self._recorder.append([_row(listed, entry, QUEUED, None) for listed in ours])
        self._listed += len(ours)
        for id, listed in enumerate(ours, first):
            self._books.end_now(Settled(id, DONE, None, None, 0, None), _result(id, listed, entry))


def _row(listed: Listed, entry: FrontierUrl, state: str, reason: str | None) -> FoundUrl:
    url = listed.url
    return FoundUrl(url_key(url), url, host_of(url), entry.depth + 1, state, reason, None, entry.id, "sitemap")


def _result(id: int, listed: Listed, entry: FrontierUrl) -> NewResult:
    """Where a URL stood. The cache must not take it for a page, so its keys are hidden."""
    data = {"sitemap": entry.url, "lastmod": listed.lastmod or None, "priority": listed.priority}
    key, final_key = HIDDEN_KEYS
    said = _encode({name: value for name, value in data.items() if value is not None}).decode()
    return NewResult(id, listed.url, key, listed.url, final_key, said, True, "{}")


def _summary(sitemap: Sitemap) -> str:
    words = f"{sitemap.kind} with {len(sitemap.entries)} entries"
    if sitemap.truncated:
        words += ", more were left out"
    return words + (f"; {sitemap.problem}" if sitemap.problem else "")


run.spec = MapSpec  # type: ignore[attr-defined]

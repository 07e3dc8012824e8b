"""The kind `map`: the URLs of a site that its sitemaps list; with `links`, the URLs that a crawl finds.

Sitemaps are found in robots.txt, or else tried at the usual addresses. Each sitemap is in the ledger. Each URL that it
lists is in the ledger too, with a result that has its sitemap and the date of its last change. The pages are not
fetched. Results are made in portions, because a small sitemap can list many URLs.

A robots.txt may name what it likes as a sitemap, also a page of another site. Such a page is listed like the others.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec
import uvloop

from silkline.crawl.fetcher import Fetcher
from silkline.crawl.file_budget import fitted
from silkline.crawl.host_gate import HostGate
from silkline.crawl.messages import FoundUrl, PageOutcome
from silkline.crawl.outcomes import body_of
from silkline.crawl.plan import Plan
from silkline.crawl.purpose import LATER, MORE, Portions, onward
from silkline.crawl.reading import SITEMAP, Body, Reading
from silkline.crawl.recorder import Recorder
from silkline.crawl.registrable_domain import domain_of
from silkline.crawl.scope import OUT_OF_SCOPE
from silkline.crawl.seed_verdict import check_seeds
from silkline.crawl.sitemap_limits import (
    FOREIGN_SITEMAP,
    MOST_FOREIGN,
    MOST_NAMED_FOR_OTHERS,
    MOST_NESTED,
    MOST_SITEMAPS,
    MOST_URLS,
    OVER_LIMIT,
    SITEMAP_VIAS,
    chain_for,
    owner_of,
)
from silkline.crawl.small_leader import SmallLeader
from silkline.crawl.url_queue import FrontierUrl
from silkline.crawl.url_shares import UrlShares
from silkline.fetch.robots import Robots
from silkline.kinds import site
from silkline.kinds.page import plan_for
from silkline.kinds.reader_limits import reader_for
from silkline.model.fetched import Fetched, is_temporary
from silkline.model.job import End
from silkline.model.kind import Context
from silkline.model.ledger import DONE, FAILED, QUEUED, SKIPPED, NewResult, QueuedUrl, Settled
from silkline.model.spec import Fetching, MapSpec, SiteSpec
from silkline.model.url import canonical, host_of, origin_of, url_key
from silkline.parse.sitemap import Sitemap
from silkline.parse.sitemap import SitemapEntry as Listed
from silkline.parse.sniff import sniff
from silkline.portions import portions_of
from silkline.store import map_sitemaps, urls
from silkline.store.page_cache import HIDDEN_KEYS

GUESSES: Final = ("/sitemap.xml", "/sitemap_index.xml")
MAX_BODY: Final = 52_428_800
NO_SITEMAP: Final = "no_sitemap"
_NOTED: Final = 1_000  # sitemaps beyond the limit that are in the ledger with that reason; more would only fill it
_LISTED: Final = "sitemap"
"""How the URLs were found that a sitemap lists."""
_OWN_VIAS: Final = frozenset({"guess", "seed"})
"""How a sitemap was found that is at the origin whose robots.txt was read."""
LONGEST_SITEMAP_URL: Final = 500
"""Each result repeats the URL of its sitemap. Instead of a longer one it has the id of the sitemap in the ledger."""
_PORTION: Final = 500
_PORTION_BYTES: Final = 1 << 20
_MOST_UNSAVED_BYTES: Final = 8 << 20
_LOOKS_LIKE_ONE: Final = (".xml", ".xml.gz", ".txt", ".rss", ".atom")
_encode = msgspec.json.Encoder().encode


def run(context: Context[MapSpec]) -> End | None:
    spec = context.spec
    if spec.links:
        control, progress, log = context.control, context.progress, context.log
        return site.run(Context(crawl_of(spec), control, progress, log, context.settings, context.marks))
    plan = fitted(plan_for(spec, context.settings, spec.all_urls()), context.log)
    tuning = msgspec.structs.replace(plan.tuning, max_body=MAX_BODY)
    return uvloop.run(_work(context, msgspec.structs.replace(plan, tuning=tuning, listings=True)))


def crawl_of(spec: MapSpec) -> SiteSpec:
    """The crawl that finds URLs that no sitemap lists: every page is fetched for its links only."""
    shared = {name: getattr(spec, name) for name in Fetching.model_fields}
    given = {**shared, "content": "none", "url": spec.url, "urls": spec.urls, "limit": spec.limit}
    return SiteSpec.model_validate(given)


async def _work(context: Context[MapSpec], plan: Plan) -> End | None:
    leader = SmallLeader(context, plan, reader_for(context, plan))
    recorder = leader.recorder
    try:
        job = MapJob(context, plan, recorder)
        order = await leader.run(job)
        if order is None and recorder.pending:
            await recorder.ask(urls.skip_queued, context.progress.database, context.progress.job, OVER_LIMIT)
        context.log.info("%d URLs in %d sitemaps", job.listed, job.sitemaps)
        if order is None:
            await recorder.ask(check_seeds, context.progress, context.log, None)
        return order
    finally:
        leader.close()


class MapJob:
    """One attempt of a map. Implements `SmallJob`."""

    def __init__(self, context: Context[MapSpec], plan: Plan, recorder: Recorder) -> None:
        spec = context.spec
        self._progress = context.progress
        self._plan = plan
        self._recorder = recorder
        self._pages: set[int] = set()
        """Python's hash of each listed URL. It has a secret seed, so no URL can be made to hide another one."""
        self._sitemaps: set[int] = set()
        """The same for sitemaps, and for each that a domain must not name with this domain: a site that lists a sitemap
        of another one as a page, or names it in vain, does not hide it."""
        self._seeds = [url for url in map(canonical, spec.all_urls()) if url is not None]
        self._domains = {domain_of(host_of(url)) for url in self._seeds}
        self._unread = dict.fromkeys(map(origin_of, self._seeds), True)
        """Origins whose robots.txt was not read yet, and whether it was not even asked for. A new attempt also reads
        those again that may have been read."""
        self._found: Callable[[list[FoundUrl]], None]
        self._next_at: Callable[[str], float]
        self._gate: HostGate
        self._loop = asyncio.get_running_loop()
        self._shares = UrlShares(spec.limit or MOST_URLS, self._domains, self._loop.time())
        self._named: Counter[str] = Counter()
        """How many sitemaps each domain has named."""
        self._named_for_others: Counter[str] = Counter()

    @property
    def full(self) -> bool:
        recorder = self._recorder
        waiting = max(recorder.unsaved_results, recorder.unsaved_urls)
        return waiting >= self._plan.tuning.hard_unsaved or recorder.unsaved_bytes >= _MOST_UNSAVED_BYTES

    @property
    def over(self) -> bool:
        return self._shares.over

    @property
    def listed(self) -> int:
        return self._shares.total

    @property
    def sitemaps(self) -> int:
        return self._named.total()

    async def begin(self, fetcher: Fetcher) -> None:
        self._found, self._gate, self._next_at = fetcher.add, fetcher.gate, fetcher.next_at
        if self._recorder.next_id > 1:
            await self._recorder.ask(self._remember)
        self._shares.waiting.update(map(owner_of, self._unread))

    async def search(self) -> None:
        """Load the robots.txt of each origin. A slow one holds up only its own site."""
        at_once = asyncio.Semaphore(max(1, self._plan.concurrency // 2))
        await asyncio.gather(*(self._load(origin, at_once) for origin in list(self._unread)))

    async def _load(self, origin: str, at_once: asyncio.Semaphore) -> None:
        async with at_once:
            if self.over or origin not in self._unread:
                return
            rules = await self._gate.load_rules(f"{origin}/")
            if self._plan.ignore_robots and is_temporary(rules.reason):  # otherwise the fetcher asks again
                rules = await self._gate.load_rules(f"{origin}/")
        self._use(origin, rules)

    def _use(self, origin: str, rules: Robots) -> None:
        """Add what is known of an origin, all at once: an attempt that is killed has stored all of it or nothing."""
        if origin not in self._unread:
            return
        is_first, owner = self._unread.pop(origin), owner_of(origin)
        found = self._sitemaps_of(origin, rules)
        named = [url for url in self._seeds if origin_of(url) == origin and _looks_like_a_sitemap(url)]
        self._found(found + self._rows(named, "seed", 0, owner))
        if rules.reason is None:
            self._shares.came_further(owner, self._loop.time())
        self._shares.sleeps(owner, self._loop.time(), self._next_at(host_of(origin)))
        if is_temporary(rules.reason):  # it is asked for again before the first guess, and may name other sitemaps
            self._unread[origin] = False
        if is_first:
            self._shares.ended(owner)

    async def select(self, rows: list[QueuedUrl]) -> list[QueuedUrl]:
        return rows

    def _remember(self) -> None:
        origins = set(self._unread)
        for rows in urls.every(self._progress.database, self._progress.job.id):
            self._pages.update(hash(url) for url, _, via in rows if via == _LISTED)
        for url, chain, via, reason in map_sitemaps.sitemaps(self._progress.database, self._progress.job.id):
            self._sitemaps.add(_hash(url, owner_of(url, chain or ""), reason))
            if via in _OWN_VIAS:
                self._unread.pop(origin_of(url), None)
        for url, chain, number in map_sitemaps.listed(self._progress.database, self._progress.job.id):
            self._shares.add(owner_of(url, chain or ""), number, self._loop.time())
        self._shares.total = self._recorder.stored
        after = 0
        while rows_queued := urls.queued(self._progress.database, self._progress.job.id, after=after):
            self._shares.waiting.update(owner_of(row.url, row.chain or "") for row in rows_queued)
            tried = {origin_of(row.url) for row in rows_queued if row.found_via in _OWN_VIAS}
            self._unread.update(dict.fromkeys(tried & origins, True))
            after = rows_queued[-1].id

    def _sitemaps_of(self, origin: str, rules: Robots) -> list[FoundUrl]:
        """The sitemaps of an origin."""
        owner = owner_of(origin)
        named = [url for url in (canonical(each, base=origin) for each in rules.sitemaps) if url is not None]
        if named:
            own = [url for url in named if self._is_ours(url)]
            foreign = [url for url in named if not self._is_ours(url)][:MOST_FOREIGN]
            return self._rows(own + foreign, "robots", 0, owner)
        guesses = [origin + path for path in GUESSES]
        if not self._plan.ignore_robots and rules.reason is None:
            guesses = [url for url in guesses if rules.allows(url)]
        return self._rows(guesses, "guess", 0, owner)

    def _rows(self, sitemaps: list[str], via: str, depth: int, owner: str) -> list[FoundUrl]:
        """The sitemaps that are not known yet, and that a domain may name. Those that must not be read are skipped with
        the reason. But if the domain may not name one of another seed, it stays unknown: that domain may name it. One
        that it may name has no depth from it: nothing below it is too deep because of who named it first."""
        rows: list[FoundUrl] = []
        for url in sitemaps:
            host = host_of(url)
            of_other = domain_of(host) != owner and self._is_ours(url)
            level = 0 if of_other else depth
            fits = level <= MOST_NESTED and self._named[owner] < MOST_SITEMAPS
            if of_other and not (fits and self._named_for_others[owner] < MOST_NAMED_FOR_OTHERS):
                continue
            foreign = via == "sitemap_index" and not self._is_ours(url)
            reason = OVER_LIMIT if not fits else OUT_OF_SCOPE if foreign else None
            known = {hash(url), hashed := _hash(url, owner, reason)}
            if self._named[owner] < MOST_SITEMAPS + _NOTED and self._sitemaps.isdisjoint(known):
                self._sitemaps.add(hashed)
                self._named[owner] += 1
                self._named_for_others[owner] += of_other
                state, detail = SKIPPED if reason else QUEUED, FOREIGN_SITEMAP if reason == OUT_OF_SCOPE else None
                chain = None if self._is_ours(url) else chain_for(owner)
                rows.append(FoundUrl(url_key(url), url, host, level, state, reason, detail, None, via, chain))
                if state == QUEUED:
                    self._shares.waiting[owner_of(url, chain or "")] += 1
        return rows

    def _is_ours(self, url: str) -> bool:
        return domain_of(host_of(url)) in self._domains

    def _is_new(self, url: str) -> bool:
        """Whether the URL was neither listed nor is a sitemap. It is listed now."""
        hashed = hash(url)
        if hashed in self._pages or hashed in self._sitemaps:
            return False
        self._pages.add(hashed)
        return True

    # How answers are used. Implements `Purpose`.

    def introduced(self, host: str, url: str, rules: Robots) -> None:
        if not self._plan.ignore_robots:  # otherwise nobody has read it
            self._use(origin_of(url), rules)

    def is_over(self, entry: FrontierUrl) -> bool:
        return self.over

    def must_wait(self, entry: FrontierUrl) -> bool:
        return self._shares.must_wait(owner_of(entry.url, entry.chain), self._loop.time())

    def body(self, host: str, entry: FrontierUrl, fetched: Fetched) -> Body:
        return body_of(entry, fetched, simhash=False, sitemap=True)

    def follow(self, entry: FrontierUrl, fetched: Fetched, target: str) -> FrontierUrl:
        return onward(entry, target)

    def read(self, host: str, entry: FrontierUrl, fetched: Fetched, reading: Reading) -> PageOutcome | Portions:
        tries, status, sitemap = entry.attempts + 1, fetched.status, reading.sitemap
        owner = owner_of(entry.url, entry.chain)
        self._shares.sleeps(owner, self._loop.time(), self._next_at(host))
        if sitemap is None:
            return self._end(entry, Settled(entry.id, FAILED, reading.reason, reading.detail, tries, status))
        if sitemap.kind == "index":
            below = [listed.url for listed in sitemap.entries]
            rows = self._rows(below, "sitemap_index", entry.depth + 1, owner)
            self._found(rows)
            if any(row.state == QUEUED for row in rows):
                self._shares.came_further(owner, self._loop.time())
        if sitemap.kind == "unknown" and self._is_page(entry, fetched):
            return self._list_page(entry, tries, status)
        reason = NO_SITEMAP if sitemap.kind == "unknown" else SITEMAP
        settled = Settled(entry.id, SKIPPED, reason, _summary(sitemap), tries, status)
        if sitemap.kind in ("index", "unknown"):
            return self._end(entry, settled)
        return self._take(entry, sitemap, settled)

    def _is_page(self, entry: FrontierUrl, fetched: Fetched) -> bool:
        """Whether what was named as a sitemap is a page of the site. `sitemap.xml` with HTML is an error message."""
        named = entry.via in SITEMAP_VIAS and not entry.chain and not _looks_like_a_sitemap(entry.url)
        if not named or not self._is_ours(entry.url) or hash(entry.url) in self._pages:
            return False
        return sniff(fetched.body, fetched.content_type, fetched.charset) in ("html", "pdf")

    def _list_page(self, entry: FrontierUrl, tries: int, status: int) -> PageOutcome:
        if self.over:
            return self._end(entry, Settled(entry.id, SKIPPED, OVER_LIMIT, None, tries, status))
        self._shares.add(owner_of(entry.url, entry.chain), 1, self._loop.time())
        settled = Settled(entry.id, DONE, None, None, tries, status)
        return self._end(entry, settled, _hidden_result(entry.id, entry.url, "{}"))

    def ended(self, entry: FrontierUrl, settled: Settled, fetched: Fetched | None) -> PageOutcome:
        # A wrong guess is not a failure.
        if entry.via == "guess" and settled.reason in ("http_404", "http_410"):
            settled = settled._replace(state=SKIPPED, reason=NO_SITEMAP)
        return self._end(entry, settled)

    def _end(self, entry: FrontierUrl, settled: Settled, result: NewResult | None = None) -> PageOutcome:
        self._shares.ended(owner_of(entry.url, entry.chain))
        return PageOutcome(settled, result, entry.depth)

    def close(self) -> None:
        """There is nothing to close."""

    def _take(self, entry: FrontierUrl, sitemap: Sitemap, settled: Settled) -> Portions:
        """Record the URLs of one sitemap, each with its result, and then the end of the sitemap.

        If the job has enough URLs, the rest of them is only counted. If the domain has its share of them, the sitemap
        is fetched again later: to keep it until then could take much memory.
        """
        left = len(sitemap.entries)
        for portion in portions_of(sitemap.entries, _PORTION, _size, _PORTION_BYTES):
            if self.over:
                settled = settled._replace(detail=f"{settled.detail}; {left} of them are beyond the limit of the job")
                break
            if not self._record(entry, portion):
                yield LATER
                return
            left -= len(portion)
            if left and not self.over:
                yield MORE
        yield self._end(entry, settled)

    def _record(self, entry: FrontierUrl, portion: list[Listed]) -> bool:
        """Whether the domain could list all that the job still takes."""
        owner = owner_of(entry.url, entry.chain)
        room = self._shares.room(owner, self._loop.time())
        fresh = [listed for listed in portion if self._is_new(listed.url)]
        ours = [listed for listed in fresh if self._is_ours(listed.url)]
        strangers = [listed for listed in fresh if not self._is_ours(listed.url)]
        taken, rest = ours[:room], ours[room:]
        self._shares.add(owner, len(taken), self._loop.time())
        if self.over:
            self._recorder.append([_row(listed, entry, SKIPPED, OVER_LIMIT) for listed in rest])
        else:
            self._pages.difference_update(hash(listed.url) for listed in rest)
        self._recorder.append([_row(listed, entry, SKIPPED, OUT_OF_SCOPE) for listed in strangers])
        first = self._recorder.append([_row(listed, entry, QUEUED, None) for listed in taken])
        for id, listed in enumerate(taken, first):
            self._recorder.end(Settled(id, DONE, None, None, 0, None), _result(id, listed, entry))
        return self.over or not rest


def _hash(url: str, owner: str, reason: str | None) -> int:
    """What is remembered of a sitemap that a domain names. One that it must not name may be named by another one."""
    return hash(f"{owner} {url}" if reason in (OVER_LIMIT, OUT_OF_SCOPE) else url)


def _looks_like_a_sitemap(url: str) -> bool:
    return url.partition("?")[0].endswith(_LOOKS_LIKE_ONE)


def _size(listed: Listed) -> int:
    return len(listed.url)


def _row(listed: Listed, entry: FrontierUrl, state: str, reason: str | None) -> FoundUrl:
    url = listed.url
    return FoundUrl(url_key(url), url, host_of(url), entry.depth + 1, state, reason, None, entry.id, _LISTED)


def _result(id: int, listed: Listed, entry: FrontierUrl) -> NewResult:
    """The sitemap entry of a URL."""
    short = len(entry.url) <= LONGEST_SITEMAP_URL
    data = {
        "sitemap": entry.url if short else None,
        "sitemap_id": None if short else entry.id,
        "lastmod": listed.lastmod or None,
        "priority": listed.priority,
    }
    said = _encode({name: value for name, value in data.items() if value is not None}).decode()
    return _hidden_result(id, listed.url, said)


def _hidden_result(id: int, url: str, said: str) -> NewResult:
    """The cache must not use it as a page, so its keys are hidden."""
    key, final_key = HIDDEN_KEYS
    return NewResult(id, url, key, url, final_key, said, True, "{}")


def _summary(sitemap: Sitemap) -> str:
    words = f"{sitemap.kind} with {len(sitemap.entries)} entries"
    if sitemap.truncated:
        words += ", more were left out"
    return words + (f"; {sitemap.problem}" if sitemap.problem else "")

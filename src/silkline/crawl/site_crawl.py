"""The purpose of a `site` job: links and redirect targets become new URLs, and pages that were read are stored."""

from __future__ import annotations

from silkline.crawl.discovery import Discovery
from silkline.crawl.kept_pages import PageKeeper, with_html
from silkline.crawl.messages import PageOutcome
from silkline.crawl.outcomes import all_wire_bytes, body_of, page_of, redirect_of
from silkline.crawl.plan import Plan
from silkline.crawl.reading import SITEMAP, Body, Reading
from silkline.crawl.render_queue import open_files
from silkline.crawl.sitemap_limits import SITEMAP_VIAS
from silkline.crawl.sitemaps import Sitemaps
from silkline.crawl.url_queue import FrontierUrl, is_foreign
from silkline.fetch.robots import Robots
from silkline.model.fetched import TOO_MANY_REDIRECTS, Fetched
from silkline.model.ledger import FOREIGN, Settled
from silkline.model.parcel import Links
from silkline.model.url import host_of
from silkline.warc_files import open_archive


class SiteCrawl:
    """Implements `Purpose`, for one fetcher of a crawl."""

    full = False

    def __init__(self, index: int, plan: Plan, discovery: Discovery) -> None:
        self._discovery = discovery
        self._sitemaps = Sitemaps(plan, discovery)
        self._archive = open_archive(plan.archive, index)
        self._headers = plan.wants_headers
        self._keeper = PageKeeper() if plan.keep_html else None
        self._files = open_files(plan)

    def introduced(self, host: str, url: str, rules: Robots) -> None:
        self._sitemaps.named(host, url, rules)

    def is_over(self, entry: FrontierUrl) -> bool:
        return self._sitemaps.is_over(entry)

    def must_wait(self, entry: FrontierUrl) -> bool:
        return False

    def body(self, host: str, entry: FrontierUrl, fetched: Fetched) -> Body:
        wants_simhash = self._discovery.wants_simhash(host)
        is_sitemap = entry.via in SITEMAP_VIAS and not self._sitemaps.is_page(entry, fetched)
        return body_of(entry, fetched, simhash=wants_simhash, sitemap=is_sitemap, headers=self._headers)

    def follow(self, entry: FrontierUrl, fetched: Fetched, target: str) -> PageOutcome:
        if entry.via in SITEMAP_VIAS:
            via = self._sitemaps.via_after_redirect(entry, target)
        else:
            via = FOREIGN if is_foreign(entry) else "redirect"
        chain = " ".join((*entry.chain.split(), entry.url))
        self._discovery.links([target], Links(entry.id, entry.depth, via, chain, [], host_of(entry.url)))
        return redirect_of(entry, fetched, target)

    def read(self, host: str, entry: FrontierUrl, fetched: Fetched, reading: Reading) -> PageOutcome:
        if reading.reason == SITEMAP:
            reading = self._sitemaps.was_read(entry, reading)
        elif reading.links:
            most_bytes = self._discovery.page_bytes(all_wire_bytes(fetched))
            links = Links(entry.id, entry.depth + 1, "link", "", [], host, most_bytes)
            self._discovery.links(reading.links, links)
        if reading.reason is None:
            if self._archive is not None:
                self._archive.add(entry.id, fetched)
            if self._files is not None:
                fetched = self._files.keep(entry.id, fetched)
            self._discovery.fetched(host, entry.url, reading.simhash, foreign=is_foreign(entry))
        ended = page_of(entry, fetched, reading)
        return ended if self._keeper is None or reading.reason else with_html(ended, self._keeper, entry, fetched)

    def ended(self, entry: FrontierUrl, settled: Settled, fetched: Fetched | None) -> PageOutcome:
        if settled.reason == TOO_MANY_REDIRECTS and settled.detail and is_foreign(entry):
            self._discovery.not_followed(entry.url, settled.detail)
        return PageOutcome(settled, None, entry.depth)

    def close(self) -> None:
        if self._archive is not None:
            self._archive.close()

"""The sitemaps of a fetcher: those that robots.txt names, those that an index lists, and the pages they list.

A sitemap obeys the robots.txt and the pace of its host, like any page. On a host that is not part of the crawl it is
read only if the robots.txt of a host of the crawl names it, and only a few of those are read.

A site may name what it likes as a sitemap, also pages of other sites. So each domain has an allowance of its own and
names only a few sitemaps on other domains, and a "sitemap" that is a page or a PDF of the crawl is read as that.
"""

from __future__ import annotations

import msgspec

from silkline.crawl.discovery import Discovery
from silkline.crawl.plan import Plan
from silkline.crawl.reading import SITEMAP, Reading
from silkline.crawl.registrable_domain import domain_of
from silkline.crawl.sitemap_limits import (
    MOST_FOREIGN,
    MOST_NAMED,
    SITEMAP_VIAS,
    SitemapAllowance,
    chain_at,
    is_named_by_others,
    level_of,
)
from silkline.crawl.url_queue import FrontierUrl
from silkline.fetch.robots import Robots
from silkline.model.fetched import Fetched
from silkline.model.parcel import Links
from silkline.model.url import canonical, host_of, packed_keys
from silkline.parse.sitemap import lists_urls
from silkline.parse.sniff import sniff


class Sitemaps:
    """The sitemaps of one fetcher's hosts."""

    def __init__(self, plan: Plan, discovery: Discovery) -> None:
        # With depth 0, every page that a sitemap lists is too deep.
        self._wanted = plan.sitemaps and (plan.depth is None or plan.depth > 0)
        self._discovery = discovery
        self._limit = plan.limit
        self._allowances: dict[str, SitemapAllowance] = {}

    def named(self, host: str, url: str, rules: Robots) -> None:
        """Add the sitemaps that the robots.txt of a host names."""
        covers = self._discovery.covers
        if not rules.sitemaps or not self._wanted or not covers(host):
            return
        found = [
            each for each in (canonical(name, base=url) for name in rules.sitemaps[:MOST_NAMED]) if each is not None
        ]
        taken = self._allowance_of(host).take_sitemaps(_mostly_of(host, found))
        self._discovery.links(taken, Links(0, 1, "robots", "", [], host))

    def is_over(self, entry: FrontierUrl) -> bool:
        """Whether an entry is a sitemap that is not needed any more."""
        # What others name as a sitemap may be a page.
        if entry.via not in SITEMAP_VIAS or is_named_by_others(entry.chain):
            return False
        return self._allowance_of(host_of(entry.url)).urls <= 0

    def is_page(self, entry: FrontierUrl, fetched: Fetched) -> bool:
        """Whether what was named as a sitemap is a page of the crawl."""
        kind = sniff(fetched.body, fetched.content_type, fetched.charset)
        if kind not in ("html", "pdf", "text") or (kind == "text" and lists_urls(fetched.body)):
            return False
        return self._discovery.wants_page(entry.url, entry.depth)

    def was_read(self, entry: FrontierUrl, reading: Reading) -> Reading:
        """Take the entries of a sitemap, up to the limits. Returns the reading, with a note on what was left out."""
        discovery, source = self._discovery, host_of(entry.url)
        allowance = self._allowance_of(source)
        pages = allowance.take_urls(reading.links)
        further = allowance.take_sitemaps(_mostly_of(source, reading.sitemaps))
        if pages:
            discovery.links(pages, Links(entry.id, entry.depth, SITEMAP, "", [], source))
        if further:
            below = chain_at(level_of(entry.chain) + 1)
            discovery.links(further, Links(entry.id, entry.depth, "sitemap_index", below, [], source))
        taken, listed = len(pages) + len(further), len(reading.links) + len(reading.sitemaps)
        if taken == listed:
            return reading
        detail = f"{taken} of {listed} entries taken: the limits of the crawl allow no more"
        return msgspec.structs.replace(reading, detail=detail, names=packed_keys([*pages, *further]))

    def _allowance_of(self, host: str) -> SitemapAllowance:
        domain = domain_of(host)
        allowance = self._allowances.get(domain)
        if allowance is None:
            allowance = self._allowances[domain] = SitemapAllowance(self._limit)
        return allowance

    def via_after_redirect(self, entry: FrontierUrl, target: str) -> str:
        """The `via` for the redirect target of a sitemap. On another host it does not count as named by robots.txt."""
        return entry.via if host_of(target) == host_of(entry.url) else "sitemap_index"


def _mostly_of(host: str, sitemaps: list[str]) -> list[str]:
    """The sitemaps on the domain of a host, and a few others."""
    domain = domain_of(host)
    domains = {each: domain_of(each) for each in {host_of(url) for url in sitemaps}}
    own = [url for url in sitemaps if domains[host_of(url)] == domain]
    others = [url for url in sitemaps if domains[host_of(url)] != domain]
    return own + others[:MOST_FOREIGN]

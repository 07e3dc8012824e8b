"""The sitemaps of a fetcher: those that robots.txt names, those that an index lists, and the pages they list.

A sitemap obeys the robots.txt and the pace of its host, like any page. On a host that is not part of the crawl it is
read only if the robots.txt of a host of the crawl names it, and only a few of those are read.
"""

from __future__ import annotations

import msgspec

from silkline.crawl.discovery import Discovery
from silkline.crawl.frontier import FrontierUrl
from silkline.crawl.plan import Plan
from silkline.crawl.reading import SITEMAP, Reading
from silkline.crawl.sitemap_limits import (
    MOST_FOREIGN,
    MOST_NAMED,
    SITEMAP_VIAS,
    SitemapAllowance,
    chain_at,
    level_of,
)
from silkline.fetch.robots import Robots
from silkline.model.parcel import Links
from silkline.model.url import canonical, host_of

_DIGEST = 8  # bytes for each address that a page names (seen.py)


class Sitemaps:
    """The sitemaps of one fetcher's hosts."""

    def __init__(self, plan: Plan, discovery: Discovery) -> None:
        # With depth 0, every page that a sitemap lists is too deep.
        self._wanted = plan.sitemaps and (plan.depth is None or plan.depth > 0)
        self._discovery = discovery
        self._allowance = SitemapAllowance(plan.limit)

    def named(self, host: str, url: str, rules: Robots) -> None:
        """Add the sitemaps that the robots.txt of a host names."""
        covers = self._discovery.covers
        if not rules.sitemaps or not self._wanted or not covers(host):
            return
        found = [
            each for each in (canonical(name, base=url) for name in rules.sitemaps[:MOST_NAMED]) if each is not None
        ]
        own = [each for each in found if covers(host_of(each))]
        foreign = [each for each in found if not covers(host_of(each))][:MOST_FOREIGN]
        self._discovery.links(self._allowance.take_sitemaps(own + foreign), Links(0, 1, "robots", "", []))

    def is_over(self, entry: FrontierUrl) -> bool:
        """Whether an entry is a sitemap that is not needed any more."""
        return entry.via in SITEMAP_VIAS and self._allowance.urls <= 0

    def was_read(self, entry: FrontierUrl, reading: Reading) -> Reading:
        """Take the entries of a sitemap, up to the limits. Returns the reading, with a note on what was left out."""
        allowance, discovery = self._allowance, self._discovery
        pages = allowance.take_urls(reading.links)
        further = allowance.take_sitemaps(reading.sitemaps)
        if pages:
            discovery.links(pages, Links(entry.id, entry.depth, SITEMAP, "", [], host_of(entry.url)))
        if further:
            below = chain_at(level_of(entry.chain) + 1)
            source = host_of(entry.url)
            discovery.links(further, Links(entry.id, entry.depth, "sitemap_index", below, [], source))
        taken, listed = len(pages) + len(further), len(reading.links) + len(reading.sitemaps)
        if taken == listed:
            return reading
        detail = f"{taken} of {listed} entries taken: the limits of the crawl allow no more"
        return msgspec.structs.replace(reading, detail=detail, names=reading.names[: _DIGEST * taken])

    def via_after_redirect(self, entry: FrontierUrl, target: str) -> str:
        """The `via` for the redirect target of a sitemap. On another host it does not count as named by robots.txt."""
        return entry.via if host_of(target) == host_of(entry.url) else "sitemap_index"

"""How many sitemaps a job reads, how deep they nest, and how many URLs it takes from them: the same for `site` and
`map`."""

from __future__ import annotations

import re
from typing import Final

from silkline.crawl.registrable_domain import domain_of
from silkline.model.ledger import FOREIGN
from silkline.model.url import host_of

SITEMAP_VIAS: Final = frozenset({"robots", "sitemap_index"})
"""How a URL was found that is a sitemap itself. It is not a page, and has its own rules."""
MOST_URLS: Final = 1_000_000
MOST_SITEMAPS: Final = 20_000
MOST_NESTED: Final = 10
MOST_NAMED: Final = 100
"""How many sitemaps one robots.txt may name."""
MOST_FOREIGN: Final = 5
"""How many sitemaps one robots.txt, or one index, may name on hosts of another domain."""
MOST_NAMED_FOR_OTHERS: Final = 100
"""How many sitemaps one domain may name on the domains of other seeds of a `map`. Those have sitemaps of their own."""
OVER_LIMIT: Final = "over_limit"
FOREIGN_SITEMAP: Final = "a sitemap on another host that robots.txt does not name"
_LEVEL: Final = re.compile(r"level-(\d{1,4})(?: |\Z)")


def level_of(chain: str) -> int:
    """How many sitemap indexes are above a sitemap. `chain` is the ledger's note on how it was found."""
    found = _LEVEL.match(chain)
    return int(found[1]) if found is not None else 0


def named_by_others(chain: str) -> str:
    """The ledger's note for a sitemap that only another host names."""
    return chain if is_named_by_others(chain) else " ".join((chain_at(level_of(chain)), FOREIGN, *urls_in(chain)))


def named_by_host(chain: str) -> str:
    """The same when its own host names it too."""
    return chain.replace(f" {FOREIGN}", "", 1)


def is_named_by_others(chain: str) -> bool:
    return f" {FOREIGN}" in chain


def urls_in(chain: str) -> list[str]:
    """The URLs that redirected to an entry, without the note on a sitemap."""
    return [each for each in chain.split() if "://" in each]


def chain_at(level: int) -> str:
    """The ledger's note for a sitemap below this many indexes."""
    return f"level-{level}"


def chain_for(domain: str) -> str:
    """The ledger's note for a sitemap that a domain keeps on another one."""
    return f"for-{domain}"


def owner_of(url: str, chain: str = "") -> str:
    """The domain that a sitemap belongs to, also after redirects."""
    first = chain.partition(" ")[0]
    return first.removeprefix("for-") if first.startswith("for-") else domain_of(host_of(first or url))


class SitemapAllowance:
    """How much may still be taken from the sitemaps of one domain. A job with a limit takes a few times that limit.

    It takes more, because some pages in sitemaps are missing, already known, or out of scope.
    """

    __slots__ = ("sitemaps", "urls")

    def __init__(self, limit: int | None) -> None:
        self.sitemaps = MOST_SITEMAPS if limit is None else min(MOST_SITEMAPS, 20 + limit)
        self.urls = MOST_URLS if limit is None else min(MOST_URLS, 100 + 4 * limit)

    def take_sitemaps(self, urls: list[str]) -> list[str]:
        taken = urls[: self.sitemaps]
        self.sitemaps -= len(taken)
        return taken

    def take_urls(self, urls: list[str]) -> list[str]:
        taken = urls[: self.urls]
        self.urls -= len(taken)
        return taken

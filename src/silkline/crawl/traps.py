"""Detects sites with endless URLs: calendars, session ids in paths, every combination of filters. Pure.

Each host has budgets. A URL beyond one is skipped with the reason `trap` and a detail that names the budget. The ledger
has only the first of those (`Tuning.trap_rows` for each host), so that a site cannot fill it with endless links. For
small hosts only the URLs are counted. The other checks start when a host has more than a few hundred URLs.

The pages of a host have a budget too: the bytes of the rows that they cause (`Tuning.source_bytes`), except for URLs of
the host itself that are to be fetched. All hosts of one domain together have 16 times this budget. A single page may
cause `Tuning.page_bytes`, and more if it is large. URLs beyond that are only counted; if a page of another host links
to the same URL, it is stored.

Paths and templates of URLs are kept as digests with a random seed: as text, those of one host could take 160 MB.
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Final

from xxhash import xxh3_64_intdigest

from silkline.crawl.plan import Tuning
from silkline.crawl.registrable_domain import domain_of

TRAP: Final = "trap"
CLOSE_LOOK: Final = 300
MOST_SEGMENTS: Final = 40
LAST_ROW: Final = "further URLs of this host that look like a trap are counted, but not stored"
_HOSTS_OF_TRAPS: Final = 50
"""A site with endless hosts has traps on each host. One fetcher stores at most the traps of this many hosts."""
ROW_BYTES: Final = 64
"""What a row takes besides its URL. So a limit on bytes is also a limit on rows."""
_SOURCES: Final = 200_000
_HOSTS_OF_DOMAINS: Final = 16
"""A domain with endless hosts has the budget of this many hosts for the rows that their pages cause."""
_REPEATS: Final = 4
_TEMPLATES: Final = 20_000
_DUPLICATES_IN: Final = 64
_SAME_WITHIN: Final = 3  # bits of 64
_NUMBER: Final = re.compile(r"\d+")
_MASK: Final = (1 << 64) - 1
_NOTHING: Final[frozenset[int]] = frozenset()


class HostBudget:
    """What is known about the URLs of one host."""

    __slots__ = ("budgets", "bytes", "closed", "duplicates", "foreign", "found", "stored")

    def __init__(self) -> None:
        self.found = 0
        self.bytes = 0
        self.stored = 0
        """URLs that look like a trap and are in the ledger."""
        self.budgets: dict[int, int] | None = None
        self.duplicates: dict[int, Duplicates] | None = None
        self.closed: set[int] | None = None
        self.foreign: HostBudget | None = None
        """The budget for links on pages of other hosts."""

    def of_foreign(self) -> HostBudget:
        self.foreign = self.foreign or HostBudget()
        return self.foreign


class Duplicates:
    """How many pages of one template are new."""

    __slots__ = ("last", "pages", "same")

    def __init__(self) -> None:
        self.last = 0
        self.pages = 0
        self.same = 0


class Traps:
    """The budgets of one crawl."""

    def __init__(self, tuning: Tuning, seed: int) -> None:
        self._tuning = tuning
        self._seed = seed
        self._stored = 0
        self._bytes_by_source: dict[str, int] = {}
        self._bytes_by_domain: dict[str, int] = {}

    def know(self, host: HostBudget, found: int, size: int, stored: int) -> None:
        """The ledger has `found` URLs of this host, of this size; `stored` of them look like a trap."""
        host.found += found
        host.bytes += size
        host.stored += stored
        self._stored += stored

    def know_source(self, source: str, size: int) -> None:
        """The pages of this host have caused rows of this size."""
        domain = domain_of(source)
        self._bytes_by_source[source] = self._bytes_by_source.get(source, 0) + size
        self._bytes_by_domain[domain] = self._bytes_by_domain.get(domain, 0) + size

    def room_of(self, source: str) -> int:
        """How many bytes of rows the pages of a host may still cause."""
        most, domain = self._tuning.source_bytes, domain_of(source)
        of_domain = most * _HOSTS_OF_DOMAINS - self._bytes_by_domain.get(domain, 0)
        return min(most - self._bytes_by_source.get(source, 0), of_domain)

    def spend(self, source: str, size: int) -> None:
        """A page of this host has caused rows of this size."""
        if len(self._bytes_by_source) > _SOURCES:
            self._bytes_by_source = self._large(self._bytes_by_source)
        if len(self._bytes_by_domain) > _SOURCES:
            self._bytes_by_domain = self._large(self._bytes_by_domain)
        self.know_source(source, size)

    def _large(self, used: dict[str, int]) -> dict[str, int]:
        """Forget those that used little."""
        small = self._tuning.small_bytes
        return {name: size for name, size in used.items() if size > small}

    def page_bytes(self, wire_bytes: int) -> int:
        """How many bytes the new URLs of a page of this size may take."""
        return self._tuning.page_bytes + self._tuning.page_factor * wire_bytes

    def store(self, host: HostBudget, why: str) -> str | None:
        """The detail for one more URL that looks like a trap. None: the ledger has enough of them, only count it."""
        most = self._tuning.trap_rows
        if host.stored >= most or self._stored >= most * _HOSTS_OF_TRAPS:
            return None
        host.stored += 1
        self._stored += 1
        return why if host.stored < most else f"{why}; {LAST_ROW}"

    def judge(self, host: HostBudget, url: str, *, foreign: bool = False) -> str | None:
        """Why this new URL looks like part of a trap, or None. `foreign`: the link is on a page of another host.

        A host that is looked at closely has a budget of its own for such links, so that others cannot use up its own.
        """
        closed: list[Set[int]] = [host.closed or _NOTHING]
        if foreign and host.found > CLOSE_LOOK:
            host = host.of_foreign()
            closed.append(host.closed or _NOTHING)
        host.found += 1
        host.bytes += ROW_BYTES + len(url)
        if host.bytes > self._tuning.host_bytes:
            return f"more than {self._tuning.host_bytes:,} bytes of URLs on this host"
        if url.count("/") > 6 and (shape := _endless(url)):
            return shape
        if host.found <= CLOSE_LOOK:
            return None
        if host.found > self._tuning.host_budget:
            return f"more than {self._tuning.host_budget} URLs on this host"
        return self._over_budget(host, closed, url)

    def fetched(self, host: HostBudget, url: str, simhash: int | None, *, foreign: bool = False) -> None:
        """A page was fetched. A template whose pages are nearly all alike is closed.

        `foreign`: only pages of other hosts link to it. Then it is closed only for such links: others could link to
        many pages that do not exist, and the host may answer all of them with the same page.
        """
        if simhash is None or host.found <= CLOSE_LOOK:
            return
        host = host.of_foreign() if foreign else host
        template = self._digest(template_of(url))
        host.duplicates = host.duplicates if host.duplicates is not None else {}
        if len(host.duplicates) >= _TEMPLATES:
            host.duplicates.clear()
        known = host.duplicates.setdefault(template, Duplicates())
        known.pages += 1
        known.same += known.pages > 1 and ((known.last ^ simhash) & _MASK).bit_count() <= _SAME_WITHIN
        known.last = simhash
        if known.pages == _DUPLICATES_IN:
            if known.same > 0.9 * _DUPLICATES_IN:
                host.closed = host.closed if host.closed is not None else set()
                host.closed.add(template)
            known.pages = known.same = 0

    def wants_simhash(self, host: HostBudget) -> bool:
        return host.found > CLOSE_LOOK

    def _over_budget(self, host: HostBudget, closed: list[Set[int]], url: str) -> str | None:
        template = template_of(url)
        key = self._digest(template)
        if any(key in each for each in closed):
            return f"pages like {template} are nearly all alike"
        budgets = host.budgets = host.budgets if host.budgets is not None else {}
        if len(budgets) >= _TEMPLATES:
            budgets.clear()
        path, _, query = url.partition("?")
        if "&" in query:  # one parameter is normal on many sites; the number of combinations explodes
            of_path = self._digest(path)
            budgets[of_path] = used = budgets.get(of_path, 0) + 1
            if used > self._tuning.query_budget:
                return f"more than {self._tuning.query_budget} queries of {path}"
        budgets[key] = used = budgets.get(key, 0) + 1
        if used > self._tuning.template_budget and template.count("#") > 1:
            return f"more than {self._tuning.template_budget} URLs like {template}"
        return None

    def _digest(self, text: str) -> int:
        return xxh3_64_intdigest(text.encode(), self._seed)


def template_of(url: str) -> str:
    """The URL with every number as `#` and only the names of its parameters, sorted."""
    head, mark, query = url.partition("?")
    start = head.find("/", 8)
    template = head[:start] + _NUMBER.sub("#", head[start:])
    if not mark:
        return template
    return template + "?" + "&".join(sorted({pair.partition("=")[0] for pair in query.split("&")}))


def _endless(url: str) -> str | None:
    """A path that repeats itself, or that is deeper than on any normal site."""
    segments = url.partition("?")[0].split("/")[3:]
    if len(segments) > MOST_SEGMENTS:
        return f"more than {MOST_SEGMENTS} path segments"
    counted: dict[str, int] = {}
    for segment in segments:
        if segment:
            counted[segment] = seen = counted.get(segment, 0) + 1
            if seen >= _REPEATS:
                return f"the path segment {segment!r} occurs {_REPEATS} times"
    return None

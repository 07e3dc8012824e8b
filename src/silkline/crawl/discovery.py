"""Turns links into URLs of the ledger: which are new, and whether to fetch them. No I/O.

Links to hosts of other fetchers, or of other shards, are sent to those. Links to our own hosts are compared with all
URLs seen before. New ones enter the ledger, as queued or as skipped with the reason.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from silkline.crawl import traps
from silkline.crawl.host_owners import HostOwners
from silkline.crawl.messages import FoundUrl, KnownBudgets
from silkline.crawl.outbox import Outbox
from silkline.crawl.plan import Plan
from silkline.crawl.scope import EXCLUDED, OUT_OF_SCOPE, TOO_DEEP, Scope
from silkline.crawl.seen import Seen
from silkline.crawl.sitemap_limits import (
    FOREIGN_SITEMAP,
    MOST_NESTED,
    OVER_LIMIT,
    SITEMAP_VIAS,
    level_of,
    named_by_others,
)
from silkline.crawl.traps import ROW_BYTES, TRAP
from silkline.crawl.url_memory import UrlMemory
from silkline.crawl.url_queue import Claim
from silkline.metrics.instruments import TRAP_URLS
from silkline.model.ledger import FOREIGN, QUEUED, SKIPPED
from silkline.model.parcel import Links
from silkline.model.url import host_of, url_key

_MOST_KNOWN_ELSEWHERE: Final = 1_000_000
_MOST_COUNTED: Final = 1_000_000
_SHARED: Final = ("link", "redirect", "sitemap")
"""In these ways, a host can add URLs of other hosts to the crawl."""
_FOR_ALL: Final = frozenset({OUT_OF_SCOPE, EXCLUDED})
"""Reasons not to fetch a URL that are the same whoever links to it."""


class Discovery:
    """The URLs that one fetcher has seen."""

    def __init__(self, index: int, plan: Plan, outbox: Outbox) -> None:
        self._index = index
        self._alone = plan.fetchers == 1 and plan.shard is None
        self._has_closed_hosts = bool(plan.exclude_hosts)
        self._covers_all = plan.scope == "any" and not (plan.seeded_hosts_only or plan.exclude_hosts)
        self._outbox = outbox
        self._owners = HostOwners(plan.fetchers, plan.shard, plan.shards)
        self._seed = plan.seen_seed
        self._seen = Seen(self._seed)
        self._foreign = Seen(self._seed)
        """URLs that other hosts link to. Those not in `_seen` too are claimed when their own host links to them."""
        self.on_claim: Callable[[str, Claim], None] = lambda url, claim: None
        """Called with a URL that only other hosts linked to, when its own host does."""
        self._unfollowed: UrlMemory[str] = UrlMemory()
        """Foreign URLs whose redirect was not followed, because of a limit that others used up, and their targets."""
        self._known_elsewhere = Seen(self._seed)
        self._counted = Seen(self._seed)
        self._scope = Scope(plan)
        self._traps = traps.Traps(plan.tuning, self._seed)
        self._hosts: dict[str, traps.HostBudget] = {}
        self._level = 0

    def know(self, digests: bytes, foreign: bytes = b"") -> None:
        """Add URLs that the ledger already has. `foreign`: only other hosts link to them."""
        self._seen.load(digests)
        self._foreign.load(foreign)

    def know_budgets(self, known: KnownBudgets) -> None:
        """Add what the ledger says about how much of their budgets hosts have used."""
        for host, found, size, stored in known.hosts:
            self._traps.know(self._host(host), found, size, stored)
        for source, size in known.sources:
            self._traps.know_source(source, size)

    def page_bytes(self, wire_bytes: int) -> int:
        """How many bytes the new URLs of a page of this size may take."""
        return self._traps.page_bytes(wire_bytes)

    def add_roots(self, urls: Iterable[str]) -> None:
        self._scope.add_roots(urls)

    def at_level(self, depth: int) -> None:
        """Everything above this depth was fetched, so no shorter path will be found to what is one level deeper."""
        self._level = depth

    def links(self, urls: Sequence[str], links: Links) -> None:
        """Process the links of one page. `links` says where and how they were found."""
        if self._alone:
            self.ours(urls, links)
            return
        own: list[str] = []
        elsewhere: dict[int, list[str]] = {}
        owner_of, known = self._owners.owner_of, self._known_elsewhere
        source = links.source if links.depth else ""
        # Counted here too, so that a host cannot send its budget to every fetcher and shard.
        most = min(links.most_bytes or sys.maxsize, self._traps.room_of(source) if source else sys.maxsize)
        size = sent = 0
        for url in dict.fromkeys(urls):
            owner = owner_of(host_of(url))
            if owner == self._index:
                own.append(url)
            elif url not in known:
                size += ROW_BYTES + len(url)
                if size > most:
                    self._only_count(url)
                else:
                    sent = size
                    elsewhere.setdefault(owner, []).append(url)
        if source and sent:
            self._traps.spend(source, sent)
        self.ours(own, links)
        for owner, several in elsewhere.items():
            self._outbox.foreign(owner, links._replace(urls=several))

    def ours(self, urls: Iterable[str], links: Links) -> None:
        """Process links to our own hosts."""
        found, judge, make = self._outbox.found, self._judge, FoundUrl._make
        depth, found_on = links.depth, links.found_on or None
        chain, foreign_chain = links.chain or None, links.chain or None
        is_passed_on = links.via == FOREIGN  # redirected by a URL that only other hosts link to
        via = "redirect" if is_passed_on else links.via
        if via in SITEMAP_VIAS:
            foreign_chain = named_by_others(links.chain)
        source = links.source if depth else ""  # a redirect of a seed leads to the site that was meant
        room = self._traps.room_of(source) if source else 0
        size, used, most = 0, 0, links.most_bytes or sys.maxsize
        targets: list[str] = []
        for url in self._fresh(urls, source, links, targets):
            row = ROW_BYTES + len(url)
            size += row
            if size > most:
                self._only_count(url)
                continue
            host = host_of(url)
            is_abroad = bool(source) and host != source
            foreign = is_abroad or is_passed_on
            # Before the judge, who counts what is found of a host: links that are not stored use up no budget of it.
            if is_abroad and used + row > room:
                self._only_count(url)
                continue
            state, reason, detail = judge(url, host, depth, via, links.chain, foreign=foreign)
            if reason == TRAP:
                TRAP_URLS.add()
            if foreign and reason is not None and not self._is_final(reason, depth):
                self._only_count(url)
                if is_passed_on and not is_abroad:
                    self.not_followed(links.chain.rpartition(" ")[2], url)
                continue
            if is_abroad or (source and reason is not None):
                if used + row > room:
                    self._only_count(url)
                    continue
                used += row
            if reason == TRAP:
                detail = self._traps.store(self._host(host), detail or "")
                if detail is None:
                    self._outbox.not_stored += 1
                    continue
            if foreign and state != QUEUED:
                self._seen.add(url)
            how = FOREIGN if foreign and state == QUEUED and via in _SHARED else via
            way = foreign_chain if is_abroad else chain
            found.append(make((url_key(url), url, host, depth, state, reason, detail, found_on, how, way)))
        if used:
            self._traps.spend(source, used)
        if targets:
            self.links(targets, links)

    def not_followed(self, url: str, target: str) -> None:
        """A foreign URL redirected to a target that others may not lead to. Its own host still may."""
        self._unfollowed.put(url, target, len(target))

    def _fresh(self, urls: Iterable[str], source: str, links: Links, targets: list[str]) -> Iterator[str]:
        """The new URLs of some links. Those that others found first now belong to their host.

        Adds to `targets` where those redirect that were fetched already and not followed for others.
        """
        own, others = self._parted(urls, source, all_foreign=links.via == FOREIGN)
        foreign = self._foreign
        for url in self._seen.add_all(own):
            if not foreign or url not in foreign:
                yield url
                continue
            self.on_claim(url, Claim(links.depth, links.via, links.chain))
            target = self._unfollowed.pop(url)
            if target is not None:
                targets.append(target)
        for url in foreign.add_all(others):
            if url not in self._seen:
                yield url

    def _parted(self, urls: Iterable[str], source: str, *, all_foreign: bool) -> tuple[Iterable[str], list[str]]:
        """The links of a host to itself, and to others of the crawl. Links that lead out of it need no claim."""
        if not source:
            return urls, []
        if all_foreign:
            return [], list(urls)
        home = (f"http://{source}/", f"https://{source}/")
        known = list(urls)
        own = [url for url in known if url.startswith(home)]
        if len(own) == len(known):  # two lists in place of one loop: most pages have only such links, and it is faster
            return own, []
        others = [url for url in known if not url.startswith(home)]
        if not self._covers_all:
            covered = [self._scope.covers(host_of(url)) for url in others]
            own += [url for url, inside in zip(others, covered, strict=True) if not inside]
            others = [url for url, inside in zip(others, covered, strict=True) if inside]
        return own, others

    def _only_count(self, url: str) -> None:
        """Count a URL beyond a budget of the page or host that links to it. Another host may still add it."""
        self._seen.forget(url)
        self._foreign.forget(url)
        if len(self._counted) < _MOST_COUNTED and self._counted.add(url):
            self._outbox.not_stored += 1

    def _is_final(self, reason: str, depth: int) -> bool:
        """Whether a URL is not to be fetched whoever links to it. Otherwise a link of another host must not keep the
        host itself from adding it, on a shorter path or within its own budget."""
        return reason in _FOR_ALL or (reason == TOO_DEEP and depth <= self._level + 1)

    def arrived(self, urls: list[str]) -> None:
        """The other fetchers have stored these links durably: do not send them again."""
        if len(self._known_elsewhere) > _MOST_KNOWN_ELSEWHERE:
            self._known_elsewhere = Seen(self._seed)
        self._known_elsewhere.add_all(urls)

    def wants_simhash(self, host: str) -> bool:
        return self._traps.wants_simhash(self._host(host))

    def fetched(self, host: str, url: str, simhash: int | None, *, foreign: bool) -> None:
        """A page was fetched: update whether the host still has new content. `foreign`: others linked to it."""
        self._traps.fetched(self._host(host), url, simhash, foreign=foreign)

    def refuses_seed(self, url: str, host: str) -> str | None:
        """The reason not to fetch a seed that is already in the ledger. None: it may be fetched."""
        return self._scope.judge(url, host, 0) if self._has_closed_hosts else None

    def forget_hosts(self, names: Iterable[str]) -> None:
        """Forget hosts that have nothing to do. Large hosts keep their budgets."""
        for name in names:
            host = self._hosts.get(name)
            if host is not None and host.found <= traps.CLOSE_LOOK and not host.stored:
                del self._hosts[name]

    def covers(self, host: str) -> bool:
        """Whether a host is part of the crawl."""
        return self._scope.covers(host)

    def wants_page(self, url: str, depth: int) -> bool:
        """Whether a URL may be fetched as a page of the crawl."""
        return self._scope.judge(url, host_of(url), depth) is None

    def _judge(
        self, url: str, host: str, depth: int, via: str, chain: str, *, foreign: bool
    ) -> tuple[str, str | None, str | None]:
        if via in SITEMAP_VIAS:
            return self._judge_sitemap(host, via, chain)
        reason = self._scope.judge(url, host, depth)
        if reason is not None:
            return SKIPPED, reason, None
        trap = self._traps.judge(self._host(host), url, foreign=foreign)
        if trap is not None:
            return SKIPPED, TRAP, trap
        return QUEUED, None, None

    def _judge_sitemap(self, host: str, via: str, chain: str) -> tuple[str, str | None, str | None]:
        if self._scope.excludes(host):
            return SKIPPED, EXCLUDED, None
        if level_of(chain) > MOST_NESTED:
            return SKIPPED, OVER_LIMIT, f"more than {MOST_NESTED} sitemap indexes above it"
        if via != "robots" and not self._scope.covers(host):
            return SKIPPED, OUT_OF_SCOPE, FOREIGN_SITEMAP
        return QUEUED, None, None

    def _host(self, name: str) -> traps.HostBudget:
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = traps.HostBudget()
        return host

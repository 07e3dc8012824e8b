"""Settles URLs that have no page: one URL, or all URLs of a host that is given up."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from silkline.crawl.frontier import Frontier, HostQueue
from silkline.crawl.host_status import too_long
from silkline.crawl.outbox import Outbox
from silkline.crawl.outcomes import storable
from silkline.crawl.plan import Tuning
from silkline.crawl.politeness import retry_delay
from silkline.crawl.purpose import Purpose
from silkline.crawl.put_offs import PutOffs
from silkline.crawl.robots_cache import unreachable
from silkline.crawl.url_queue import FrontierUrl
from silkline.fetch.robots import Robots
from silkline.model import host_wait as waiting
from silkline.model.fetched import HOST_UNAVAILABLE, Fetched, is_temporary
from silkline.model.ledger import FAILED, SKIPPED, Settled
from silkline.model.url import origin_of

ROBOTS_UNAVAILABLE = "robots_unavailable"
_LONGEST_WAIT_FOR_ROOM = 30.0
"""Seconds after which a host loads its robots.txt again, if there was no room to keep it."""


class Endings:
    """`on_end` is called after each URL that was settled."""

    def __init__(
        self, tuning: Tuning, frontier: Frontier, outbox: Outbox, purpose: Purpose, on_end: Callable[[], None]
    ) -> None:
        self._tuning = tuning
        self._frontier = frontier
        self._outbox = outbox
        self._purpose = purpose
        self._on_end = on_end
        self.given_up: dict[str, str] = {}
        """Hosts that get no more requests, with the reason."""
        self.put_offs: Sequence[PutOffs] = ()
        """URLs that are not in the frontier, but end with their hosts too."""

    def end(
        self,
        entry: FrontierUrl,
        state: str,
        reason: str | None,
        detail: str | None,
        *,
        fetched: Fetched | None = None,
        attempts: int | None = None,
    ) -> None:
        """Settle a URL that has no page."""
        tries = attempts if attempts is not None else entry.attempts + (state == FAILED)
        status = fetched.status or None if fetched is not None else None
        settled = Settled(entry.id, state, reason, storable(detail), tries, status)
        ended = self._purpose.ended(entry, settled, fetched)
        if ended.result is None:
            self._outbox.settle(ended.settled, entry.depth)
        else:
            self._outbox.page(ended)
        self._on_end()

    def give_up(self, host: HostQueue, reason: str, now: float) -> None:
        """Stop requests to the host. Its remaining URLs fail, and can be requeued later."""
        self.given_up[host.name] = reason
        put_off = [entry for put_offs in self.put_offs for entry in put_offs.clear_host(host.name, now)]
        for entry in (*self._frontier.clear_host(host), *self._frontier.clear_retries(host), *put_off):
            self.end(entry, FAILED, HOST_UNAVAILABLE, reason)

    def give_up_long_waits(self, now: float) -> None:
        """Nothing else is left to do: give up the hosts that asked us to wait too long."""
        longest = self._tuning.longest_wait
        put_off = set[str]().union(*(put_offs.hosts_asleep for put_offs in self.put_offs))
        for host in self._frontier.asleep_after(now + longest, put_off):
            self.give_up(host, too_long(host, now, longest), now)

    def without_robots(self, host: HostQueue, url: str, rules: Robots, failures: int, now: float) -> None:
        """The robots.txt of an origin is not available: retry a few times, then settle its queued URLs."""
        if rules.reason == waiting.ROBOTS_NO_ROOM:  # the host is not to blame: its URLs never end because of this
            wait = retry_delay(failures, self._tuning.retry_base, _LONGEST_WAIT_FOR_ROOM)
            host.clock.sleep_until(now + wait, waiting.ROBOTS_NO_ROOM, wait)
            return
        if failures < self._tuning.robots_tries and is_temporary(rules.reason):
            wait = retry_delay(failures, self._tuning.retry_base, self._tuning.retry_cap)
            wait = max(wait, rules.retry_after)
            host.clock.trouble = rules.reason or ""
            host.clock.sleep_until(now + wait, waiting.ROBOTS_UNAVAILABLE, wait)
            return
        origin, gone = origin_of(url), unreachable(rules)
        for entry in list(self._frontier.clear_host(host)):
            if origin_of(entry.url) != origin:
                self._frontier.put_back(host.name, entry, now)
            elif gone:
                self.end(entry, FAILED, rules.reason, "the request for robots.txt failed", attempts=failures)
            else:
                self.end(entry, SKIPPED, ROBOTS_UNAVAILABLE, rules.explain(entry.url))

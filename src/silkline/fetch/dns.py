"""Resolves host names in threads, with a cache. It never blocks the event loop.

The guard checks the addresses, not this module. An answer is a tuple of addresses, or a failure reason as a string.
"""

import asyncio
import queue
import socket
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

from silkline.fetch.descriptors import LONGEST_WAIT, WAIT, out_of_files
from silkline.fetch.dns_queue import NameQueue, SilentZones, last_two_labels
from silkline.model.fetched import DNS_FAILED, DNS_TIMEOUT, HOST_UNKNOWN

Resolution = tuple[str, ...] | str

_UNKNOWN: Final = frozenset({socket.EAI_NONAME, socket.EAI_NODATA})


class Resolver(Protocol):
    """Resolves host names to addresses."""

    def cached(self, host: str) -> Resolution | None:
        """The cached answer, or None. Does not wait."""

    async def resolve(self, host: str) -> Resolution:
        """The addresses of a host, or the reason why there are none."""

    def close(self) -> None:
        """Cancel all look-ups."""


def look_up(host: str) -> Resolution:
    """Ask the system; this blocks. IPv4 addresses come first, because IPv4 works almost everywhere."""
    try:
        # As bytes: for a string, Python would apply its own, older IDNA to a host that is already ASCII.
        answers = socket.getaddrinfo(host.encode("ascii"), None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    except socket.gaierror as error:
        return HOST_UNKNOWN if error.errno in _UNKNOWN else DNS_FAILED
    except (OSError, UnicodeError, ValueError):
        return DNS_FAILED
    answers.sort(key=lambda answer: answer[0] != socket.AF_INET)
    return tuple(dict.fromkeys(str(answer[4][0]) for answer in answers)) or HOST_UNKNOWN


class _LookUp:
    """One name that is being looked up, or waits for a look-up."""

    __slots__ = ("answer", "domain", "name", "overdue", "timers", "was_slow")

    def __init__(self, name: str, domain: str, answer: asyncio.Future[Resolution]) -> None:
        self.name = name
        self.domain = domain
        self.answer = answer
        self.overdue = False
        self.was_slow = False
        self.timers: tuple[asyncio.TimerHandle, ...] = ()

    def settle(self, answer: Resolution) -> None:
        for timer in self.timers:
            timer.cancel()
        if not self.answer.done():
            self.answer.set_result(answer)


class SystemResolver:
    """`getaddrinfo` in daemon threads, with a cache. A look-up that hangs does not delay the end of the process.

    The system gives no time to live, so answers are kept for `ttl` seconds and failures for `negative_ttl` seconds. The
    `timeout` of a name begins when a thread starts its look-up. `threads` threads serve names with quick answers. As
    many more may serve look-ups that take longer than `slow_after`. dns_queue.py chooses the next name.
    """

    def __init__(
        self,
        *,
        threads: int = 32,
        ttl: float = 300.0,
        negative_ttl: float = 30.0,
        timeout: float = 10.0,
        slow_after: float = 2.0,
        stuck_after: float = 120.0,
        max_entries: int = 100_000,
        domain_of: Callable[[str], str] = last_two_labels,
        look_up: Callable[[str], Resolution] = look_up,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most_quick = threads
        self._most_overdue = threads
        self._most_slow = max(1, threads * 3 // 4)
        self._ttl = ttl
        self._negative_ttl = negative_ttl
        self._timeout = timeout
        self._slow_after = slow_after
        self._stuck_after = stuck_after
        self._max_entries = max_entries
        self._domain_of = domain_of
        self._look_up = look_up
        self._clock = clock
        self._answers: dict[str, tuple[float, Resolution]] = {}
        self._pending: dict[str, _LookUp] = {}
        self._queue = NameQueue(max(1, threads // 4))
        self._silent = SilentZones(domain_of, negative_ttl)
        self._work: queue.SimpleQueue[tuple[asyncio.AbstractEventLoop, str] | None] = queue.SimpleQueue()
        self._threads = 0
        self._running = 0
        self._overdue = 0
        self._ended = 0
        self._stuck: asyncio.TimerHandle | None = None

    def cached(self, host: str) -> Resolution | None:
        entry = self._answers.get(host)
        if entry is None:
            return None
        if entry[0] <= self._clock():
            del self._answers[host]
            return None
        return entry[1]

    async def resolve(self, host: str) -> Resolution:
        known = self.cached(host)
        if known is not None:
            return known
        pending = self._pending.get(host)
        if pending is None:
            if self._silent.covers(host, self._clock()):
                self._keep(host, DNS_TIMEOUT)  # a second request soon after must also get the cached failure
                return DNS_TIMEOUT
            pending = self._ask(host)
        # Shielded: other callers may wait for the same host.
        return await asyncio.shield(pending.answer)

    def close(self) -> None:
        for _ in range(self._threads):
            self._work.put(None)
        self._threads = self._running = self._overdue = 0
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None
        self._queue.drop_all()
        for pending in self._pending.values():
            pending.settle(DNS_FAILED)
        self._pending.clear()

    def _ask(self, host: str) -> _LookUp:
        loop = asyncio.get_running_loop()
        pending = _LookUp(host, self._domain_of(host), loop.create_future())
        self._pending[host] = pending
        self._queue.put(pending.domain, host)
        self._start(loop)
        return pending

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start as many look-ups as allowed. Names of domains that are not slow come first."""
        while self._running - min(self._overdue, self._most_overdue) < self._most_quick:
            name = self._queue.take(slow=False)
            slow = name is None
            if slow and self._overdue < self._most_slow:
                name = self._queue.take(slow=True)
            if name is None:
                break
            self._begin(loop, self._pending[name], slow=slow)
        if self._queue and self._stuck is None:
            self._stuck = loop.call_later(self._stuck_after, self._look_if_stuck, loop, self._ended)

    def _begin(self, loop: asyncio.AbstractEventLoop, pending: _LookUp, *, slow: bool) -> None:
        if self._running == self._threads:
            self._threads += 1
            threading.Thread(target=self._serve, name="dns", daemon=True).start()
        self._running += 1
        pending.timers = (
            loop.call_later(self._slow_after, self._is_slow, loop, pending),
            loop.call_later(self._timeout, self._timed_out, loop, pending),
        )
        if slow:  # expect the domain to be slow again
            pending.overdue = True
            self._overdue += 1
        self._work.put((loop, pending.name))

    def _is_slow(self, loop: asyncio.AbstractEventLoop, pending: _LookUp) -> None:
        """Count this look-up as slow, so that another name can start."""
        pending.was_slow = True
        if not pending.overdue:
            pending.overdue = True
            self._overdue += 1
        self._queue.was_slow(pending.domain)
        self._start(loop)

    def _timed_out(self, loop: asyncio.AbstractEventLoop, pending: _LookUp) -> None:
        """The thread continues, because a thread cannot be killed."""
        self._keep(pending.name, DNS_TIMEOUT)
        pending.settle(DNS_TIMEOUT)
        self._not_answered(pending)
        self._is_slow(loop, pending)

    def _not_answered(self, pending: _LookUp) -> None:
        now, domain = self._clock(), pending.domain
        self._silent.no_answer(pending.name, now)
        if not self._silent.covers(pending.name, now):
            return
        for name in self._queue.drop(domain):
            if self._silent.covers(name, now):
                self._keep(name, DNS_TIMEOUT)
                self._pending.pop(name).settle(DNS_TIMEOUT)
            else:
                self._queue.put(domain, name)

    def _keep(self, host: str, answer: Resolution) -> None:
        kept_for = self._negative_ttl if isinstance(answer, str) else self._ttl
        if len(self._answers) >= self._max_entries:
            del self._answers[next(iter(self._answers))]
        self._answers[host] = (self._clock() + kept_for, answer)

    def _look_if_stuck(self, loop: asyncio.AbstractEventLoop, ended: int) -> None:
        """If no look-up has ended for a long time, fail all waiting names."""
        self._stuck = None
        if ended == self._ended:
            for name in self._queue.drop_all():
                self._pending.pop(name).settle(DNS_TIMEOUT)
        self._start(loop)

    def _serve(self) -> None:
        while (task := self._work.get()) is not None:
            loop, host = task
            answer = self._look_up(host)
            give_up = self._clock() + LONGEST_WAIT
            while isinstance(answer, str) and out_of_files() and self._clock() < give_up:
                time.sleep(WAIT)  # no socket for the query: this failure says nothing about the host
                answer = self._look_up(host)
            try:
                loop.call_soon_threadsafe(self._answered, loop, host, answer)
            except RuntimeError:  # the loop was closed during the look-up
                return

    def _answered(self, loop: asyncio.AbstractEventLoop, host: str, answer: Resolution) -> None:
        pending = self._pending.pop(host, None)
        if pending is None:  # the resolver was closed
            return
        self._running -= 1
        self._ended += 1
        self._overdue -= pending.overdue
        timed_out = pending.answer.done()
        self._keep(host, answer)
        pending.settle(answer)
        self._queue.ended(pending.domain)
        if answer != DNS_FAILED:
            self._silent.answered(host)
        elif pending.was_slow and not timed_out:
            self._not_answered(pending)
        if not pending.was_slow and answer != DNS_FAILED:
            self._queue.was_quick(pending.domain)
        self._start(loop)

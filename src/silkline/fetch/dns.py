"""Host names to addresses: looked up in threads, remembered for a while, never blocking the loop.

Decides nothing about the addresses; the guard judges them. An answer is a tuple of addresses, or a reason as a string.
"""

import asyncio
import queue
import socket
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

from silkline.fetch.descriptors import LONGEST_WAIT, WAIT, out_of_files
from silkline.model.fetched import DNS_FAILED, DNS_TIMEOUT, HOST_UNKNOWN

Resolution = tuple[str, ...] | str

_UNKNOWN: Final = frozenset({socket.EAI_NONAME, socket.EAI_NODATA})


class Resolver(Protocol):
    """Where addresses come from."""

    def cached(self, host: str) -> Resolution | None:
        """What is known already, without waiting."""

    async def resolve(self, host: str) -> Resolution:
        """The addresses of a host, or the reason why there are none."""

    def close(self) -> None:
        """Give up whatever is still being looked up."""


def look_up(host: str) -> Resolution:
    """Ask the system, blocking. IPv4 first: it is the one that works nearly everywhere."""
    try:
        # As bytes, for Python would otherwise run its own, older IDNA over a host that is ASCII already.
        answers = socket.getaddrinfo(host.encode("ascii"), None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    except socket.gaierror as error:
        return HOST_UNKNOWN if error.errno in _UNKNOWN else DNS_FAILED
    except (OSError, UnicodeError, ValueError):
        return DNS_FAILED
    answers.sort(key=lambda answer: answer[0] != socket.AF_INET)
    return tuple(dict.fromkeys(str(answer[4][0]) for answer in answers)) or HOST_UNKNOWN


class SystemResolver:
    """`getaddrinfo` in daemon threads (a hanging look-up must not hold up the end of the process), with a cache.

    The system tells no time to live, so answers are kept for `ttl` and failures for `negative_ttl` seconds.
    """

    def __init__(
        self,
        *,
        threads: int = 32,
        ttl: float = 300.0,
        negative_ttl: float = 30.0,
        timeout: float = 10.0,
        max_entries: int = 100_000,
        look_up: Callable[[str], Resolution] = look_up,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most_threads = threads
        self._ttl = ttl
        self._negative_ttl = negative_ttl
        self._timeout = timeout
        self._max_entries = max_entries
        self._look_up = look_up
        self._clock = clock
        self._answers: dict[str, tuple[float, Resolution]] = {}
        self._pending: dict[str, asyncio.Future[Resolution]] = {}
        self._work: queue.SimpleQueue[tuple[asyncio.AbstractEventLoop, str] | None] = queue.SimpleQueue()
        self._threads = 0

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
            pending = self._ask(host)
        try:
            # Shielded: others may be waiting for the same host.
            return await asyncio.wait_for(asyncio.shield(pending), self._timeout)
        except TimeoutError:
            return DNS_TIMEOUT

    def close(self) -> None:
        for _ in range(self._threads):
            self._work.put(None)
        self._threads = 0
        for pending in self._pending.values():
            if not pending.done():
                pending.set_result(DNS_FAILED)
        self._pending.clear()

    def _ask(self, host: str) -> asyncio.Future[Resolution]:
        loop = asyncio.get_running_loop()
        pending: asyncio.Future[Resolution] = loop.create_future()
        self._pending[host] = pending
        if len(self._pending) > self._threads and self._threads < self._most_threads:
            self._threads += 1
            threading.Thread(target=self._serve, name="dns", daemon=True).start()
        self._work.put((loop, host))
        return pending

    def _serve(self) -> None:
        while (task := self._work.get()) is not None:
            loop, host = task
            answer = self._look_up(host)
            give_up = self._clock() + LONGEST_WAIT
            while isinstance(answer, str) and out_of_files() and self._clock() < give_up:
                time.sleep(WAIT)  # nobody could be asked: that says nothing about the host
                answer = self._look_up(host)
            try:
                loop.call_soon_threadsafe(self._answered, host, answer)
            except RuntimeError:  # the loop ended while the system was thinking
                return

    def _answered(self, host: str, answer: Resolution) -> None:
        pending = self._pending.pop(host, None)
        if pending is None:
            return
        kept_for = self._negative_ttl if isinstance(answer, str) else self._ttl
        if len(self._answers) >= self._max_entries:
            del self._answers[next(iter(self._answers))]
        self._answers[host] = (self._clock() + kept_for, answer)
        if not pending.done():
            pending.set_result(answer)

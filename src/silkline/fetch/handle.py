"""One reusable easy handle of libcurl: its fixed options, its current request, and the data received so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import Final

import pycurl  # type: ignore[import-untyped]

from silkline.fetch.decode import ACCEPT_ENCODING
from silkline.fetch.settings import MIB, FetchSettings
from silkline.model.fetched import ADDRESS_BLOCKED, BODY_TOO_LARGE, MEMORY_FULL, TOO_MANY_CHUNKS

_BIG: Final = MIB
# Each call of `_on_body` is one chunk of the body or one read of the socket. A chunk of 2 bytes takes 7 bytes on the
# wire and its own call. So after _FREE_CALLS calls, a body needs at least _BYTES_PER_CALL bytes for each call.
_FREE_CALLS: Final = 32_768
_BYTES_PER_CALL: Final = 64
_SMALL: Final = 2_048  # bytes; a smaller part is joined to the part before, because a Python object needs 33 bytes more
_WORTH_DROPPING: Final = 64 * 1024
_YOUNG: Final = 2.0
_MUCH_SLOWER: Final = 4.0
_SPELL: Final = 5.0  # seconds
_MOMENT: Final = 0.05
_STALLED: Final = 1  # byte per second; a transfer that is slower for the idle timeout ends


Check = Callable[[str, int], str | None]


class Budget:
    """The bytes of the bodies that all handles hold for transfers in progress."""

    __slots__ = ("held", "holders", "limit")

    def __init__(self, limit: int) -> None:
        self.held = 0
        self.limit = limit
        self.holders: set[Handle] = set()
        """The handles with enough bytes to be worth dropping."""

    def make_room(self, wanted_by: Handle) -> bool:
        """Drop the slowest bodies, as long as they are much slower than the body that needs memory.

        Not the oldest or largest bodies: if all are equally fast, each would be dropped before it is complete.
        """
        now = monotonic()
        speed = wanted_by.speed(now)
        while self.held > self.limit:
            others = [each for each in self.holders if each is not wanted_by and each.age(now) > _YOUNG]
            slowest = min(others, key=lambda each: each.speed(now), default=None)
            if slowest is None or slowest.speed(now) * _MUCH_SLOWER > speed:
                return False
            slowest.drop()
        return True


class Handle:
    """Created once and reused for many requests: a new handle costs 30 us, a reused handle 3 us."""

    __slots__ = (
        *("_budget", "_check", "_custom", "_refuse_above", "_timeout", "calls", "cut", "easy", "held"),
        *("lines", "marks", "max_wire", "parts", "refusal", "size", "started_at"),
    )

    def __init__(self, settings: FetchSettings, budget: Budget, check: Check) -> None:
        self._budget = budget
        self._check = check
        self._custom = False
        self._timeout = 0
        self.max_wire = 0
        self.cut = False
        self._refuse_above = 0
        self.held = 0
        self.easy = pycurl.Curl()
        self.clear()
        self._set_up(settings)

    def clear(self) -> None:
        """Discard the received data."""
        self._let_go()
        self.lines: list[bytes] = []
        self.size = 0
        self.started_at = 0.0
        # Two samples of (time, bytes received so far). The speed is measured from the earlier sample.
        self.marks: list[tuple[float, int]] = []
        self.calls = 0
        self.refusal: str | None = None

    def drop(self) -> None:
        """Discard the body, because other transfers need the memory. The transfer ends when more data arrives."""
        self.refusal = MEMORY_FULL
        self._let_go()

    def _let_go(self) -> None:
        self.parts: list[bytes | bytearray] = []
        self._budget.held -= self.held
        self.held = 0
        self._budget.holders.discard(self)

    def age(self, now: float) -> float:
        """Seconds since the handle began to measure the body."""
        return now - self.started_at

    def speed(self, now: float) -> float:
        """Recent bytes per second of the body."""
        at, size = self.marks[0]
        return (self.size - size) / max(now - at, _MOMENT)

    def limit(self, max_wire: int, cut: bool) -> None:
        """Limit the bytes of the body. A larger `Content-Length` ends the transfer at once, unless `cut` is set."""
        self.max_wire = max_wire
        self.cut = cut
        refuse_above = 0 if cut else max_wire
        if refuse_above != self._refuse_above:
            self.easy.setopt(pycurl.MAXFILESIZE_LARGE, refuse_above)
            self._refuse_above = refuse_above

    def prepare(
        self, url: str, connect_to: str, headers: Sequence[str] | None, base: Sequence[str], timeout: float
    ) -> None:
        """Set the options that differ between requests."""
        setopt = self.easy.setopt
        setopt(pycurl.URL, url)
        if connect_to:
            setopt(pycurl.CONNECT_TO, [connect_to])
        if headers is not None:
            setopt(pycurl.HTTPHEADER, [line.encode("latin-1") for line in (*base, *headers)])
            self._custom = True
        elif self._custom:
            setopt(pycurl.HTTPHEADER, list(base))
            self._custom = False
        milliseconds = max(1, int(timeout * 1000))
        if milliseconds != self._timeout:
            setopt(pycurl.TIMEOUT_MS, milliseconds)
            self._timeout = milliseconds

    def _set_up(self, settings: FetchSettings) -> None:
        setopt = self.easy.setopt
        setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        setopt(pycurl.FOLLOWLOCATION, 0)
        setopt(pycurl.NOSIGNAL, 1)
        setopt(pycurl.NOPROGRESS, 1)
        setopt(pycurl.PATH_AS_IS, 1)
        setopt(pycurl.HTTP09_ALLOWED, 0)
        # Always set, even to the empty string: without the option libcurl uses the proxy of the environment.
        setopt(pycurl.PROXY, settings.proxy)
        setopt(pycurl.DNS_CACHE_TIMEOUT, 300 if settings.proxy else 0)
        setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS if settings.http2 else pycurl.CURL_HTTP_VERSION_1_1)
        # Wait for a connection that can be shared, instead of opening one for each request.
        setopt(pycurl.PIPEWAIT, 1)
        setopt(pycurl.SSL_VERIFYPEER, 1 if settings.verify else 0)
        setopt(pycurl.SSL_VERIFYHOST, 2 if settings.verify else 0)
        setopt(pycurl.CAINFO, settings.ca_file())
        setopt(pycurl.CONNECTTIMEOUT_MS, max(1, int(settings.connect_timeout * 1000)))
        setopt(pycurl.LOW_SPEED_LIMIT, _STALLED)
        setopt(pycurl.LOW_SPEED_TIME, max(1, round(settings.idle_timeout)))
        setopt(pycurl.USERAGENT, settings.user_agent.encode("latin-1"))
        setopt(pycurl.HTTPHEADER, list(base_headers(settings)))
        setopt(pycurl.HEADERFUNCTION, self._on_header)
        setopt(pycurl.WRITEFUNCTION, self._on_body)
        if not settings.proxy:
            setopt(pycurl.PREREQFUNCTION, self._on_connected)

    def _on_connected(self, remote: str, _local: str, port: int, _local_port: int) -> int:
        """The last check: send no request to an address that the guard refuses."""
        if self._check(remote, port) is None:
            return int(pycurl.PREREQFUNC_OK)
        self.refusal = ADDRESS_BLOCKED
        return int(pycurl.PREREQFUNC_ABORT)

    def _on_header(self, line: bytes) -> None:
        self.lines.append(line)

    def _on_body(self, data: bytes) -> int | None:
        """Returns 0 to make libcurl end the transfer."""
        if self.refusal is not None:  # the body was dropped
            return 0
        length = len(data)
        self.size += length
        self.held += length
        self._budget.held += length
        if self.size > _WORTH_DROPPING:
            self._mark()
        if self.size > self.max_wire:
            self.refusal = BODY_TOO_LARGE
            if self.cut:
                self.parts.append(data)
            return 0
        self.calls += 1
        if self.calls > _FREE_CALLS and (self.calls - _FREE_CALLS) * _BYTES_PER_CALL > self.size:
            self.refusal = TOO_MANY_CHUNKS
            return 0
        if self._budget.held > self._budget.limit and self.size > _BIG and not self._budget.make_room(self):
            self.refusal = MEMORY_FULL
            return 0
        if length >= _SMALL:
            self.parts.append(data)
        elif self.parts and isinstance(last := self.parts[-1], bytearray):
            last += data
        else:
            self.parts.append(bytearray(data))
        return None

    def _mark(self) -> None:
        now = monotonic()
        if not self.marks:
            self.started_at = now
            self.marks = [(now, 0), (now, 0)]
            self._budget.holders.add(self)
        elif now - self.marks[1][0] > _SPELL:
            self.marks = [self.marks[1], (now, self.size)]

    def body(self) -> bytes:
        """The received body as one object."""
        parts = self.parts
        if len(parts) == 1:
            return bytes(parts[0])  # no copy if the part is bytes
        return b"".join(parts)


def base_headers(settings: FetchSettings) -> tuple[str, ...]:
    """The headers of every request."""
    return (
        f"Accept: {settings.accept}",
        f"Accept-Language: {settings.accept_language}",
        f"Accept-Encoding: {ACCEPT_ENCODING}",
    )

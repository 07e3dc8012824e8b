"""Limits the number of connections, and the time in which a request must arrive.

uvicorn has no such limits. `LimitedProtocol` adds them to its protocol for HTTP/1.1: a deadline for the headers of a
request, a deadline for the body (every byte moves it, but never far beyond the last byte), and a deadline for a client
that stops reading an answer. After a deadline the client gets a problem document, if it still reads, and the connection
ends. So does a body in very small chunks, and a request with very many headers or a very long path: each of them takes
time on the event loop before anybody can ask for a token.
"""

from __future__ import annotations

import asyncio
import resource
import sys
from dataclasses import dataclass
from typing import Any

import h11
import msgspec
from h11._receivebuffer import ReceiveBuffer
from uvicorn.protocols.http.h11_impl import H11Protocol

from silkline.api.problems import MEDIA_TYPE, Problem
from silkline.model.client_network import network_of

SLOWEST = 65_536  # bytes a second that the sender of a long body must reach
LINGER = 2.0  # seconds in which a refused client can read the problem document
PATH = 2_000  # bytes of a path; the longest of a route has ids and short names. URLs are in queries and bodies
HEADERS = 200  # lines of a head, and of the trailers of a body
CHUNKS = 256  # of a body, which may be small
SMALLEST = 64  # bytes that its other chunks must have on average
LINGERING = 50  # refused connections that are kept until they have read the problem document
FOR_OURSELVES = 100  # descriptors reserved for the database, files and threads


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Numbers of connections, and seconds."""

    in_all: int = 1_000
    each_address: int = 250
    head: float = 10.0
    body: float = 30.0
    form: float = 3.0  # for the body of a request without a caller, which is a login
    answer: float = 60.0


class ConnectionCount:
    """Counts the connections of each address."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._most = max(1, min(limits.in_all, descriptors - FOR_OURSELVES))
        self._each: dict[str, dict[LimitedProtocol, None]] = {}
        self._all = 0
        self.lingering = 0

    def enter(self, address: str, connection: LimitedProtocol) -> Problem | None:
        """Count a new connection. If the limit is exceeded, one without a request of a known caller makes room. If
        there is none, returns a problem."""
        others = self._each.setdefault(address, {})
        others[connection] = None
        self._all += 1
        if len(others) > self.limits.each_address and not _give_way(others):
            return Problem("too-many", f"one address may have at most {self.limits.each_address} connections")
        if self._all > self._most and not any(_give_way(each) for each in self._largest_first()):
            return Problem("too-many-connections", f"the server allows at most {self._most} connections")
        return None

    def leave(self, address: str, connection: LimitedProtocol) -> None:
        """May be called twice for a connection."""
        others = self._each.get(address, {})
        if connection in others:
            self._all -= 1
            del others[connection]
            if not others:
                del self._each[address]

    def _largest_first(self) -> list[dict[LimitedProtocol, None]]:
        return sorted(self._each.values(), key=len, reverse=True)


def _give_way(connections: dict[LimitedProtocol, None]) -> bool:
    """End the oldest connection that may give way. The newest one has had no time to send a request."""
    newest = next(reversed(connections))
    oldest = next((each for each in connections if each is not newest and each.may_give_way), None)
    if oldest is None:
        return False
    oldest.end()
    return True


class Oversized(h11.RemoteProtocolError):
    """A request has too many headers or small chunks, or its path is too long."""


class FewLines(ReceiveBuffer):
    """Refuses a head or trailers with very many lines, before h11 reads each of them."""

    def maybe_extract_lines(self) -> list[bytearray] | None:
        lines = super().maybe_extract_lines()
        if lines is not None and len(lines) > HEADERS:
            raise Oversized(f"a request may have at most {HEADERS} headers")
        return lines


class CountedParts(h11.Connection):
    """Refuses requests with very many headers, a very long path, or a body in very small chunks."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER)
        self._receive_buffer = FewLines()
        self._chunks = self._bytes = 0

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Data):
            self._chunks += event.chunk_start
            self._bytes += len(event.data)
            if self._chunks > CHUNKS + self._bytes // SMALLEST:
                raise Oversized(f"a body with more than {CHUNKS} chunks needs {SMALLEST} bytes in each, on average")
        elif isinstance(event, h11.Request):
            self._chunks = self._bytes = 0
            if len(event.target.partition(b"?")[0]) > PATH:
                raise Oversized(f"a path may have at most {PATH:,} bytes")
        return event


class LimitedProtocol(H11Protocol):
    """One connection."""

    def __init__(self, *args: Any, connections: ConnectionCount, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = CountedParts()
        self._count = connections
        self._limits = connections.limits
        self._address = ""
        self._refused = False
        self._lingers = False
        self._phase: Any = None
        self._until = 0.0  # the deadline for the next bytes of a body
        self._came = 0
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._address = network_of(self.client)
        problem = self._count.enter(self._address, self)
        if problem is None:
            self._watch()
            return
        # It is not counted any more: refused connections must not keep out those of others.
        self._count.leave(self._address, self)
        if self._count.lingering >= LINGERING:
            self._refused = True
            transport.abort()
            return
        self._lingers = True
        self._count.lingering += 1
        self._refuse(problem)

    def connection_lost(self, exc: Exception | None) -> None:
        self._count.leave(self._address, self)
        self._count.lingering -= self._lingers
        self._lingers = False
        self._stop_timers()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    @property
    def may_give_way(self) -> bool:
        """Whether the headers of its next request have not arrived, or its request has no caller or was too slow."""
        answering = self.cycle is not None and not self.cycle.response_complete
        return self._refused or self._has_no_caller or (self.conn.their_state is h11.IDLE and not answering)

    @property
    def _has_no_caller(self) -> bool:
        """Whether the request gate has found no caller for the latest request."""
        scope: dict[str, Any] = self.scope or {}  # type: ignore[assignment]
        return "caller" in scope and scope["caller"] is None

    def end(self) -> None:
        """End the connection at once, and stop to count it."""
        self._count.leave(self._address, self)
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._came += len(data)
        super().data_received(data)
        self._watch()
        # What came fast is no credit for silence later.
        now = self.loop.time()
        self._until = min(self._until + len(data) / SLOWEST, now + self._limits.body)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._limit_writing()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._writing is not None and not self.transport.is_closing():
            self._writing.cancel()
            self._writing = None

    def send_400_response(self, msg: str) -> None:
        """uvicorn calls this while it handles an error of the protocol."""
        error = sys.exception()
        detail = str(error) if isinstance(error, Oversized) else "this is not an HTTP request"
        self._refuse(Problem("bad-request", detail))

    def _watch(self) -> None:
        """Set the deadline for what the client must send next, if anything."""
        if self.transport.is_closing():
            self._stop_reading()
            self._limit_writing()
            return
        phase = self.conn.their_state
        waits = phase is h11.SEND_BODY or (phase is h11.IDLE and self.timeout_keep_alive_task is None)
        if not waits or self._refused:
            self._stop_reading()
        elif self._reading is None or phase is not self._phase:
            self._stop_reading()
            self._phase = phase
            allowed = self._limits.head if phase is h11.IDLE else self._limits.body
            self._until = self.loop.time() + allowed
            first_look = allowed if phase is h11.IDLE else min(allowed, self._limits.form)
            self._reading = self.loop.call_later(first_look, self._too_slow)

    def _too_slow(self) -> None:
        self._reading = None
        if self._phase is h11.IDLE and not self._came:
            self.transport.close()  # the client sent nothing, so it expects no answer
            return
        if self._phase is h11.IDLE:
            self._refuse(Problem("too-slow", f"the headers of a request must arrive within {self._limits.head:g} s"))
            return
        if self._has_no_caller:
            allowed = min(self._limits.form, self._limits.body)
            self._refuse(Problem("too-slow", f"without a token, a body must arrive within {allowed:g} s"))
            return
        now = self.loop.time()
        if self.flow.read_paused:  # the server paused reading, so the client is not to blame
            self._until = now + self._limits.body
        left = self._until - now
        if left > 0:
            self._reading = self.loop.call_later(left, self._too_slow)
            return
        limit = f"{self._limits.body:g} s, or at {SLOWEST:,} bytes a second without a longer pause"
        self._refuse(Problem("too-slow", f"a body must arrive within {limit}"))

    def _refuse(self, problem: Problem) -> None:
        """Send the problem if no answer was started, then end the connection. Further input is read and dropped;
        otherwise the client could lose the answer."""
        self._refused = True
        self._stop_timers()
        if self.transport.is_closing():
            return
        answered = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        if not answered:
            self.transport.write(as_bytes(problem))
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._writing = self.loop.call_later(LINGER, self.transport.abort)

    def _limit_writing(self) -> None:
        if self._writing is None:
            self._writing = self.loop.call_later(self._limits.answer, self.transport.abort)

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _stop_timers(self) -> None:
        self._stop_reading()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None


def as_bytes(problem: Problem) -> bytes:
    """A problem as a complete HTTP response, for requests that never reach a route."""
    body = msgspec.json.encode(problem.document())
    again = b"retry-after: 2\r\n" if problem.retryable else b""
    head = b"HTTP/1.1 %d %s\r\ncontent-type: %s\r\ncontent-length: %d\r\ncache-control: no-store\r\n%s" % (
        problem.status,
        problem.title.encode(),
        MEDIA_TYPE.encode(),
        len(body),
        again,
    )
    return head + b"x-content-type-options: nosniff\r\nconnection: close\r\n\r\n" + body

"""Limits the number of connections, and the time in which a request must arrive.

uvicorn has no such limits. `LimitedProtocol` adds them to its protocol for HTTP/1.1: a deadline for the headers of a
request, a deadline for the body (longer if the sender is fast enough), and a deadline for a client that stops reading
an answer. After a deadline the client gets a problem document, if it still reads, and the connection ends.
"""

from __future__ import annotations

import asyncio
import ipaddress
import resource
from dataclasses import dataclass
from typing import Any

import h11
import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

from silkline.api.problems import MEDIA_TYPE, Problem

SLOWEST = 16_384  # bytes a second that the sender of a long body must reach
LINGER = 2.0  # seconds in which a refused client can read the problem document
FOR_OURSELVES = 100  # descriptors reserved for the database, files and threads


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Numbers of connections, and seconds."""

    in_all: int = 1_000
    each_address: int = 250
    head: float = 10.0
    body: float = 30.0
    answer: float = 60.0


class ConnectionCount:
    """Counts the connections of each address."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._most = max(1, min(limits.in_all, descriptors - FOR_OURSELVES))
        self._each: dict[str, dict[LimitedProtocol, None]] = {}
        self._all = 0

    def enter(self, address: str, connection: LimitedProtocol) -> Problem | None:
        """Count a new connection. If the limit is exceeded, one that sends no request makes room. If there is none,
        returns a problem."""
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
    """End the oldest connection that has not sent the headers of a request. The newest one has had no time to do so."""
    newest = next(reversed(connections))
    oldest = next((each for each in connections if each is not newest and each.sends_no_request), None)
    if oldest is None:
        return False
    oldest.end()
    return True


def network_of(peer: Any) -> str:
    """The address that a connection counts for. For IPv6 it is the /64 network, since most clients have a whole one."""
    try:
        address = ipaddress.ip_address(peer[0])
    except (TypeError, IndexError, ValueError):
        return "unknown"
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))
    return str(address)


class LimitedProtocol(H11Protocol):
    """One connection."""

    def __init__(self, *args: Any, connections: ConnectionCount, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._count = connections
        self._limits = connections.limits
        self._address = ""
        self._refused = False
        self._phase: Any = None
        self._began = 0.0
        self._came = 0
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._address = network_of(self.client)
        problem = self._count.enter(self._address, self)
        if problem is not None:
            self._refuse(problem)
        else:
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._count.leave(self._address, self)
        self._stop_timers()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    @property
    def sends_no_request(self) -> bool:
        """Whether the headers of the next request have not arrived, and no answer is under way."""
        answering = self.cycle is not None and not self.cycle.response_complete
        return self.conn.their_state is h11.IDLE and not answering and not self._refused

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
        """uvicorn also calls this for bytes that are not HTTP."""
        self._refuse(Problem("bad-request", "this is not an HTTP request"))

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
            self._phase, self._began = phase, self.loop.time()
            if phase is h11.SEND_BODY:
                self._came = 0
            allowed = self._limits.head if phase is h11.IDLE else self._limits.body
            self._reading = self.loop.call_later(allowed, self._too_slow)

    def _too_slow(self) -> None:
        self._reading = None
        if self._phase is h11.IDLE and not self._came:
            self.transport.close()  # the client sent nothing, so it expects no answer
            return
        if self._phase is h11.IDLE:
            self._refuse(Problem("too-slow", f"the headers of a request must arrive within {self._limits.head:g} s"))
            return
        left = self._limits.body + self._came / SLOWEST - (self.loop.time() - self._began)
        if self.flow.read_paused:  # the server paused reading, so the client is not to blame
            left = max(left, 1.0)
        if left > 0:
            self._reading = self.loop.call_later(left, self._too_slow)
            return
        self._refuse(
            Problem("too-slow", f"a body must arrive within {self._limits.body:g} s, or at {SLOWEST:,} bytes a second")
        )

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

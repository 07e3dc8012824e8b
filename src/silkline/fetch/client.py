"""The HTTP client of a crawl. Each call makes one request. Every outcome is a value; no exception is raised.

The steps of a request: origin.py parses the URL, dns.py resolves its host, and guard.py checks each address. The first
allowed address is pinned with CONNECT_TO, so that libcurl never resolves a name itself. A pooled handle (handle.py)
runs on the multi interface (transport.py). response.py turns the response into a `Fetched`; decode.py decodes it.

Costs (benchmarks/fetch.py, 2-vCPU EPYC, pages of 46.5 KB, 15 KB gzipped, 300 at once, decoding included, CPU-ms
per page): new connection 0.20-0.22, keep-alive 0.13-0.16; TLS with verification 0.93-1.0 and 0.22-0.26. Awaiting
`fetch` costs no more than the callback of `start`, within the noise. Memory is flat from 16,000 hosts on.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol

import pycurl  # type: ignore[import-untyped]

from silkline.fetch.descriptors import EXHAUSTED, LONGEST_WAIT, WAIT, Shortage
from silkline.fetch.dns import Resolution, Resolver
from silkline.fetch.guard import Guard
from silkline.fetch.handle import Budget, Handle, base_headers
from silkline.fetch.origin import Target, locate
from silkline.fetch.response import outcome
from silkline.fetch.settings import FetchSettings, is_header_name, is_header_value
from silkline.fetch.transport import Transport
from silkline.metrics.instruments import CACHE_LOOKUPS, RECEIVED_BYTES, REQUEST_FAILURES, REQUESTS, reason_label
from silkline.model.fetched import (
    ADDRESS_BLOCKED,
    BAD_REQUEST,
    CLOSED,
    CONNECT_FAILED,
    CONNECT_TIMEOUT,
    DNS_FAILED,
    TIMEOUT,
    Fetched,
    Request,
)

OnFetched = Callable[[Fetched], None]
# The errno values of a socket that could not be opened. libcurl often gives no number (0).
_NO_SOCKET: Final = EXHAUSTED | {0}
_CLASSES: Final = {1: "1xx", 2: "2xx", 3: "3xx", 4: "4xx", 5: "5xx"}
_NEXT_ADDRESS_HELPS: Final = frozenset({CONNECT_FAILED, CONNECT_TIMEOUT})


def _settle(future: asyncio.Future[Fetched], fetched: Fetched) -> None:
    if not future.done():  # the caller may have cancelled it
        future.set_result(fetched)


def _count(purpose: str, fetched: Fetched) -> None:
    REQUESTS.add(1, purpose, _CLASSES.get(fetched.status // 100, "none"))
    RECEIVED_BYTES.add(fetched.wire_bytes)
    if fetched.reason is not None:
        REQUEST_FAILURES.add(1, reason_label(fetched.reason))


class Place(Protocol):
    """Holds a place of a request at an address. It decides to which addresses of the host the request may go."""

    def order(self, addresses: tuple[str, ...]) -> tuple[str, ...]:
        """The addresses in the order in which they are to be tried."""

    def enter(self, address: str, port: int) -> str | None:
        """Take a place at this address. Returns the reason why the request may not connect to it, or None."""

    def timed_out(self) -> None:
        """The connection to the last address was not made in time."""


class Exchange:
    """A request in progress."""

    __slots__ = (
        *("addresses", "connect_to", "deadline", "handle", "headers", "lookup", "on_done", "over", "place", "request"),
        *("sent_again", "starved_at", "target", "unwatched"),
    )

    def __init__(
        self,
        request: Request,
        target: Target,
        headers: list[str] | None,
        deadline: float,
        on_done: OnFetched,
        place: Place | None,
    ) -> None:
        self.request = request
        self.place = place
        self.target = target
        self.headers = headers
        self.deadline = deadline
        self.on_done = on_done
        self.addresses: list[str] = []
        self.connect_to = ""
        self.starved_at = 0.0
        self.unwatched = 0.0
        self.sent_again = False
        self.handle: Handle | None = None
        self.lookup: asyncio.Task[None] | None = None
        self.over = False


class HttpClient:
    """Must be created and used inside a running event loop. `close` ends all requests in progress."""

    def __init__(self, settings: FetchSettings, guard: Guard, resolver: Resolver) -> None:
        self.settings = settings
        self.guard = guard
        self.resolver = resolver
        self._loop = asyncio.get_running_loop()
        self._transport = Transport(
            self._loop,
            self._ended,
            connections=settings.connections,
            most=settings.most_connections,
            burst=settings.burst,
        )
        self._shortage = Shortage()
        self._base = base_headers(settings)
        self._budget = Budget(settings.max_buffered)
        self._idle: list[Handle] = []
        self._under_way: dict[Any, tuple[Exchange, Handle]] = {}
        self._looking_up: set[Exchange] = set()
        self._closed = False

    async def fetch(self, request: Request, place: Place | None = None) -> Fetched:
        """Make one request and wait for its outcome. Cancelling the wait ends the transfer."""
        future: asyncio.Future[Fetched] = self._loop.create_future()
        exchange = self.start(request, partial(_settle, future), place)
        try:
            return await future
        except asyncio.CancelledError:
            if exchange is not None:
                self.cancel(exchange)
            raise

    def start(self, request: Request, on_done: OnFetched, place: Place | None = None) -> Exchange | None:
        """The same with a callback. Returns None if the callback was already called. `place` may refuse addresses."""
        target = CLOSED if self._closed else locate(request.url)
        if isinstance(target, str):
            on_done(Fetched(url=request.url, reason=target))
            return None
        headers = self._headers(request, target)
        if isinstance(headers, str):
            on_done(Fetched(url=target.url, reason=headers))
            return None
        deadline = self._loop.time() + self.settings.total_timeout
        exchange = Exchange(request, target, headers, deadline, on_done, place)
        origin = target.origin
        if origin.literal:
            self._connect(exchange, (origin.literal,))
        elif self.settings.proxy:
            self._connect_by_proxy(exchange)
        else:
            known = self.resolver.cached(origin.host)
            CACHE_LOOKUPS.add(1, "dns", "miss" if known is None else "hit")
            if known is not None:
                self._connect(exchange, known)
            else:
                self._looking_up.add(exchange)
                exchange.lookup = self._loop.create_task(self._look_up(exchange))
        return None if exchange.over else exchange

    async def addresses(self, url: str) -> Resolution:
        """The addresses to which a request for this URL may connect, for limits per address; or a failure reason.

        Empty behind a proxy, because the proxy resolves the names.
        """
        target = locate(url)
        if isinstance(target, str):
            return target
        origin = target.origin
        if self.settings.proxy:
            return ()
        found = (origin.literal,) if origin.literal else await self.resolver.resolve(origin.host)
        return found if isinstance(found, str) else self._allowed(found, origin.port) or ADDRESS_BLOCKED

    def cancel(self, exchange: Exchange) -> None:
        """End a transfer without a call of its callback."""
        if exchange.over:
            return
        exchange.over = True
        self._looking_up.discard(exchange)
        if exchange.lookup is not None:
            exchange.lookup.cancel()
        handle = exchange.handle
        if handle is not None:
            self._transport.remove(handle.easy)
            del self._under_way[handle.easy]
            self._release(exchange, handle)

    @property
    def buffered(self) -> int:
        """Bytes of bodies that are being received."""
        return self._budget.held

    def close(self) -> None:
        """End all requests with the reason `closed`. The caller must close the resolver."""
        if self._closed:
            return
        self._closed = True
        for exchange in (*(exchange for exchange, _ in self._under_way.values()), *self._looking_up):
            self.cancel(exchange)
            exchange.on_done(Fetched(url=exchange.target.url, reason=CLOSED))
        for handle in self._idle:
            handle.easy.close()
        self._idle.clear()
        self._transport.close()

    async def _look_up(self, exchange: Exchange) -> None:
        detail = ""
        try:
            resolution = await self.resolver.resolve(exchange.target.origin.host)
        except Exception as error:  # the caller must get an outcome for every error
            resolution, detail = DNS_FAILED, repr(error)
        # The timeout starts here: the look-up has its own limit, and may have waited for other look-ups.
        exchange.deadline = self._loop.time() + self.settings.total_timeout
        self._looking_up.discard(exchange)
        if not exchange.over:
            self._connect(exchange, resolution, detail)

    def _connect(self, exchange: Exchange, resolution: Resolution, detail: str = "") -> None:
        """Keep the addresses that the guard allows, and try the first."""
        if isinstance(resolution, str):
            self._finish(exchange, Fetched(url=exchange.target.url, reason=resolution, detail=detail))
            return
        port = exchange.target.origin.port
        allowed = self._allowed(resolution, port)
        if not allowed:
            # Do not show the private address of a name: the readers of results may have no right to know the network.
            literal = exchange.target.origin.literal
            detail = f"refused: {literal} port {port}" if literal else "refused: the name leads to a private address"
            self._finish(exchange, Fetched(url=exchange.target.url, reason=ADDRESS_BLOCKED, detail=detail))
            return
        if self.settings.proxy:
            self._send(exchange, "")
            return
        if exchange.place is not None and len(allowed) > 1:
            allowed = exchange.place.order(allowed)
        exchange.addresses = list(allowed[: self.settings.addresses])
        self._try_next_address(exchange)

    def _allowed(self, addresses: tuple[str, ...], port: int) -> tuple[str, ...]:
        check = self.guard.check
        return tuple(address for address in addresses if check(address, port) is None)

    def _connect_by_proxy(self, exchange: Exchange) -> None:
        """The proxy resolves the name. Names of the local machine are checked like the address 127.0.0.1."""
        host = exchange.target.origin.host.rstrip(".")
        if host == "localhost" or host.endswith(".localhost"):
            self._connect(exchange, ("127.0.0.1",))
        else:
            self._send(exchange, "")

    def _try_next_address(self, exchange: Exchange, failed: Fetched | None = None) -> None:
        """`failed`: the outcome at the address before. It is that of the request if no other address may be tried."""
        port, place = exchange.target.origin.port, exchange.place
        refused = None
        while exchange.addresses:
            address = exchange.addresses.pop(0)
            refused = place.enter(address, port) if place is not None else None
            if refused is None:
                self._send(exchange, f"::[{address}]:{port}" if ":" in address else f"::{address}:{port}")
                return
        self._finish(exchange, failed or Fetched(url=exchange.target.url, reason=refused))

    def _send(self, exchange: Exchange, connect_to: str) -> None:
        left = exchange.deadline - self._loop.time()
        if left <= 0:
            self._finish(exchange, Fetched(url=exchange.target.url, reason=TIMEOUT))
            return
        handle = self._idle.pop() if self._idle else Handle(self.settings, self._budget, self.guard.check)
        exchange.handle, exchange.connect_to = handle, connect_to
        exchange.unwatched = self._transport.unwatched
        request = exchange.request
        try:
            handle.limit(request.max_body or self.settings.max_wire, request.cut)
            handle.prepare(exchange.target.url, connect_to, exchange.headers, self._base, left)
            self._under_way[handle.easy] = (exchange, handle)
            self._transport.add(handle.easy)
        except (pycurl.error, UnicodeError) as error:
            self._under_way.pop(handle.easy, None)
            self._release(exchange, handle)
            self._finish(exchange, Fetched(url=exchange.target.url, reason=BAD_REQUEST, detail=str(error)))

    def _ended(self, easy: Any, code: int, message: str) -> None:
        exchange, handle = self._under_way.pop(easy)
        if code == pycurl.E_COULDNT_CONNECT and self._wait_for_files(exchange, handle):
            return
        if code == pycurl.E_OPERATION_TIMEDOUT and self._was_unwatched(exchange, handle):
            return
        fetched = outcome(handle, exchange.target.url, exchange.request, self.settings, code, message)
        self._release(exchange, handle)
        if fetched.reason not in _NEXT_ADDRESS_HELPS:
            self._finish(exchange, fetched)
            return
        if fetched.reason == CONNECT_TIMEOUT and not fetched.address and exchange.place is not None:
            exchange.place.timed_out()  # not if only the handshake of TLS timed out, which depends on the name
        self._try_next_address(exchange, fetched)

    def _wait_for_files(self, exchange: Exchange, handle: Handle) -> bool:
        """If no socket could be opened, try again later with a full timeout. The server did not cause this failure."""
        now = self._loop.time()
        if handle.easy.getinfo(pycurl.OS_ERRNO) not in _NO_SOCKET or not self._shortage.seen(now):
            return False
        exchange.starved_at = exchange.starved_at or now
        if now - exchange.starved_at > LONGEST_WAIT:
            return False
        self._release(exchange, handle)
        self._transport.shrink()
        exchange.deadline = now + WAIT + self.settings.total_timeout
        self._looking_up.add(exchange)
        self._loop.call_later(WAIT, self._send_again, exchange)
        return True

    def _was_unwatched(self, exchange: Exchange, handle: Handle) -> bool:
        """If this process was busy when the request timed out, send it once more. The server may have answered."""
        if exchange.sent_again or self._transport.unwatched == exchange.unwatched:
            return False
        exchange.sent_again = True
        self._release(exchange, handle)
        exchange.deadline = self._loop.time() + self.settings.total_timeout
        self._send(exchange, exchange.connect_to)
        return True

    def _send_again(self, exchange: Exchange) -> None:
        self._looking_up.discard(exchange)
        if not exchange.over:
            self._send(exchange, exchange.connect_to)

    def _release(self, exchange: Exchange, handle: Handle) -> None:
        exchange.handle = None
        handle.clear()
        self._idle.append(handle)

    def _finish(self, exchange: Exchange, fetched: Fetched) -> None:
        exchange.over = True
        _count(exchange.request.purpose, fetched)
        exchange.on_done(fetched)

    def _headers(self, request: Request, target: Target) -> list[str] | str | None:
        """The header lines besides the base headers; None if there are none; a failure reason if one is invalid."""
        own = self.settings.origin_headers.get(target.origin.text, ())
        if not (own or request.headers or request.etag or request.last_modified or target.authorization):
            return None
        chosen = {name.lower(): f"{name}: {value}" for name, value in own}
        if target.authorization:
            chosen["authorization"] = f"Authorization: {target.authorization}"
        for name, value in request.headers:
            if not (is_header_name(name) and is_header_value(value)):
                return BAD_REQUEST
            chosen[name.lower()] = f"{name}: {value}"
        # These two come from an earlier response and may be invalid. Without them the whole page is fetched.
        if request.etag and is_header_value(request.etag):
            chosen["if-none-match"] = f"If-None-Match: {request.etag}"
        if request.last_modified and is_header_value(request.last_modified):
            chosen["if-modified-since"] = f"If-Modified-Since: {request.last_modified}"
        return list(chosen.values())

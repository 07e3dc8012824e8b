"""The proxy of one page in a browser. The page reaches the network only through it, and the guard checks each address.

Chromium sends every request here (plain HTTP as requests, all others as tunnels) and resolves no names. The proxy
resolves the name, checks the addresses, and connects to an allowed address. No second look-up happens in between. It
counts the bytes and connections of the page, and closes its connections with the page. Other users of the machine are
refused: they could reach private addresses that the job may reach, with the password of the operator's proxy.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import sys
from base64 import b64encode
from typing import Final
from urllib.parse import unquote, urlsplit

from silkline.errors import UsageError
from silkline.fetch.dns import Resolver
from silkline.fetch.guard import Guard
from silkline.fetch.origin import Origin, locate
from silkline.fetch.peer_owner import owner_of
from silkline.model.fetched import ADDRESS_BLOCKED, CONNECT_FAILED

_HEAD: Final = 64 * 1024
_CHUNK: Final = 64 * 1024
_CONNECT_SECONDS: Final = 10.0
_IDLE_SECONDS: Final = 60.0
_ADDRESSES: Final = 3
_HOP_BY_HOP: Final = re.compile(rb"\r\n(?:proxy-connection|proxy-authorization|connection|keep-alive):[^\r\n]*", re.I)
_SPECULATIVE: Final = re.compile(rb"\r\nsec-purpose:[^\r\n]*prefetch", re.I)
_STATUS: Final = re.compile(rb"HTTP/1\.[01] (\d{3})")
_log: Final = logging.getLogger(__name__)

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Upstream:
    """The proxy of the operator, to which our proxy connects."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"pages can be rendered through an http or https proxy only, not {parts.scheme}")
        self.host = parts.hostname
        self.tls = parts.scheme == "https"
        self.port = parts.port or (443 if self.tls else 1080)
        self.authorization = b""
        if parts.username:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            self.authorization = b"Proxy-Authorization: Basic " + b64encode(pair) + b"\r\n"


class PageProxy:
    """Must be opened inside an event loop. `refused` counts requests to addresses that the guard does not allow.

    `problem` is the reason why the last host could not be reached, as in the ledger; empty if all were reached.
    """

    def __init__(
        self,
        guard: Guard,
        resolver: Resolver,
        upstream: Upstream | None,
        max_bytes: int,
        max_connections: int = sys.maxsize,
    ) -> None:
        self._guard = guard
        self._resolver = resolver
        self._upstream = upstream
        self._max_bytes = max_bytes
        self._max_connections = max_connections
        self._connections = 0
        self._server: asyncio.Server | None = None
        self._peer: str | None = None
        self._user: int | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.address = ""
        self.bytes = 0
        self.refused = 0
        self.problem = ""

    async def open(self, host: str, peer: str, user: int | None = None) -> None:
        """Listen on the address `host`. Accept connections from the address `peer` only, and only of this user, if one
        is given."""
        self._peer = peer
        self._user = user
        self._server = await asyncio.start_server(self._serve, host, 0, limit=_HEAD)
        port = self._server.sockets[0].getsockname()[1]
        self.address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    @property
    def full(self) -> bool:
        """Whether the page has used all its bytes."""
        return self.bytes > self._max_bytes

    @property
    def cut(self) -> set[str]:
        """The limits that were reached: `bytes`, `requests`."""
        reached = {"bytes": self.full, "requests": self._connections > self._max_connections}
        return {name for name, is_reached in reached.items() if is_reached}

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101
        self._tasks.add(task)
        try:
            if await self._is_ours(writer) and not self.full:
                await self._answer(reader, writer)
        except (OSError, EOFError, ValueError, TimeoutError, asyncio.LimitOverrunError):
            pass  # one side closed, or sent no valid HTTP; the browser sees a closed connection
        except asyncio.CancelledError:
            pass  # the page is closed
        except Exception:  # it would end the job
            _log.exception("a connection to the proxy of a page failed")
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _is_ours(self, writer: asyncio.StreamWriter) -> bool:
        peer = writer.get_extra_info("peername")
        if not peer or peer[0] != self._peer:  # none: it was reset already
            return False
        if self._user is None or sys.platform != "linux":
            return True
        return await owner_of(peer, writer.get_extra_info("sockname")) == self._user

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_IDLE_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
        # A browser sends also requests that its page does not ask us for, such as those that a page declares as likely.
        self._connections += 1
        if self._connections > self._max_connections or _SPECULATIVE.search(head):
            writer.write(_error(403, "Forbidden"))
            await writer.drain()
            return
        method, target, _ = head.split(b"\r\n", 1)[0].decode("ascii").split(" ")
        tunnel = method == "CONNECT"
        place = locate(f"http://{target}/" if tunnel else target)
        if isinstance(place, str) or place.origin.scheme != "http":
            writer.write(_error(400, "Bad Request"))
            await writer.drain()
            return
        there = await self._connect(place.origin)
        if there is None:
            writer.write(_error(403, "Forbidden") if tunnel else _error(502, "Bad Gateway"))
            await writer.drain()
            return
        try:
            await self._carry(method, target, head, (reader, writer), there, place.origin)
        finally:
            there[1].transport.abort()

    async def _carry(self, method: str, target: str, head: bytes, here: Ends, there: Ends, origin: Origin) -> None:
        upstream = self._upstream
        if method == "CONNECT":
            if upstream is not None:
                name = f"{origin.host}:{origin.port}"
                there[1].write(b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n" % (name.encode(), name.encode()))
                there[1].write(upstream.authorization + b"\r\n")
            else:
                here[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await self._relay(here, there)
            return
        rest = _HOP_BY_HOP.sub(b"", head[head.index(b"\r\n") : -4])
        if upstream is None:
            target = "/" + target.split("/", 3)[3] if target.count("/") >= 3 else "/"
        line = f"{method} {target} HTTP/1.1".encode("ascii")
        more = b"" if upstream is None else upstream.authorization
        there[1].write(line + rest + b"\r\nConnection: close\r\n" + more + b"\r\n")
        await self._relay(here, there, heads=True)

    async def _connect(self, origin: Origin) -> Ends | None:
        """A connection to an address of the origin that the guard allows; None if there is none."""
        if self._upstream is not None:
            return await self._connect_upstream(origin)
        found = (origin.literal,) if origin.literal else await self._resolver.resolve(origin.host)
        if isinstance(found, str):
            self.problem = found
            return None
        allowed = [address for address in found if self._guard.check(address, origin.port) is None]
        if not allowed:
            self.refused += 1
        for address in allowed[:_ADDRESSES]:
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(_CONNECT_SECONDS):
                    return await asyncio.open_connection(address, origin.port, limit=_HEAD)
        self.problem = CONNECT_FAILED if allowed else ADDRESS_BLOCKED
        return None

    async def _connect_upstream(self, origin: Origin) -> Ends | None:
        """The operator's proxy resolves names. Only addresses and names of this machine are checked here."""
        assert self._upstream is not None  # noqa: S101
        host = origin.host.rstrip(".")
        literal = "127.0.0.1" if host == "localhost" or host.endswith(".localhost") else origin.literal
        if literal and self._guard.check(literal, origin.port) == ADDRESS_BLOCKED:
            self.refused += 1
            return None
        async with asyncio.timeout(_CONNECT_SECONDS):
            return await asyncio.open_connection(
                self._upstream.host, self._upstream.port, ssl=self._upstream.tls or None, limit=_HEAD
            )

    # Relay bytes.

    async def _relay(self, here: Ends, there: Ends, *, heads: bool = False) -> None:
        """Relay in both directions until one side ends. A second task relays what the page sends."""
        upwards = asyncio.ensure_future(_pump(here[0], there[1]))
        try:
            if heads:
                await self._head(there[0], here[1])
            while chunk := await _read(there[0]):
                self.bytes += len(chunk)
                if self.full:
                    break
                here[1].write(chunk)
                await here[1].drain()
            await here[1].drain()
            here[1].close()
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(_CONNECT_SECONDS):
                    await here[1].wait_closed()
        finally:
            upwards.cancel()
            await asyncio.gather(upwards, return_exceptions=True)

    async def _head(self, server: asyncio.StreamReader, browser: asyncio.StreamWriter) -> None:
        """Relay the response headers, with `Connection: close`. Interim responses (1xx) are dropped."""
        while True:
            async with asyncio.timeout(_IDLE_SECONDS):
                head = await server.readuntil(b"\r\n\r\n")
            self.bytes += len(head)
            status = _STATUS.match(head)
            if status is None:
                raise ValueError("not HTTP")
            if not status[1].startswith(b"1"):
                break
        browser.write(_HOP_BY_HOP.sub(b"", head[:-4]) + b"\r\nConnection: close\r\n\r\n")


async def _read(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(_IDLE_SECONDS):
        return await reader.read(_CHUNK)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
    writer.transport.abort()  # browsers do not half-close, so the browser does not want the answer any more


def _error(status: int, words: str) -> bytes:
    return b"HTTP/1.1 %d %b\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % (status, words.encode())

"""A connection to a browser that the operator runs: the parts of a WebSocket (RFC 6455) that we need.

The address is `ws://HOST:PORT/devtools/browser/…`, or `http://HOST:PORT`: then the browser is asked for the first form.
"""

from __future__ import annotations

import asyncio
import os
import socket
from base64 import b64encode
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

import msgspec

from silkline.fetch.peer_owner import owner_of
from silkline.fetch.render_cdp import BrowserGone, Conversation
from silkline.fetch.render_messages import Incoming

_PART: Final = 1 << 20
_LONGEST_CONTROL: Final = 125
_CONNECT_SECONDS: Final = 10.0
_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10
_FINAL, _MASKED = 0x80, 0x80
_TLS: Final = frozenset({"wss", "https"})


class SocketLine:
    """One WebSocket. `local` and `peer` are the addresses of its two ends, `user` the owner of the other end if it is a
    socket of this machine."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._writer: asyncio.StreamWriter | None = None
        self._task: asyncio.Task[None] | None = None
        self.local = ""
        self.peer = ""
        self.user: int | None = None

    async def open(self, url: str) -> None:
        """Connect. Raises `BrowserGone` with the cause of a failure, without the secrets of the address."""
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                parts = urlsplit(url)
                if parts.scheme in ("http", "https"):
                    parts = await _ask_for_socket(parts)
                await self._connect(parts)
        except (OSError, EOFError, ValueError, TimeoutError, KeyError, TypeError, AttributeError) as error:
            raise BrowserGone(f"the browser at SILKLINE_RENDERER_URL does not answer: {error!r}") from error

    async def _connect(self, parts: SplitResult) -> None:
        reader, writer = await _connection(parts)
        key = b64encode(os.urandom(16)).decode("ascii")
        more = f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
        writer.write(_request(parts, writer, more))
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 101 " not in head.split(b"\r\n", 1)[0]:
            writer.transport.abort()
            raise ValueError(f"it answers {head.split(bytes([13]), 1)[0].decode('latin-1')!r}")
        self._writer = writer
        local, peer = writer.get_extra_info("sockname"), writer.get_extra_info("peername")
        self.local, self.peer = local[0], peer[0]
        self.user = await owner_of(peer, local)
        self._task = asyncio.ensure_future(self._listen(reader))
        self._conversation.over(self)

    def send(self, message: bytes) -> None:
        self._frame(_TEXT, message)

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        if self._writer is not None:
            self._writer.transport.abort()

    def _frame(self, kind: int, data: bytes) -> None:
        length = len(data)
        if length < 126:
            head = bytes((_FINAL | kind, _MASKED | length))
        elif length < 1 << 16:
            head = bytes((_FINAL | kind, _MASKED | 126)) + length.to_bytes(2, "big")
        else:
            head = bytes((_FINAL | kind, _MASKED | 127)) + length.to_bytes(8, "big")
        if self._writer is not None:
            # The mask is zero. A mask protects proxies from bytes that scripts choose. No script chooses these bytes.
            self._writer.write(head + bytes(4) + data)

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        incoming = Incoming(self._conversation.longest)
        try:
            while True:
                first, second = await reader.readexactly(2)
                length = second & 0x7F
                if length > 125:
                    length = int.from_bytes(await reader.readexactly(2 if length == 126 else 8), "big")
                kind = first & 0x0F
                if kind == _CLOSE:
                    return
                if kind in (_PING, _PONG):
                    data = await reader.readexactly(min(length, _LONGEST_CONTROL))
                    if kind == _PING:
                        self._frame(_PONG, data)
                    continue
                for start in range(0, length, _PART):
                    incoming.add(await reader.readexactly(min(_PART, length - start)))
                if first & _FINAL:
                    self._conversation.heard(incoming.complete())
        except (OSError, EOFError):
            return
        except (ValueError, MemoryError, OverflowError):
            return  # not a WebSocket: the browser counts as gone
        finally:
            self._conversation.ended()


async def _ask_for_socket(parts: SplitResult) -> SplitResult:
    """The WebSocket address that the browser returns, with the host and port that the operator gave."""
    reader, writer = await _connection(parts)
    try:
        query = f"?{parts.query}" if parts.query else ""
        there = parts._replace(path=parts.path.rstrip("/") + "/json/version", query=parts.query)
        writer.write(_request(there, writer, "Connection: close\r\n"))
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            (int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")),
            -1,
        )
        said: dict[str, Any] = msgspec.json.decode(await (reader.readexactly(length) if length >= 0 else reader.read()))
        given = urlsplit(said["webSocketDebuggerUrl"])
    finally:
        writer.transport.abort()
    scheme = "wss" if parts.scheme in _TLS else "ws"
    return urlsplit(f"{scheme}://{parts.netloc}{given.path}{query}")


async def _connection(parts: SplitResult) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if parts.hostname is None:
        raise ValueError("the address has no host")
    tls = parts.scheme in _TLS
    reader, writer = await asyncio.open_connection(
        parts.hostname, parts.port or (443 if tls else 80), ssl=tls or None, limit=1 << 20
    )
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return reader, writer


def _request(parts: SplitResult, writer: asyncio.StreamWriter, more: str) -> bytes:
    """A GET request. Chromium accepts only an IP address as Host, so we send the address of the connection."""
    peer = writer.get_extra_info("peername")
    address = f"[{peer[0]}]" if ":" in peer[0] else peer[0]
    host = parts.netloc.rpartition("@")[2] if parts.scheme in _TLS else f"{address}:{peer[1]}"
    login = ""
    if parts.username:
        pair = f"{parts.username}:{parts.password or ''}".encode()
        login = f"Authorization: Basic {b64encode(pair).decode('ascii')}\r\n"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{login}{more}\r\n".encode("ascii")

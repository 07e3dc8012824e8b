"""Frames over a unix socket: four bytes of length, then msgpack. A frame arrives completely or not at all."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any, Final, cast

import msgspec

from silkline.crawl.messages import UNREADABLE, encoder

_HEAD: Final = 4
MOST: Final = 1 << 30


class Wire(asyncio.Protocol):
    """One end of a connection. `on_message` gets each decoded frame. `on_close` is called once."""

    def __init__(
        self,
        decoder: msgspec.msgpack.Decoder[Any],
        on_message: Callable[[Any], None],
        on_close: Callable[[], None],
    ) -> None:
        self._decode = decoder.decode
        self._encode = encoder().encode
        self._on_message = on_message
        self._on_close = on_close
        self._buffer = bytearray()
        self._is_cut_off = False
        self._transport: asyncio.WriteTransport | None = None

    async def open(self, end: socket.socket) -> None:
        """Connect over one end of a socket pair. Messages may arrive before this returns."""
        end.setblocking(False)
        await asyncio.get_running_loop().create_unix_connection(lambda: self, sock=end)

    def send(self, message: object) -> None:
        """Send a frame to the other side. After the connection was closed, this does nothing."""
        if self._transport is not None:
            frame = self._encode(message)
            self._transport.write(len(frame).to_bytes(_HEAD, "big") + frame)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def cut_off(self) -> None:
        """The other side sent an invalid message. It may be under the control of an attacker: abort the connection."""
        self._buffer = bytearray()
        self._is_cut_off = True
        if self._transport is not None:
            cast(asyncio.Transport, self._transport).abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._on_close()

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        start, have = 0, len(buffer)
        while have - start >= _HEAD:
            length = int.from_bytes(buffer[start : start + _HEAD], "big")
            end = start + _HEAD + length
            if length > MOST:
                self.cut_off()
                return
            if end > have:
                break
            try:
                message = self._decode(memoryview(buffer)[start + _HEAD : end])
            except UNREADABLE:
                self.cut_off()
                return
            self._on_message(message)
            if self._is_cut_off:
                return
            start = end
        if start:
            self._buffer = buffer[start:]

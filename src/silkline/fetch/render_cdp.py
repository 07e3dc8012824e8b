"""A client for the Chrome DevTools Protocol: sends commands, returns their answers, passes events to listeners.

It knows nothing about pages. A `BrowserLine` carries the messages: the socket of our own browser (here), or a WebSocket
to a browser that the operator runs (render_socket.py).
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import Callable
from typing import Any, Final, Protocol, cast

import msgspec

COMMAND_SECONDS: Final = 15.0
_LONGEST_ANSWER: Final = 256 << 20
_LONGEST_EVENT: Final = 16 << 20
_LONGEST_REPAIR: Final = 2 << 20
"""Bytes of a message with invalid characters. To replace them takes up to 0.2 s in 2 MB, in which nothing else runs."""
_ANSWER: Final = b'{"id"'
_NUMBER: Final = re.compile(rb'\{"id":(\d{1,15})[,}]')
# Half of a pair of surrogates, written as an escape. Scripts can put one into every text; JSON for others has none.
_LONE: Final = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|"
    rb"(?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD])[c-fC-F][0-9a-fA-F]{2})"
)
_log: Final = logging.getLogger(__name__)

Listener = Callable[[str, dict[str, Any]], None]


class BrowserGone(Exception):
    """The browser has ended, or does not answer any more."""


class CommandRefused(Exception):
    """The browser refused a command. The page may be closed."""


class BrowserLine(Protocol):
    """Carries messages to a browser."""

    def send(self, message: bytes) -> None: ...
    def close(self) -> None: ...


class _Message(msgspec.Struct):
    id: int = 0
    method: str = ""
    sessionId: str = ""
    params: dict[str, Any] = {}
    result: dict[str, Any] = {}
    error: dict[str, Any] | None = None


_decode = msgspec.json.Decoder(_Message).decode
_encode = msgspec.json.Encoder().encode


def _read(data: bytes | bytearray) -> _Message | None:
    """The message, with U+FFFD for what is no character. None: it cannot be read."""
    try:
        return _decode(data)
    except (ValueError, RecursionError):
        if len(data) > _LONGEST_REPAIR:
            return None
    # An escaped backslash gets another form, so that every backslash that is left begins an escape.
    clean = _LONE.sub(rb"\\ufffd", data.replace(rb"\\", rb"\u005c"))
    try:
        return _decode(clean.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


class Conversation:
    """The exchange of messages with one browser. `gone` is set when the connection is closed."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._line: BrowserLine | None = None
        self._last = 0
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._listeners: dict[str, Listener] = {}

    def over(self, line: BrowserLine) -> None:
        self._line = line

    def listen(self, session: str, listener: Listener | None) -> None:
        """Set the listener for the events of a session (empty: the browser itself). None removes the listener."""
        if listener is None:
            self._listeners.pop(session, None)
        else:
            self._listeners[session] = listener

    def say(self, method: str, session: str = "", /, **params: Any) -> int:
        """Send a command and ignore its answer."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        if self._line is not None and not self.gone.is_set():
            self._line.send(_encode(message))
        return self._last

    async def ask(
        self, method: str, session: str = "", /, *, seconds: float = COMMAND_SECONDS, **params: Any
    ) -> dict[str, Any]:
        """Send a command and wait for its answer. Raises `TimeoutError` if there is no answer in time."""
        if self.gone.is_set():
            raise BrowserGone
        answer: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        number = self.say(method, session, **params)
        self._waiting[number] = answer
        try:
            return await asyncio.wait_for(answer, seconds)
        finally:
            self._waiting.pop(number, None)

    def heard(self, data: bytes | bytearray) -> None:
        """Process a message from the browser. Pages choose much of its text, so nothing is raised: an error here would
        end the whole job. An event that cannot be read is dropped."""
        message = _read(data)
        if message is None:
            number = _NUMBER.match(data)
            if number is not None:
                self._refuse(int(number[1]), "the answer of the browser cannot be read")
        elif message.id:
            if message.error is not None:
                self._refuse(message.id, str(message.error.get("message")))
            elif (answer := self._waiting.get(message.id)) is not None and not answer.done():
                answer.set_result(message.result)
        elif (listener := self._listeners.get(message.sessionId)) is not None:
            try:
                listener(message.method, message.params)
            except Exception:
                _log.exception("an event of the browser was not understood: %.100s", message.method)

    def _refuse(self, number: int, why: str) -> None:
        answer = self._waiting.get(number)
        if answer is not None and not answer.done():
            answer.set_exception(CommandRefused(why))

    def ended(self) -> None:
        """The connection was closed by either side."""
        self.gone.set()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(BrowserGone())

    def close(self) -> None:
        if self._line is not None:
            self._line.close()
        self.ended()


class Incoming:
    """Collects the parts of a message.

    Pages can make events as long as they like: an event has the body of a request, a URL or the text of a dialog. An
    event that is too long is skipped and not held, so only the page that waits for it suffers. An answer is as long as
    we ask for, so one that is too long is an error of the browser.
    """

    def __init__(self) -> None:
        self._held = bytearray()
        self._skips = False

    def add(self, part: bytes) -> None:
        """Raises `BrowserGone` for an answer that is too long."""
        if self._skips:
            return
        self._held += part
        if len(self._held) > _LONGEST_EVENT and not self._held.startswith(_ANSWER):
            self._skips = True
            self._held = bytearray()
        elif len(self._held) > _LONGEST_ANSWER:
            raise BrowserGone("an answer of the browser is too long")

    def complete(self) -> bytearray | None:
        """The message that has ended. None: it was skipped."""
        message, skipped = self._held, self._skips
        self._held, self._skips = bytearray(), False
        return None if skipped else message


class PipeLine(asyncio.Protocol):
    """`--remote-debugging-pipe` over one socket: JSON with a NUL after each message."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._incoming = Incoming()
        self._transport: asyncio.Transport | None = None

    async def open(self, end: socket.socket) -> None:
        await asyncio.get_running_loop().create_connection(lambda: self, sock=end)
        self._conversation.over(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        *ends, rest = data.split(b"\0")
        try:
            for end in ends:
                self._incoming.add(end)
                if (message := self._incoming.complete()) is not None:
                    self._conversation.heard(message)
            self._incoming.add(rest)
        except BrowserGone:
            self.close()

    def connection_lost(self, error: Exception | None) -> None:
        self._conversation.ended()

    def send(self, message: bytes) -> None:
        if self._transport is not None:
            self._transport.write(message + b"\0")

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

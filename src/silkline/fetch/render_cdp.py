"""A client for the Chrome DevTools Protocol: sends commands, returns their answers, passes events to listeners.

It knows nothing about pages. A `BrowserLine` carries the messages: the socket of our own browser (here), or a WebSocket
to a browser that the operator runs (render_socket.py).
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol, cast

import msgspec

from silkline.fetch.render_budget import MessageBudget
from silkline.fetch.render_messages import (
    LONGEST_EVENT,
    SHORT,
    Incoming,
    Message,
    Skipped,
    context_of,
    number_of,
    read,
    session_of,
)

COMMAND_SECONDS: Final = 15.0
_log: Final = logging.getLogger(__name__)

Listener = Callable[[str, dict[str, Any]], None]


class BrowserGone(Exception):
    """The browser has ended, or does not answer any more."""


class CommandRefused(Exception):
    """The browser refused a command. The page may be closed."""


class AnswerTooLong(CommandRefused):
    """The answer has more bytes than the command may have. It was not read."""


class BrowserLine(Protocol):
    """Carries messages to a browser."""

    def send(self, message: bytes) -> None: ...
    def close(self) -> None: ...


class _Waiting(NamedTuple):
    answer: asyncio.Future[dict[str, Any]]
    session: str
    longest: int


_encode = msgspec.json.Encoder().encode


class Conversation:
    """The exchange of messages with one browser. `gone` is set when the connection is closed."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._line: BrowserLine | None = None
        self._last = 0
        self._waiting: dict[int, _Waiting] = {}
        self._listeners: dict[str, Listener] = {}
        self._budgets: dict[str, MessageBudget] = {}

    def over(self, line: BrowserLine) -> None:
        self._line = line

    def listen(self, session: str, listener: Listener | None) -> None:
        """Set the listener for the events of a session (empty: the browser itself). None removes the listener."""
        if listener is None:
            self._listeners.pop(session, None)
        else:
            self._listeners[session] = listener

    def charge(self, name: str, budget: MessageBudget | None) -> None:
        """Charge the messages about a page, by its session or its context, to its budget. None: the page is closed."""
        if budget is None:
            self._budgets.pop(name, None)
        else:
            self._budgets[name] = budget

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
        self,
        method: str,
        session: str = "",
        /,
        *,
        seconds: float = COMMAND_SECONDS,
        longest: int = SHORT,
        **params: Any,
    ) -> dict[str, Any]:
        """Send a command and wait for its answer. Raises `TimeoutError` if there is no answer in time.

        `longest`: bytes of the answer. Only commands that read content need more than usual; a longer answer to another
        command is the work of the page, and ends it.
        """
        if self.gone.is_set():
            raise BrowserGone
        answer: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        number = self.say(method, session, **params)
        self._waiting[number] = _Waiting(answer, session, longest)
        try:
            return await asyncio.wait_for(answer, seconds)
        finally:
            self._waiting.pop(number, None)

    # Messages from the browser. Pages choose much of their text, so nothing is raised: an error here would end the
    # whole job.

    def longest(self, head: bytes) -> int:
        """How long a message may be that begins like this."""
        number = number_of(head)
        if number is None:
            return LONGEST_EVENT
        waiting = self._waiting.get(number)
        return SHORT if waiting is None else waiting.longest

    def heard(self, data: bytes | bytearray | Skipped) -> None:
        """Process a message. One that cannot be read is dropped, as is one that nobody waits for."""
        if isinstance(data, Skipped):
            self._skipped(data)
        elif (number := number_of(data)) is None:
            self._event(data)
        elif (waiting := self._waiting.get(number)) is not None:
            message = read(data, self._budgets.get(waiting.session))
            if message is None:
                self._refuse(number, CommandRefused("the answer of the browser cannot be read"))
            else:
                self._deliver(message)

    def _event(self, data: bytes | bytearray) -> None:
        """Find out first whose event it is: those of a page with a spent budget, or of a closed one, cost little."""
        session = session_of(data)
        context = "" if session else context_of(data)
        if (session and session not in self._listeners) or (context and context not in self._budgets):
            return
        budget = self._budgets.get(session or context)
        if budget is not None and not budget.take(len(data)):
            return
        message = read(data, budget)
        if message is None:
            return
        if message.id:
            self._deliver(message)
        elif session or self._may_pass(message, len(data)):
            self._tell(message)

    def _may_pass(self, message: Message, size: int) -> bool:
        """For a browser that writes the session elsewhere."""
        budget = self._budgets.get(message.sessionId) if message.sessionId else None
        return budget is None or budget.take(size)

    def _tell(self, message: Message) -> None:
        listener = self._listeners.get(message.sessionId)
        if listener is not None:
            try:
                listener(message.method, message.params)
            except Exception:
                _log.exception("an event of the browser was not understood: %.100s", message.method)

    def _deliver(self, message: Message) -> None:
        if message.error is not None:
            self._refuse(message.id, CommandRefused(str(message.error.get("message"))))
        elif (waiting := self._waiting.get(message.id)) is not None and not waiting.answer.done():
            waiting.answer.set_result(message.result)

    def _skipped(self, skipped: Skipped) -> None:
        budget = self._budgets.get(session_of(skipped.tail) or context_of(skipped.tail))
        number = number_of(skipped.head)
        if number is None:
            if budget is not None:
                budget.take(skipped.size)
            return
        if budget is not None and self.longest(skipped.head) == SHORT:
            budget.end("the page made an answer of the browser too long")
        self._refuse(number, AnswerTooLong("the answer of the browser is too long"))

    def _refuse(self, number: int, error: CommandRefused) -> None:
        waiting = self._waiting.get(number)
        if waiting is not None and not waiting.answer.done():
            waiting.answer.set_exception(error)

    def ended(self) -> None:
        """The connection was closed by either side."""
        self.gone.set()
        for waiting in self._waiting.values():
            if not waiting.answer.done():
                waiting.answer.set_exception(BrowserGone())

    def close(self) -> None:
        if self._line is not None:
            self._line.close()
        self.ended()


class PipeLine(asyncio.Protocol):
    """`--remote-debugging-pipe` over one socket: JSON with a NUL after each message."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._incoming = Incoming(conversation.longest)
        self._transport: asyncio.Transport | None = None

    async def open(self, end: socket.socket) -> None:
        await asyncio.get_running_loop().create_connection(lambda: self, sock=end)
        self._conversation.over(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        *ends, rest = data.split(b"\0")
        for end in ends:
            self._incoming.add(end)
            self._conversation.heard(self._incoming.complete())
        self._incoming.add(rest)

    def connection_lost(self, error: Exception | None) -> None:
        self._conversation.ended()

    def send(self, message: bytes) -> None:
        if self._transport is not None:
            self._transport.write(message + b"\0")

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

"""The messages of a browser: collects their parts, finds out whose they are without decoding them, and decodes them.

Pages choose much of their text, and how long they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from silkline.fetch.render_budget import MessageBudget

SHORT: Final = 1 << 20
"""Bytes of any message. A longer one is collected only if it is allowed."""
LONGEST_EVENT: Final = 16 << 20
_LONGEST_REPAIR: Final = 2 << 20
"""Bytes of a message with invalid characters. To replace them takes up to 0.2 s in 2 MB, in which nothing else runs."""
_HEAD: Final = 32
_TAIL: Final = 512
_NUMBER: Final = re.compile(rb'\{"id":(\d{1,15})[,}]')
# Chromium writes the session last. No text of a page can look like this: its quotation marks are escaped.
_SESSION: Final = re.compile(rb'"sessionId":"([^"\\]{1,100})"\}\Z')
_CONTEXT: Final = re.compile(rb'"browserContextId":"([^"\\]{1,100})"')
# Half of a pair of surrogates, written as an escape. Scripts can put one into every text; JSON for others has none.
_LONE: Final = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|"
    rb"(?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD])[c-fC-F][0-9a-fA-F]{2})"
)


class Message(msgspec.Struct):
    id: int = 0
    method: str = ""
    sessionId: str = ""
    params: dict[str, Any] = {}
    result: dict[str, Any] = {}
    error: dict[str, Any] | None = None


_decode = msgspec.json.Decoder(Message).decode


def number_of(data: bytes | bytearray) -> int | None:
    """The number of the command that this message answers. None: it is an event."""
    number = _NUMBER.match(data)
    return None if number is None else int(number[1])


def session_of(data: bytes | bytearray) -> str:
    """The session of a message; empty if it belongs to the browser itself."""
    found = _SESSION.search(data[-_TAIL:])
    return "" if found is None else found[1].decode("utf-8", "replace")


def context_of(data: bytes | bytearray) -> str:
    """The context of the page that an event of the browser itself is about; empty if it names none at its end."""
    found = _CONTEXT.search(data[-_TAIL:])
    return "" if found is None else found[1].decode("utf-8", "replace")


def read(data: bytes | bytearray, budget: MessageBudget | None) -> Message | None:
    """The message, with U+FFFD for what is no character. None: it cannot be read, or the budget is spent."""
    try:
        return _decode(data)
    except (ValueError, RecursionError):
        if len(data) > _LONGEST_REPAIR or (budget is not None and not budget.take_repair(len(data))):
            return None
    # An escaped backslash gets another form, so that every backslash that is left begins an escape.
    clean = _LONE.sub(rb"\\ufffd", data.replace(rb"\\", rb"\u005c"))
    try:
        return _decode(clean.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


class Skipped(NamedTuple):
    """A message that was too long: its beginning, its end, and how many bytes of it were held for a while."""

    head: bytes
    tail: bytes
    size: int


class Incoming:
    """Collects the parts of a message.

    `longest` says how long a message may be that begins with the given bytes. A longer one is skipped and not held, so
    only the page that waits for it suffers: an event can have the body of a request, a URL or the text of a dialog.
    """

    def __init__(self, longest: Callable[[bytes], int]) -> None:
        self._longest = longest
        self._held = bytearray()
        self._skipped: Skipped | None = None

    def add(self, part: bytes) -> None:
        if self._skipped is not None:
            self._skipped = self._skipped._replace(tail=(self._skipped.tail + part[-_TAIL:])[-_TAIL:])
            return
        self._held += part
        if len(self._held) > SHORT and len(self._held) > self._longest(head := bytes(self._held[:_HEAD])):
            self._skipped = Skipped(head, bytes(self._held[-_TAIL:]), len(self._held))
            self._held = bytearray()

    def complete(self) -> bytearray | Skipped:
        """The message that has ended."""
        message = self._held if self._skipped is None else self._skipped
        self._held, self._skipped = bytearray(), None
        return message

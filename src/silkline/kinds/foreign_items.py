"""One rule for what a service answers (Bluesky, YouTube): a part that cannot be read costs only itself.

The users of a service choose what is in its answers. So our code may fail on one of a hundred items in any way. The
caller settles that item as failed, with the reason `bad_response`, and goes on.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from silkline.errors import SilklineError
from silkline.model.strict_json import parse_object

LONGEST_DETAIL: Final = 300
"""Characters of an error: an item may choose its text."""
Value = TypeVar("Value")
_encode = msgspec.json.Encoder().encode


class Unreadable(Exception):
    """A part of an answer cannot be read. The message says why."""


def understood(read: Callable[[], Value], *expected: type[Exception]) -> Value:
    """What `read` makes of a part of an answer. Whatever else goes wrong than the expected is `Unreadable`.

    A full disk, a lack of memory and our own errors are not the fault of the answer.
    """
    passed_on: tuple[type[Exception], ...] = (SilklineError, OSError, MemoryError, *expected)
    try:
        return read()
    except passed_on:
        raise
    except Exception as error:
        raise Unreadable(f"{type(error).__name__}: {error}"[:LONGEST_DETAIL]) from error


def result_json(data: dict[str, Any]) -> str:
    """The data of a result. `ValueError`: not every reader of results accepts it, because it is too deep, for example.

    Half of a surrogate pair is replaced: the rest of the item is good.
    """
    try:
        text = _encode(data).decode()
    except UnicodeEncodeError:
        text = json.dumps(data, ensure_ascii=False).encode(errors="replace").decode()
    parse_object(text, "it")
    return text

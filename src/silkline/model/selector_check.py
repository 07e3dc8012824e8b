"""Checks the selectors and patterns of users before a job is stored. It compiles them; no page is read.

The text is short (the caller limits it), so that no text can fill the stack or take long. Only the
functions of XPath 1.0 are allowed: turbohtml has others for regular expressions, and they use Python's engine, which
can take hours. `regex` is there for that.
"""

from __future__ import annotations

import re
from typing import Any, Final

from silkline.model.pattern import MAX_SIZE, BadPattern, compile_text, refuse_unsupported

_CALL: Final = re.compile(r"([A-Za-z][\w.-]*(?::[A-Za-z][\w.-]*)?)\s*\(")
_CALLABLE: Final = frozenset(
    {
        *("text", "node", "comment", "processing-instruction", "and", "or", "div", "mod"),
        *("last", "position", "count", "id", "local-name", "namespace-uri", "name", "string", "concat", "starts-with"),
        *("contains", "substring-before", "substring-after", "substring", "string-length", "normalize-space"),
        *("translate", "boolean", "not", "true", "false", "lang", "number", "sum", "floor", "ceiling", "round"),
    }
)
_MOST_WALKS: Final = 8
_WALKS: Final = re.compile(r"//|descendant|following|preceding|ancestor")
_WITHOUT_TEXTS: Final = re.compile(r"\"[^\"]*\"|'[^']*'")


class BadSelector(ValueError):
    """The selector cannot be used; the message says why and where."""


def check_css(text: str) -> None:
    import turbohtml  # 90 ms, and most jobs have no fields

    try:
        turbohtml.parse("<p>").select(text)
    except ValueError as error:
        raise BadSelector(f"is not a CSS selector: {_after_quote(str(error))}") from None


def check_xpath(text: str) -> None:
    import turbohtml

    bare = _WITHOUT_TEXTS.sub("''", text)
    unknown = next((name for name in _CALL.findall(bare) if name not in _CALLABLE), None)
    if unknown is not None:
        hint = ": give the key regex instead" if "match" in unknown or unknown.startswith("re") else ""
        raise BadSelector(f"uses the function {unknown}, which XPath 1.0 does not have{hint}")
    if "$" in bare:
        raise BadSelector("uses a variable, and there are none")
    if len(_WALKS.findall(bare)) > _MOST_WALKS:
        # If they contain each other, the time is the number of elements to the power of their number.
        raise BadSelector(f"is too complex: // and axes such as following may occur {_MOST_WALKS} times at most")
    try:
        turbohtml.XPath(text)
        turbohtml.parse("<p>").xpath(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise BadSelector(f"is not an XPath: {str(error).removeprefix('xpath: ')}") from None


def check_regex(text: str) -> None:
    compile_regex(text)


def compile_regex(text: str) -> Any:
    """The compiled pattern (RE2), with groups. Raises `BadPattern`."""
    refuse_unsupported(text)
    compiled = compile_text(text, captures=True)
    if compiled.programsize > MAX_SIZE:
        raise BadPattern("is too large: it repeats too much")
    return compiled


def _after_quote(message: str) -> str:
    """The message without the selector itself, which the caller shows."""
    return message.rpartition('": ')[2] or message

"""Checks a CSS selector of a user before a job is stored. The parser that uses it later runs in another process."""

import re
from typing import Final

MAX_SELECTORS: Final = 50
_LONGEST: Final = 500
# Letters, digits, "-", "_" and all outside of ASCII. Ranges of what is left out compile ten times as fast.
_INSIDE: Final = r"[^\x00-,./:-@\[-^`{-\x7f]"
_NAME: Final = rf"-?(?:[^\x00-@\[-^`{{-\x7f]|\\.)(?:{_INSIDE}|\\.)*"
# fmt: off
_PLAIN: Final = frozenset({
    "checked", "disabled", "empty", "enabled", "first-child", "first-of-type", "last-child", "last-of-type", "link",
    "only-child", "only-of-type", "optional", "required", "root",
})
# fmt: on
_WITH_SELECTOR: Final = frozenset({"has", "is", "not", "where"})
_WITH_NUMBER: Final = frozenset({"nth-child", "nth-last-child", "nth-last-of-type", "nth-of-type"})
_NUMBER: Final = re.compile(r"\s*(?:odd|even|[+-]?\d{0,6}n(?:\s*[+-]\s*\d{1,6})?|[+-]?\d{1,6})\s*", re.IGNORECASE)
_TYPE: Final = re.compile(rf"\*|{_NAME}")
_PART: Final = re.compile(
    rf"""[.]{_NAME}
    |\#(?:{_INSIDE}|\\.)+
    |\[\s*+{_NAME}\s*+(?:[~|^$*]?=\s*+(?:"[^"\\]*+"|'[^'\\]*+'|[\w\-]++)\s*+(?:[iIsS]\s*+)?)?\]""",
    re.VERBOSE,
)
_PSEUDO: Final = re.compile(r":([a-z\-]+)(\()?")
_COMBINATOR: Final = re.compile(r"\s*+([>+~])\s*+|\s++(?![,)]|\Z)")
_SPACES: Final = re.compile(r"\s*+")


def checked_selector(selector: str) -> str:
    """The selector. Raises ValueError, with the place, if it is none that we support."""
    if len(selector) > _LONGEST:
        raise ValueError(f"is longer than {_LONGEST} characters")
    end = _list(selector, 0, relative=False)
    if end < len(selector):
        raise ValueError(f"is not a CSS selector: unexpected {selector[end]!r} at position {end + 1}")
    return selector.strip()


def _list(text: str, at: int, *, relative: bool) -> int:
    """The end of a list of selectors, separated by commas."""
    while True:
        at = _complex(text, at, relative=relative)
        if text[at : at + 1] != ",":
            return at
        at += 1


def _complex(text: str, at: int, *, relative: bool) -> int:
    """The end of one selector with its combinators, and of the spaces after it."""
    at = _after_spaces(text, at)
    if relative and (found := re.compile(r"[>+~]\s*+").match(text, at)):
        at = found.end()
    at = _compound(text, at)
    while found := _COMBINATOR.match(text, at):
        at = _compound(text, found.end())
    return _after_spaces(text, at)


def _after_spaces(text: str, at: int) -> int:
    found = _SPACES.match(text, at)
    return found.end() if found else at


def _compound(text: str, at: int) -> int:
    """The end of one compound selector, such as `p.lead:not(.x)`."""
    start = at
    if found := _TYPE.match(text, at):
        at = found.end()
    while True:
        if found := _PART.match(text, at):
            at = found.end()
        elif found := _PSEUDO.match(text, at):
            at = _pseudo(text, found)
        else:
            break
    if at == start:
        raise ValueError(f"is not a CSS selector: expected a tag, class, id or attribute at position {at + 1}")
    return at


def _pseudo(text: str, found: re.Match[str]) -> int:
    name, opened = found.groups()
    if opened is None:
        if name not in _PLAIN:
            raise ValueError(f"has an unknown pseudo-class `:{name}` at position {found.start() + 1}")
        return found.end()
    if name in _WITH_SELECTOR:
        end = _list(text, found.end(), relative=name == "has")
    elif name in _WITH_NUMBER:
        number = _NUMBER.match(text, found.end())
        end = number.end() if number else found.end()
    else:
        raise ValueError(f"has an unknown pseudo-class `:{name}()` at position {found.start() + 1}")
    if text[end : end + 1] != ")":
        raise ValueError(f"is not a CSS selector: expected `)` at position {end + 1}")
    return end + 1

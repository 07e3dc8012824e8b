"""Hides passwords in URLs: `postgresql://me:***@db/x`.

A password that was not percent-encoded can contain any character, also `@ / ? #` and spaces. So everything up to the
last `@` counts as user and password, and everything after a parameter with a secret name counts as its value.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

HIDDEN: Final = "***"
_SECRET_NAME: Final = re.compile(
    r"(?:^|[-_.])(?:pass(?:word|wd|phrase)?|pwd|secret|token|auth|authorization|authentication|cookie|credential|signature|sig"
    r"|(?:api|access|private)[-_]?key)s?(?:$|[-_.])|^key$|-key$|sslpassword",
    re.IGNORECASE,
)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}")
_PARAMETER: Final = re.compile(r"[?&;]([^?&;=#\s]+)=")
_PARAMETER_VALUE: Final = re.compile(r"[?&;]([^?&;=#\s]+)=([^?&;#\s]+)")
_PORT: Final = re.compile(r"[^:/?#]*:\d{1,5}(?=[/?#]|$)|\[[0-9a-fA-F:.]*\](?::\d{1,5})?(?=[/?#]|$)")
_BAD_PERCENT: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
HOW_TO_ENCODE: Final = (
    "percent-encode the user and the password: @ is %40, : is %3A, / is %2F, # is %23, ? is %3F, % is %25, "
    "a space is %20"
)


@lru_cache(maxsize=1_000)
def is_secret_name(name: str) -> bool:
    """Whether a field or parameter with this name contains a secret."""
    return bool(_SECRET_NAME.search(name))


def masked(url: str) -> str:
    """A URL from the settings, without its password."""
    scheme, separator, rest = url.partition("://")
    if not separator or not _SCHEME.fullmatch(scheme):
        return HIDDEN if re.search(r"[@=:]", url) else url
    if scheme == "sqlite":
        return f"{scheme}://{_without_parameters(rest)}"
    head, at, tail = rest.rpartition("@")
    if not at:
        shown = _without_parameters(rest)
        authority = re.split(r"[/?#]", shown, maxsplit=1)[0]
        if ":" in authority and not _PORT.match(shown):
            shown = f"{shown.partition(':')[0]}:{HIDDEN}"
    elif ":" in head:
        inside_parameter = _without_parameters(head) != head
        shown = f"{head.partition(':')[0]}:{HIDDEN}@{HIDDEN if inside_parameter else _without_parameters(tail)}"
    elif _without_parameters(head) != head:
        shown = _without_parameters(head)
    else:
        user = head if scheme in ("postgresql", "postgres") else HIDDEN
        shown = f"{user}@{_without_parameters(tail)}"
    return f"{scheme}://{shown}"


def passwords_in(url: str) -> list[str]:
    """The passwords of a URL, as they are written there and decoded."""
    rest = url.partition("://")[2]
    found = [rest.rpartition("@")[0].partition(":")[2]]
    found += [match[2] for match in _PARAMETER_VALUE.finditer(rest) if is_secret_name(match[1])]
    return [text for each in found if each for text in {each, unquote(each)}]


def is_ambiguous(url: str) -> bool:
    """Whether the user or the password contains a character that must be percent-encoded.

    Otherwise a driver would use a part of the password as host or port, and show it in its errors.
    """
    _, _, rest = url.partition("://")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    user_info, at, _ = authority.rpartition("@")
    if not at:
        return "@" in rest and ":" in authority and not _PORT.match(rest)
    return bool(_BAD_PERCENT.search(user_info) or re.search(r"[@\s\x00-\x1f]", user_info))


def _without_parameters(text: str) -> str:
    """Cut at the value of the first parameter with a secret name; later parameters may be part of that value."""
    for found in _PARAMETER.finditer(text):
        if is_secret_name(found[1]):
            return text[: found.end()] + HIDDEN
    return text

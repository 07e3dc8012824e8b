"""Finds, refuses and hides a user name and password before the host of a URL. Pure, with few imports.

URLs are stored, logged, exported and shown, so a URL from a user must not contain a password. In links and redirects
of pages, `model.url.canonical` removes it.
"""

from __future__ import annotations

import re
from typing import Final

HEADER: Final = "Authorization: Basic BASE64(USER:PASSWORD)"
REFUSAL: Final = (
    "contains a user name or password, which is refused because URLs are stored and shown; "
    f"send it as a header: {HEADER}"
)


def has_user_info(url: str) -> bool:
    """Whether a URL has a user name or password before its host, in any form that a browser would accept."""
    rest = re.sub(r"[\t\r\n]", "", url.strip()).partition(":")[2].lstrip("/\\")
    return "@" in re.split(r"[/\\?#]", rest, maxsplit=1)[0]


def without_user_info(text: str) -> str:
    """A URL without user name and password, for error messages."""
    # Only up to the first colon: a password can contain more of them.
    return re.sub(r"^([^/\\?#@:]*+:)?([/\\]*+)[^/\\?#]*@", r"\1\2***@", text)

"""A user name and password before the host of a URL: found, refused and hidden. Pure and light.

URLs are stored, logged, exported and shown, so none that people give us may hold a password. What stands in the links
and redirects of pages is left out by `model.url.canonical`.
"""

from __future__ import annotations

import re
from typing import Final

HEADER: Final = "Authorization: Basic BASE64(USER:PASSWORD)"
REFUSAL: Final = (
    f"holds a user name or password, which is refused because URLs are stored and shown; send it as a header: {HEADER}"
)


def has_user_info(url: str) -> bool:
    """Whether a URL has a user name or password before its host, in any spelling that a browser would accept."""
    rest = re.sub(r"[\t\r\n]", "", url.strip()).partition(":")[2].lstrip("/\\")
    return "@" in re.split(r"[/\\?#]", rest, maxsplit=1)[0]


def without_user_info(text: str) -> str:
    """A URL as it may be shown in an error: without user name and password."""
    return re.sub(r"^([^/\\?#@]*:)?([/\\]*)[^/\\?#]*@", r"\1\2***@", text)

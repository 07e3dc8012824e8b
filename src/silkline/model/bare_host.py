"""Whether a text without a scheme begins with a host, as people type URLs: `example.com/page`, `localhost:8000`."""

from __future__ import annotations

import re
from typing import Final

# Possessive, so that a long text is read once: the web page checks what callers send.
_START: Final = re.compile(r"(?P<name>\[[0-9a-f:.]++\]|[^\s/?#:@\[\]]++)(?P<port>:\d{1,5})?(?:[/?#]|$)", re.IGNORECASE)


def is_host(text: str) -> bool:
    """A word without a dot is a host only if it is `localhost` or has a port."""
    found = _START.match(text)
    if found is None:
        return False
    name = found["name"]
    return bool(found["port"]) or name[0] == "[" or "." in name[1:] or name.lower() == "localhost"

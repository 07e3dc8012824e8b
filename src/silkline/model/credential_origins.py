"""Which origins get the headers and cookies of a job: those of the URLs that its user gave, or those it names.

A retry of failed URLs has other URLs than the job of the user: some are on hosts that a page only linked to. So the new
job names the origins of the first one (`headers_for`), and a retry of a retry keeps them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from silkline.model.url import canonical, origin_of

CREDENTIALS: Final = ("headers", "cookies")
"""The fields of a spec that are sent only to some origins."""


def origins_of(urls: Iterable[str]) -> tuple[str, ...]:
    """The origins of URLs, each once."""
    return tuple(dict.fromkeys(origin_of(url) for url in map(canonical, urls) if url is not None))


def credential_origins(payload: Mapping[str, Any]) -> tuple[str, ...]:
    """The origins that get the headers and cookies of a job with this payload."""
    named = payload.get("headers_for")
    if named is not None:
        return tuple(named)
    return origins_of(each for each in (payload.get("url"), *(payload.get("urls") or ())) if isinstance(each, str))


def is_origin(text: str) -> bool:
    """Whether a text is an origin as we write it, such as `https://example.com` or `http://example.com:8080`."""
    address = canonical(text)
    return address is not None and origin_of(address) == text

"""Follows redirects one hop at a time, asking before each. The client itself never follows any."""

from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from silkline.fetch.origin import origin_of
from silkline.model.fetched import REDIRECT_LOOP, TOO_MANY_REDIRECTS, Fetched, Request

MAX_HOPS: Final = 10


class OneHop(Protocol):
    """What can make one hop."""

    async def fetch(self, request: Request) -> Fetched:
        """One outcome for one request."""


def allow_all(_url: str) -> str | None:
    """Refuses no hop; the guard still judges its address."""
    return None


async def follow(
    client: OneHop,
    request: Request,
    allow: Callable[[str], str | None] = allow_all,
    *,
    max_hops: int = MAX_HOPS,
) -> Fetched:
    """The last outcome of a chain, with the URLs on the way in `hops`. `allow` is asked about each further URL.

    Headers of the request stay with its origin: once the chain leaves it they are gone for good, even if it returns.
    """
    hops: list[str] = []
    seen: set[str] = set()
    while True:
        fetched = await client.fetch(request)
        seen.add(fetched.url)
        if not fetched.redirect or fetched.location is None:
            return msgspec.structs.replace(fetched, hops=tuple(hops))
        hops.append(fetched.url)
        reason = _refusal(fetched.location, seen, len(hops), max_hops, allow)
        if reason is not None:
            return msgspec.structs.replace(fetched, reason=reason, hops=tuple(hops))
        request = _next_request(request, fetched.url, fetched.location)


def _refusal(location: str, seen: set[str], hops: int, max_hops: int, allow: Callable[[str], str | None]) -> str | None:
    if location in seen:
        return REDIRECT_LOOP
    if hops > max_hops:
        return TOO_MANY_REDIRECTS
    return allow(location)


def _next_request(request: Request, url: str, location: str) -> Request:
    """The validators belong to the first URL, the headers to its origin."""
    headers = request.headers if origin_of(url) == origin_of(location) else ()
    return Request(location, headers=headers, max_body=request.max_body, cut=request.cut)

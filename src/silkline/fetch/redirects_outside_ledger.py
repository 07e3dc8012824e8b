"""Follows redirects of requests that are not in the ledger: robots.txt and JSON APIs.

It makes one request at a time and checks each target first. The client itself follows no redirect. The redirects of the
URLs of a job are decided in crawl/decisions.py.
"""

from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from silkline.fetch.origin import origin_of
from silkline.model.fetched import REDIRECT_LOOP, TOO_MANY_REDIRECTS, Fetched, Request

MAX_HOPS: Final = 10


class OneHop(Protocol):
    """A client that makes one request at a time."""

    async def fetch(self, request: Request) -> Fetched:
        """Make one request and return its outcome."""


def allow_all(_url: str) -> str | None:
    """Allows every URL. The guard still checks the address."""
    return None


async def follow(
    client: OneHop,
    request: Request,
    allow: Callable[[str], str | None] = allow_all,
    *,
    max_hops: int = MAX_HOPS,
) -> Fetched:
    """The last outcome of a redirect chain, with the redirecting URLs in `hops`. `allow` checks each further URL.

    The headers of the request are sent to its origin only. After a redirect to another origin they are not sent again,
    even if a later redirect returns to the first origin.
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
    """The request without validators, which belong to the first URL, and with headers for the same origin only."""
    headers = request.headers if origin_of(url) == origin_of(location) else ()
    return Request(location, headers=headers, max_body=request.max_body, cut=request.cut, purpose=request.purpose)

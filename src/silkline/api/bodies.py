"""Reads the JSON body of a request. `model.strict_json` has the rules.

The time to parse a body grows with its size. A large body is parsed in a thread, and only a few at once, so that the
event loop keeps running and memory stays bounded.
"""

from __future__ import annotations

from typing import Any, Final

import anyio
from anyio.to_thread import run_sync
from fastapi import Request

from silkline.api.json_structure import check_size
from silkline.api.problems import Problem
from silkline.model.strict_json import BadJson, parse_object

AT_ONCE: Final = 16_384  # bytes; parsed in less than a millisecond, which is less than a thread costs
LARGE: Final = 262_144
_large_bodies = anyio.CapacityLimiter(2)


async def json_object(request: Request) -> dict[str, Any]:
    """The body, which must be a JSON object."""
    found = await optional_object(request)
    if found is None:
        raise Problem("bad-request", "the body must be a JSON object")
    return found


async def optional_object(request: Request) -> dict[str, Any] | None:
    """The body, which must be a JSON object or empty. None: it is empty."""
    body = await request.body()
    if not body.strip():
        return None
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem("unsupported-media-type", "send the body as application/json")
    if "content-encoding" in request.headers:
        raise Problem("unsupported-media-type", "send the body without Content-Encoding")
    if len(body) <= AT_ONCE:
        return parse(body)
    return await run_sync(parse, body, limiter=_large_bodies if len(body) > LARGE else None)


def parse(body: bytes) -> dict[str, Any]:
    check_size(body)
    try:
        return parse_object(body.decode(), "the body")
    except UnicodeDecodeError as error:
        raise Problem("bad-request", "the body is not UTF-8") from error
    except BadJson as error:
        raise Problem("bad-request", str(error)) from error

"""Reading JSON bodies strictly: each name once, numbers that can be stored, whole characters, bounded structure.

Parsing takes time in proportion to the body. A large body is parsed in a thread, few of them at once, so that the
event loop goes on and memory stays bounded.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import anyio
from anyio.to_thread import run_sync
from fastapi import Request

from silkline.api.json_structure import check_size, check_values
from silkline.api.problems import Problem

AT_ONCE: Final = 16_384  # bytes; parsed in less than a millisecond, which is less than a thread costs
LARGE: Final = 262_144
_HALF_CHARACTER: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_large_bodies = anyio.CapacityLimiter(2)


async def json_object(request: Request) -> dict[str, Any]:
    """The body, which must be a JSON object."""
    found = await optional_object(request)
    if found is None:
        raise Problem("bad-request", "the body must be a JSON object")
    return found


async def optional_object(request: Request) -> dict[str, Any] | None:
    """The same where a body may be left out."""
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
        value = json.loads(body.decode(), object_pairs_hook=_each_once, parse_constant=_no_constant)
        if _HALF_CHARACTER.search(body):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise Problem("bad-request", "the body is nested too deeply") from error
    except UnicodeError as error:
        raise Problem("bad-request", "the body is not UTF-8, or contains half of a surrogate pair") from error
    except ValueError as error:
        raise Problem("bad-request", f"the body is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise Problem("bad-request", "the body must be a JSON object")
    check_values(value)
    return value


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise Problem("bad-request", f"the body contains the name {name[:100]!r} twice")
            seen.add(name)
    return value


def _no_constant(name: str) -> Any:
    raise Problem("bad-request", f"the body is not JSON: {name} is not a JSON number")

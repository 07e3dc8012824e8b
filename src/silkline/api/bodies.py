"""Reading JSON bodies strictly: each name once, real numbers, whole characters, nothing nested without end."""

from __future__ import annotations

import json
from typing import Any

from fastapi import Request

from silkline.api.problems import Problem


async def json_object(request: Request) -> dict[str, Any]:
    """The body, which must be a JSON object."""
    found = await optional_object(request)
    if found is None:
        raise Problem("bad-request", "a JSON object is needed as the body")
    return found


async def optional_object(request: Request) -> dict[str, Any] | None:
    """The same where a body may be left out."""
    body = await request.body()
    if not body.strip():
        return None
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem("unsupported-media-type", "send the body as application/json")
    return parse(body)


def parse(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body.decode(), object_pairs_hook=_each_once, parse_constant=_no_constant)
        json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise Problem("bad-request", "the body is nested too deeply") from error
    except UnicodeError as error:
        raise Problem("bad-request", "the body is not UTF-8, or holds half a character") from error
    except ValueError as error:
        raise Problem("bad-request", f"the body is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise Problem("bad-request", "the body must be a JSON object")
    return value


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        raise Problem("bad-request", f"the body names {next(n for n in names if names.count(n) > 1)!r} twice")
    return value


def _no_constant(name: str) -> Any:
    raise Problem("bad-request", f"the body is not JSON: {name} is no JSON number")

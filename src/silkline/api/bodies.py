"""Reads the JSON body of a request into the model that its route names as `body`. The same model documents the route.

`model.strict_json` has the rules of the JSON, the model those of the fields. The time to read a body grows with its
size. A large body is read in a thread, and only a few at once, so that the event loop keeps running and memory stays
bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final

import anyio
from anyio.to_thread import run_sync
from fastapi import Request, Response
from fastapi.routing import APIRoute

from silkline.api.json_structure import check_size
from silkline.api.problems import Problem
from silkline.model.spec import Spec, validate
from silkline.model.strict_json import BadJson, parse_object

AT_ONCE: Final = 16_384  # bytes; read in less than a millisecond, which is less than a thread costs
LARGE: Final = 262_144
_large_bodies = anyio.CapacityLimiter(2)


class JsonBodyRoute(APIRoute):
    """Validates the body before the framework does, which then finds a valid model.

    The framework would parse any JSON, validate it on the event loop, and name errors in its own words.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        if self.body_field is None:
            return handle
        model, required = self.body_field.field_info.annotation, self.body_field.field_info.is_required()
        if not (isinstance(model, type) and issubclass(model, Spec)):
            raise TypeError(f"the body of {self.path} must be a Spec, not {model}")

        async def read_and_handle(request: Request) -> Response:
            await self.before_body(request)
            body = await _read(request, model)
            if body is None and required:
                raise Problem("bad-request", "the body must be a JSON object")
            return await handle(_ValidatedRequest(request, body))

        return read_and_handle

    async def before_body(self, request: Request) -> None:
        """What a route checks before it reads a body. Raises a `Problem`."""


class _ValidatedRequest(Request):
    """A request whose body is a valid model, or empty."""

    def __init__(self, request: Request, value: Spec | None) -> None:
        super().__init__(request.scope, request.receive)
        self._value = value

    async def body(self) -> bytes:
        """Only tells the framework whether there is a body."""
        return b"" if self._value is None else b"{}"

    async def json(self) -> Spec | None:
        return self._value


async def _read(request: Request, model: type[Spec]) -> Spec | None:
    """The body as a valid model. None: it is empty."""
    # Not `request.body()`, which keeps the bytes as long as the request lasts.
    body = b"".join([part async for part in request.stream()])
    if not body.strip():
        return None
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem("unsupported-media-type", "send the body as application/json")
    if "content-encoding" in request.headers:
        raise Problem("unsupported-media-type", "send the body without Content-Encoding")
    if len(body) <= AT_ONCE:
        return read(body, model)
    return await run_sync(read, body, model, limiter=_large_bodies if len(body) > LARGE else None)


def read(body: bytes, model: type[Spec]) -> Spec:
    return validate(model, parse(body))


def parse(body: bytes) -> dict[str, Any]:
    check_size(body)
    try:
        return parse_object(body.decode(), "the body")
    except UnicodeDecodeError as error:
        raise Problem("bad-request", "the body is not UTF-8") from error
    except BadJson as error:
        raise Problem("bad-request", str(error)) from error

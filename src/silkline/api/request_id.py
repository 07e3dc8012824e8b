"""Gives each request an id: the log lines about the request have it, and so has the header X-Request-ID of the answer.

A caller may send an id of its own in the same header.
"""

from __future__ import annotations

import re
import secrets
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from silkline.log import request_id

HEADER: Final = "X-Request-ID"
_ALLOWED: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestIds:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        id = given if _ALLOWED.fullmatch(given) else secrets.token_hex(8)

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = id
            await send(message)

        token = request_id.set(id)
        try:
            await self._app(scope, receive, sending)
        finally:
            request_id.reset(token)

"""Measures the answers of the API for metrics."""

from __future__ import annotations

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from silkline.metrics.instruments import HTTP_ANSWERS, HTTP_SECONDS


class Watching:
    """Measures the time to the first byte of every answer. The label is the pattern of the route, not the path."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                method = scope["method"] if scope["method"] in ("GET", "HEAD", "POST", "DELETE") else "other"
                route = _route_of(scope)
                HTTP_SECONDS.observe(time.perf_counter() - began, method, route)
                HTTP_ANSWERS.add(1, method, route, str(message["status"]))
            await send(message)

        await self._app(scope, receive, noting)


def _route_of(scope: Scope) -> str:
    route = scope.get("route")
    return str(getattr(route, "path", "none"))

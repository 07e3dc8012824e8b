"""Checks every request before a route sees it, so that no route can forget a check.

`RequestGate` accepts only an exact list of Host names, which prevents DNS rebinding. It checks the token and its scope,
by method and path. It refuses requests from other sites, except visits of a page. Errors are problem documents. Every
answer gets headers that allow a browser to run only our own files.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable
from contextlib import ExitStack
from functools import partial
from urllib.parse import quote

import anyio
import anyio.to_thread
from fastapi.responses import RedirectResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from silkline.api.address import is_loopback
from silkline.api.auth import ANY, WORKER, Caller, Doorkeeper, has_credentials, only_session
from silkline.api.problems import Problem
from silkline.model.client_network import network_of

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
MOST_PARAMETERS = 100
LONGEST_QUERY = 8_000  # bytes, for a caller without a token: every route parses the query
LONGEST_HOST = 300
THREADS = 4  # more than those of the routes, so that no slow request keeps others from the gate
HEALTH = "/healthz"
PUBLIC = (HEALTH, "/readyz", "/login")
PUBLIC_FOLDERS = ("/static/",)
# The requests of external workers. The claim gives them their job; they cannot read other jobs.
WORKER_PATHS = re.compile(r"/v1/claims|/v1/jobs/[^/]+/(heartbeat|results|finish)")
EXTENSIONS = ("chrome-extension://", "moz-extension://")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not `no-referrer`: with it, a browser sends `Origin: null` even for our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class AllowedHosts:
    """The Host names that this server accepts, each with its port."""

    def __init__(self, host: str, port: int, more: Iterable[str] = ()) -> None:
        self._port = port
        self._any_address = host in ("0.0.0.0", "::")  # noqa: S104 - compared, not bound
        names = {"localhost", "127.0.0.1", "[::1]"} if is_loopback(host) or self._any_address else set()
        names.add(f"[{host}]" if ":" in host else host.lower())
        if self._any_address:
            names.add(socket.gethostname().lower())
        self._known = {f"{name}:{port}" for name in names} | {name.lower() for name in more}
        if port == 80:
            self._known |= names

    def allow(self, host: str) -> bool:
        if len(host) > LONGEST_HOST:
            return False
        if host.lower() in self._known:
            return True
        # Bound to every address: accept any address. Unlike a name, it cannot point to another machine.
        name, _, port = host.rpartition(":")
        return self._any_address and port == str(self._port) and _is_address(name.strip("[]"))


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def scope_needed(method: str, path: str) -> str | None:
    """The scope that a request needs. None: it needs no token."""
    if path in PUBLIC or path.startswith(PUBLIC_FOLDERS):
        return None
    if path.startswith("/v1/tokens"):
        return "admin"
    if path == "/logout":
        return ANY
    if method == "POST" and WORKER_PATHS.fullmatch(path):
        return WORKER
    return "read" if method in SAFE else "write"


class RequestGate:
    def __init__(self, app: ASGIApp, hosts: AllowedHosts, doorkeeper: Doorkeeper) -> None:
        self._app = app
        self._hosts = hosts
        self._doorkeeper = doorkeeper
        self._threads: anyio.CapacityLimiter | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        drop_other_cookies(scope)
        headers = Headers(scope=scope)
        receive, send = _wrapped(headers, receive, send)
        try:
            caller = await self._admit(scope, headers)
        except Problem as problem:
            scope["caller"] = None  # the connection may give way to others (`api/connections.py`)
            response = problem.response()
            if problem.kind == "unauthorized" and _is_page(scope, headers):
                response = RedirectResponse(f"/login?next={quote(scope['path'])}", 303)
            await response(scope, receive, send)
            return
        scope["caller"] = caller
        scope["still_valid"] = partial(self._doorkeeper.still_valid, caller, headers)
        with ExitStack() as at_end:  # routes register what to release after the answer
            scope["at_end"] = at_end
            await self._app(scope, receive, send)

    async def _admit(self, scope: Scope, headers: Headers) -> Caller | None:
        method, path = scope["method"], scope["path"]
        names = headers.getlist("host")
        if len(names) != 1 or not self._hosts.allow(names[0]):
            detail = "use the address that `silkline serve` printed, or add this name to the setting api_hosts"
            raise Problem("wrong-host", detail)
        if "\n" in path:  # routes ignore one at the end, rules for paths do not (`ReadLimit`)
            raise Problem("not-found", "no path has a line break")
        if scope["query_string"].count(b"&") >= MOST_PARAMETERS:
            raise Problem("bad-request", f"a query may have at most {MOST_PARAMETERS} parameters")
        if "transfer-encoding" in headers and "content-length" in headers:
            # A proxy may use the other header and treat the rest of the body as another request.
            raise Problem("bad-request", "send Content-Length or Transfer-Encoding, not both")
        caller = await self._caller(path, headers, network_of(scope.get("client")))
        if caller is None and len(scope["query_string"]) > LONGEST_QUERY:
            raise Problem("bad-request", f"without a token, a query may have at most {LONGEST_QUERY:,} bytes")
        by_token = "authorization" in headers
        # A page of another site may lead a person to ours, and knows no token.
        if method not in SAFE or not (by_token or _is_visit(headers)):
            _same_site(names[0], headers, by_token=by_token, reads=method in SAFE)
        needed = scope_needed(method, path)
        if needed is not None:
            if caller is None:
                detail = "send `Authorization: Bearer TOKEN`"
                raise Problem("unauthorized", detail, headers={"WWW-Authenticate": "Bearer"})
            if not caller.may(needed):
                raise Problem(
                    "forbidden", f"this token has the scope {caller.scope}; this request needs the scope {needed}"
                )
        return caller

    async def _caller(self, path: str, headers: Headers, address: str) -> Caller | None:
        """Who calls. Threads that only the gate has look it up, and none for a request that needs no look."""
        if path == HEALTH:
            return None
        if not has_credentials(headers):
            return self._doorkeeper.caller(headers, address)
        if self._threads is None:  # made on the event loop
            self._threads = anyio.CapacityLimiter(THREADS)
        look = partial(self._doorkeeper.caller, headers, address)
        return await anyio.to_thread.run_sync(look, limiter=self._threads)


def drop_other_cookies(scope: Scope) -> None:
    """Keep only our own cookie: the framework parses all of them for every route, those without a token too."""
    scope["headers"] = [(name, only_session(value) if name == b"cookie" else value) for name, value in scope["headers"]]


def _is_visit(headers: Headers) -> bool:
    """Whether a browser asks for the page of a tab, as after a click on a link. Not for a frame, image or script."""
    return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"


def _same_site(host: str, headers: Headers, *, by_token: bool, reads: bool) -> None:
    """Refuse requests that a browser sends for a page of another site. Extensions with a token are allowed."""
    origin = headers.get("origin")
    if origin is not None and by_token and origin.startswith(EXTENSIONS):
        return
    site = headers.get("sec-fetch-site", "none")
    if site not in ("same-origin", "none"):
        raise Problem("cross-site", f"this request came from another site (Sec-Fetch-Site: {site[:40]})")
    # Without `Sec-Fetch-Site` it is no browser of today, and its origin cannot read the answer.
    if not reads and origin is not None and origin.lower() not in (f"http://{host.lower()}", f"https://{host.lower()}"):
        raise Problem("cross-site", "this request came from another site (Origin)")


def _is_page(scope: Scope, headers: Headers) -> bool:
    return (
        scope["method"] == "GET"
        and not scope["path"].startswith("/v1/")
        and "text/html" in headers.get("accept", "")
        and "hx-request" not in headers
    )


def _wrapped(request: Headers, receive: Receive, send: Send) -> tuple[Receive, Send]:
    """Add our headers to every answer. An answer before the end of the body closes the connection: otherwise the server
    would read the rest of the body, however long it is, before the next request."""
    unread = "transfer-encoding" in request or request.get("content-length", "0") != "0"

    async def receiving() -> Message:
        nonlocal unread
        message = await receive()
        unread = unread and message["type"] == "http.request" and bool(message.get("more_body"))
        return message

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("Cache-Control", "no-store")
            if unread:
                headers["Connection"] = "close"
        await send(message)

    return receiving, sending

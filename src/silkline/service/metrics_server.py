"""The HTTP endpoint of a worker: `/metrics`, `/healthz` and `/readyz`, in threads of their own.

It only reads. Beyond loopback, `/metrics` wants the token of the API. On loopback it wants the name of this machine in
`Host`, so that no web page in a browser here can read it under a name of its own (DNS rebinding).
"""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import json
import logging
import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from silkline.metrics.exposition import MEDIA_TYPE
from silkline.metrics.instruments import tell_cpu

TIMEOUT: Final = 10.0  # seconds for a whole connection: to send a request, and to read the answer
HEAD_TIMEOUT: Final = 2.0  # seconds to send a request: clients that send none must not keep the few places from others
MOST_AT_ONCE: Final = 16
JSON: Final = "application/json"

log = logging.getLogger("silkline.metrics")


class MetricsListener(NamedTuple):
    """Where metrics are asked for, and the token for it; empty: none is needed."""

    socket: socket.socket
    token: str


class MetricsServer:
    """`why_not_ready` returns a reason, or None. With a token, `/metrics` is only for those who send it."""

    def __init__(
        self, listener: MetricsListener, metrics: Callable[[], str], why_not_ready: Callable[[], str | None]
    ) -> None:
        self._metrics = metrics
        self._why_not_ready = why_not_ready
        self._token = listener.token
        self._server = _Server(listener.socket, self._answer)
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join(timeout=TIMEOUT)
        self._server.server_close()

    def _answer(self, path: str, host: str, authorization: str) -> tuple[HTTPStatus, str, str]:
        """Status, media type and body."""
        if not self._token and not _is_here(host):
            return HTTPStatus.MISDIRECTED_REQUEST, JSON, json.dumps({"detail": "this is not the name of this machine"})
        match path.partition("?")[0]:
            case "/healthz":
                return HTTPStatus.OK, JSON, json.dumps({"status": "ok"})
            case "/readyz":
                why_not = self._why_not_ready()
                if why_not is None:
                    return HTTPStatus.OK, JSON, json.dumps({"status": "ready"})
                return HTTPStatus.SERVICE_UNAVAILABLE, JSON, json.dumps({"status": "not ready", "detail": why_not})
            case "/metrics":
                if self._token and not _same(authorization, f"Bearer {self._token}"):
                    return HTTPStatus.UNAUTHORIZED, JSON, json.dumps({"detail": "send Authorization: Bearer TOKEN"})
                tell_cpu()
                return HTTPStatus.OK, MEDIA_TYPE, self._metrics()
        return HTTPStatus.NOT_FOUND, JSON, json.dumps({"detail": "there are /metrics, /healthz and /readyz"})


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    seconds = TIMEOUT
    head_seconds = HEAD_TIMEOUT

    def __init__(self, listener: socket.socket, answer: Callable[[str, str, str], tuple[HTTPStatus, str, str]]) -> None:
        super().__init__(listener.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.answer = answer
        self._places = threading.BoundedSemaphore(MOST_AT_ONCE)
        self._heads: dict[Any, threading.Timer] = {}
        """By connection: hangs up if the request does not arrive in time."""

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        # The timeout of a socket is for each byte: a client that sends one now and then would keep its place.
        deadline = _hang_up_after(self.seconds, request)
        self._heads[request] = _hang_up_after(self.head_seconds, request)
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.head_arrived(request)
            deadline.cancel()
            self._places.release()

    def head_arrived(self, request: Any) -> None:
        if (waiting := self._heads.pop(request, None)) is not None:
            waiting.cancel()

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Refuse a connection if too many are open."""
        return self._places.acquire(blocking=False)

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.debug("a request for metrics failed", exc_info=True)


def _hang_up_after(seconds: float, connection: socket.socket) -> threading.Timer:
    timer = threading.Timer(seconds, _hang_up, (connection,))
    timer.daemon = True
    timer.start()
    return timer


def _hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it has ended already
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    timeout = TIMEOUT
    server: _Server

    def do_GET(self) -> None:
        self.server.head_arrived(self.request)
        try:
            host, authorization = (self.headers.get(name) or "" for name in ("Host", "Authorization"))
            status, media_type, text = self.server.answer(self.path, host, authorization)
        except Exception:
            log.exception("the metrics could not be read")
            status, media_type, text = HTTPStatus.INTERNAL_SERVER_ERROR, JSON, "{}"
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        if status is HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        self.end_headers()
        self.wfile.write(body)

    def version_string(self) -> str:
        return "silkline"

    def log_message(self, format: str, *arguments: Any) -> None:
        log.debug(format, *arguments)


def _is_here(host: str) -> bool:
    if "@" in host:  # the host of a URL may have a user name before it, the header may not
        return False
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())

"""The HTTP endpoint of a worker: `/metrics`, `/healthz` and `/readyz`, in threads of their own.

It only reads. Beyond loopback, `/metrics` wants the token of the API. On loopback it wants the name of this machine in
`Host`, so that no web page in a browser here can read it under a name of its own (DNS rebinding).

Few connections are open at the same time. If there are too many, one that has not sent its request makes room.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import ipaddress
import json
import logging
import socket
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from silkline.login_throttle import LoginThrottle
from silkline.metrics.exposition import MEDIA_TYPE
from silkline.metrics.instruments import tell_cpu
from silkline.model.client_network import network_of

TIMEOUT: Final = 10.0  # seconds for a whole connection: to send a request, and to read the answer
HEAD_TIMEOUT: Final = 2.0  # seconds to send a request: clients that send none must not keep the few places from others
MOST_AT_ONCE: Final = 16
JSON: Final = "application/json"
NO_HEADERS: Final[Mapping[str, str]] = {}

log = logging.getLogger("silkline.metrics")


class MetricsListener(NamedTuple):
    """Where metrics are asked for, and the token for it; empty: none is needed."""

    socket: socket.socket
    token: str


class MetricsRequest(NamedTuple):
    """A request, and the address that its wrong tokens count for."""

    path: str
    host: str
    authorization: str
    address: str


class MetricsAnswer(NamedTuple):
    status: HTTPStatus
    body: str
    media_type: str = JSON
    headers: Mapping[str, str] = NO_HEADERS


class MetricsServer:
    """`why_not_ready` returns a reason, or None. With a token, `/metrics` is only for those who send it."""

    def __init__(
        self, listener: MetricsListener, metrics: Callable[[], str], why_not_ready: Callable[[], str | None]
    ) -> None:
        self._metrics = metrics
        self._why_not_ready = why_not_ready
        self._token = listener.token
        self._throttle = LoginThrottle()
        self._server = _Server(listener.socket, self._answer)
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join(timeout=TIMEOUT)
        self._server.server_close()

    def _answer(self, asked: MetricsRequest) -> MetricsAnswer:
        if not self._token and not _is_here(asked.host):
            return _problem(HTTPStatus.MISDIRECTED_REQUEST, "this is not the name of this machine")
        match asked.path.partition("?")[0]:
            case "/healthz":
                return MetricsAnswer(HTTPStatus.OK, json.dumps({"status": "ok"}))
            case "/readyz":
                why_not = self._why_not_ready()
                if why_not is None:
                    return MetricsAnswer(HTTPStatus.OK, json.dumps({"status": "ready"}))
                return MetricsAnswer(
                    HTTPStatus.SERVICE_UNAVAILABLE, json.dumps({"status": "not ready", "detail": why_not})
                )
            case "/metrics":
                if self._token and (refusal := self._refusal(asked)):
                    return refusal
                tell_cpu()
                return MetricsAnswer(HTTPStatus.OK, self._metrics(), MEDIA_TYPE)
        return _problem(HTTPStatus.NOT_FOUND, "there are /metrics, /healthz and /readyz")

    def _refusal(self, asked: MetricsRequest) -> MetricsAnswer | None:
        """None: the token is right. An address that sends many wrong tokens has to wait, as at the API."""
        missing = _problem(HTTPStatus.UNAUTHORIZED, "send Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})
        if not asked.authorization:
            return missing
        presented, right = _digest(asked.authorization), _digest(f"Bearer {self._token}")
        if wait := self._throttle.wait(asked.address, presented):
            detail = f"this address sent too many wrong tokens; try again in {wait} s"
            return _problem(HTTPStatus.TOO_MANY_REQUESTS, detail, {"Retry-After": str(wait)})
        if hmac.compare_digest(presented, right):
            self._throttle.was_right(presented)
            return None
        self._throttle.was_wrong(asked.address, presented)
        return missing


@dataclass(slots=True)
class _OpenConnection:
    address: str
    head: threading.Timer | None
    """Hangs up if the request does not arrive in time. None: it has arrived."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    seconds = TIMEOUT
    head_seconds = HEAD_TIMEOUT

    def __init__(self, listener: socket.socket, answer: Callable[[MetricsRequest], MetricsAnswer]) -> None:
        super().__init__(listener.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.answer = answer
        self._lock = threading.Lock()
        self._open: dict[Any, _OpenConnection] = {}  # the oldest comes first

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Count a new connection. Refuse it if too many are open, and all others have sent their requests."""
        with self._lock:
            if len(self._open) >= MOST_AT_ONCE and not self._make_room():
                return False
            head = _hanging_up(self.head_seconds, request)
            self._open[request] = _OpenConnection(network_of(client_address), head)
            return True

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            head = self._open[request].head
        if head is not None:
            head.start()
        super().process_request(request, client_address)

    def _make_room(self) -> bool:
        """End a connection without a request: the oldest of the address that has most of them."""
        waiting = {request: each for request, each in self._open.items() if each.head is not None}
        numbers = Counter(each.address for each in waiting.values())
        oldest = max(waiting, key=lambda request: numbers[waiting[request].address], default=None)
        if oldest is None:
            return False
        self._forget(oldest)
        _hang_up(oldest)
        return True

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        # The timeout of a socket is for each byte: a client that sends one now and then would keep its place.
        deadline = _hanging_up(self.seconds, request)
        deadline.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            deadline.cancel()

    def head_arrived(self, request: Any) -> bool:
        """False: the connection has made room for another one."""
        with self._lock:
            connection = self._open.get(request)
            if connection is None or connection.head is None:
                return False
            connection.head.cancel()
            connection.head = None
            return True

    def shutdown_request(self, request: Any) -> None:
        """Every connection ends here."""
        with self._lock:
            self._forget(request)
        super().shutdown_request(request)

    def _forget(self, request: Any) -> None:
        connection = self._open.pop(request, None)
        if connection is not None and connection.head is not None:
            connection.head.cancel()

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.debug("a request for metrics failed", exc_info=True)


def _hanging_up(seconds: float, connection: socket.socket) -> threading.Timer:
    """Hangs up when its time is over. It is not started."""
    timer = threading.Timer(seconds, _hang_up, (connection,))
    timer.daemon = True
    return timer


def _hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it has ended already
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    timeout = TIMEOUT
    server: _Server

    def do_GET(self) -> None:
        if not self.server.head_arrived(self.request):
            return
        try:
            host, authorization = (self.headers.get(name) or "" for name in ("Host", "Authorization"))
            answer = self.server.answer(MetricsRequest(self.path, host, authorization, network_of(self.client_address)))
        except Exception:
            log.exception("the metrics could not be read")
            answer = MetricsAnswer(HTTPStatus.INTERNAL_SERVER_ERROR, "{}")
        body = answer.body.encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.media_type)
        self.send_header("Content-Length", str(len(body)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
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


def _problem(status: HTTPStatus, detail: str, headers: Mapping[str, str] = NO_HEADERS) -> MetricsAnswer:
    return MetricsAnswer(status, json.dumps({"detail": detail}), headers=headers)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

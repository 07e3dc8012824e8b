"""Serves the sample site on loopback, in a thread: `with SampleServer() as server: server.url`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from silkline.sample.site import SampleAnswer, answer


class SampleServer:
    """`requests`, `headers` and `bodies` contain all requests so far, in order. Tests pass another `respond`."""

    def __init__(self, port: int = 0, respond: Callable[[str, str], SampleAnswer] = answer) -> None:
        self.respond = respond
        self.requests: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[bytes] = []
        self._server = _Server(("127.0.0.1", port), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, name="sample-site", daemon=True)

    @property
    def url(self) -> str:
        """The front page."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore connections that clients close."""


def _handler(site: SampleServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        server_version = "TernRock"
        sys_version = ""

        def do_GET(self) -> None:
            site.requests.append(self.path)
            site.headers.append(dict(self.headers.items()))
            reply = site.respond(self.path, f"http://{self.headers.get('Host') or '127.0.0.1'}")
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.content_type)
            self.send_header("Content-Length", str(len(reply.body)))
            if reply.location:
                self.send_header("Location", reply.location)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(reply.body)

        do_HEAD = do_GET

        def do_POST(self) -> None:
            site.bodies.append(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            self.do_GET()

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing: `requests` is the log."""

    return Handler

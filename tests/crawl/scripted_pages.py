"""A server of pages that need their scripts, and of pages whose scripts misbehave. It remembers who asked for what."""

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


def scripted(script: str, before: str = "") -> str:
    return f"<title>Scripted</title>{before}<div id=app></div><script>{script}</script>"


PAGES = {
    "/built": scripted(
        "fetch('/words').then(answer => answer.text()).then(words => {"
        "document.getElementById('app').innerHTML = '<h1>' + words + '</h1><a href=/found>further</a>'})"
    ),
    "/words": "built by a script",
    "/found": scripted("document.getElementById('app').innerHTML = '<p>found through a script</p>'"),
    "/plain": "<title>Plain</title><h1>Plain</h1>" + "<p>All of the words are here already.</p>" * 40,
    "/loop": scripted("for (;;);"),
    "/alert": scripted("alert(1); confirm(2); prompt(3); document.body.append('after the dialogs')"),
    "/elsewhere": scripted("location = '/built?from=elsewhere'"),
    "/runaway": scripted("location = '/runaway?' + Math.random()"),
    "/reloads": scripted("document.body.append('still here'); location.reload()"),
    "/endless": "<p>the beginning</p><script src=/hang></script><p>the rest</p>",
    "/huge": scripted(
        "const all = document.createElement('div'); all.hidden = true; document.body.append(all);"
        "for (let i = 0; i < 100; i++) all.append('x'.repeat(1e6))"
    ),
    "/greedy": scripted(
        "const all = []; for (let i = 0; i < 40; i++) all.push(new Uint8Array(5e7).fill(1)); for (;;);"
    ),
    "/popups": scripted(
        "window.open('/built?popup'); const link = document.createElement('a'); link.href = '/built?blank';"
        "link.target = '_blank'; document.body.append(link); link.click(); document.body.append('after the popups')"
    ),
    "/download": scripted(
        "const link = document.createElement('a'); link.href = '/words?file'; link.download = 'words';"
        "document.body.append(link); link.click(); document.body.append('after the download')"
    ),
    "/archive": scripted("document.body.append('your download begins'); location = '/file.zip'"),
    "/shadow": scripted(
        "customElements.define('in-shadow', class extends HTMLElement { constructor() { super();"
        "this.attachShadow({mode: 'open'}).innerHTML = '<p>from the shadow, <slot></slot></p>' } });"
        "document.getElementById('app').innerHTML = '<in-shadow>into the light</in-shadow>'"
    ),
    "/hidden-attributes": scripted(
        "document.body.append('attributes ' + 'read')", "<form><input name=attributes></form>"
    ),
    "/pushed": scripted("history.pushState({}, '', '/pushed/on'); document.body.append('pushed on')"),
    "/unseen": scripted("document.body.append('seen')", "<noscript>Please turn on JavaScript.</noscript>"),
    "/many": scripted("for (let i = 0; i < 400; i++) fetch('/words?' + i); document.body.append('asked')"),
    "/heavy": scripted("for (let i = 0; i < 8; i++) fetch('/megabytes?' + i); document.body.append('asked')"),
    "/held": scripted("fetch('/hold').then(() => document.body.append('let go'))"),
    "/holding": "<script src=/hold></script><p>let go</p>",
    "/worker": scripted("document.body.append('service workers: ', 'serviceWorker' in navigator)"),
}


class ScriptedPages:
    """`on_hold` is called in the server's thread for each request of `/hold`; the answer waits for it.

    `/redirect?to=URL` leads there.

    The answer to `/until` waits until `/now` is asked for: a page that asks for both is not quiet before it says so.
    """

    def __init__(
        self,
        pages: dict[str, str] | None = None,
        on_hold: Callable[[], None] = lambda: None,
        address: str = "127.0.0.1",
    ) -> None:
        self.pages = PAGES if pages is None else pages
        self.on_hold = on_hold
        self._address = address
        self.log: list[tuple[str, dict[str, str]]] = []
        self.closing = threading.Event()
        self._now = threading.Event()
        self._server = ThreadingHTTPServer((address, 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    @property
    def url(self) -> str:
        return f"http://{self._address}:{self.port}"

    def asked(self, path: str) -> int:
        """How often this path was asked for, whatever its query."""
        return sum(each.partition("?")[0] == path for each, _ in self.log)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._now.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(site: ScriptedPages) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            site.log.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            if path == "/hang":
                site.closing.wait(120)
            if path == "/hold":
                site.on_hold()
            if path == "/now":
                site._now.set()
            if path == "/until":
                site._now.wait(120)
            if path == "/redirect":
                self._answer(302, "text/plain", b"", {"Location": self.path.partition("?to=")[2]})
            elif path == "/megabytes":
                self._answer(200, "text/plain", b"x" * 2_000_000)
            elif path in site.pages or path in ("/hold", "/now", "/until"):
                kind = "text/html" if path in site.pages and path != "/words" else "text/javascript"
                self._answer(200, kind, site.pages.get(path, "").encode())
            else:
                self._answer(404, "text/plain", b"not here")

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.do_GET()

        def do_OPTIONS(self) -> None:
            site.log.append((f"{self.path}#preflight", {name.lower(): value for name, value in self.headers.items()}))
            self._answer(200, "text/plain", b"", {"Access-Control-Allow-Headers": "*"})

        def _answer(self, status: int, kind: str, body: bytes, more: dict[str, str] | None = None) -> None:
            try:
                self.send_response(status)
                for name, value in (more or {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Set-Cookie", "first=1; Expires=Wed, 21 Oct 2037 07:28:00 GMT")
                self.send_header("Set-Cookie", "second=2")
                self.send_header("Access-Control-Allow-Origin", "*")
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                self.close_connection = True  # the browser was killed, or has heard enough

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    return Handler

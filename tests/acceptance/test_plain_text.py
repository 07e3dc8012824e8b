"""A text/plain URL gives the same result whether a page job or a crawl fetched it."""

import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from silkline.store import jobs, results
from silkline.store.opening import open_database
from tests.acceptance.conftest import Silkline

TEXTS = {
    "/utf-8.txt": ("Grüße aus Köln.\n\nZweiter Absatz.\n".encode(), "text/plain"),
    "/latin.txt": ("Grüße aus Köln. Die Straße ist lang.\n".encode("latin-1"), "text/plain"),
    "/said.txt": ("Привет, мир.\n".encode("koi8-r"), "text/plain; charset=koi8-r"),
    "/data.json": (b'{"a": 1}', "application/json"),
}


class TextServer:
    def __init__(self) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body, kind = TEXTS.get(self.path, (b"", ""))
                self.send_response(200 if body else 404)
                self.send_header("Content-Type", kind or "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.urls = [f"http://127.0.0.1:{self._server.server_port}{path}" for path in TEXTS]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.mark.parametrize("content", ["markdown", "text"])
def test_page_and_site_jobs_store_the_same(silkline: Silkline, content: str) -> None:
    found = []
    with (
        closing(TextServer()) as server,
        closing(open_database(f"sqlite:///{silkline.folder / 'data' / 'silkline.db'}")) as database,
    ):
        for command in ("fetch", "crawl"):
            done = silkline(command, *server.urls, "--content", content, "--speed", "max")
            assert done.code == 0, done
            job = jobs.find(database, "last")
            found.append({result.final_url: result.data for result in results.every(database, job.id)})
    assert found[0] == found[1]
    shown = {url.rpartition("/")[2]: data[content] for url, data in found[0].items()}
    assert "Grüße aus Köln." in shown["utf-8.txt"]
    assert "Grüße aus Köln." in shown["latin.txt"]
    assert "Привет, мир." in shown["said.txt"]

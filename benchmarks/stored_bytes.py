"""The largest number of bytes that one hostile page makes Silkline store: database, WARC file, logs and all else.

    python -m benchmarks.stored_bytes [NAME...]

Each page is crawled with everything that can be stored: content, facts, fields, kept HTML and a WARC file. The data
folder before the crawl (an empty database) is subtracted. Nothing is asserted.
"""

from __future__ import annotations

import gzip
import http.server
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

MB = 1_000_000
LONG = "https://" + "a" * 50 + ".example/" + "b" * 7_900 + "/"
EVERYTHING = ("--keep-html", "--warc", "--facts", "all", "--field", "a=//*", "--content", "full")


def noise(size: int) -> str:
    return random.Random(1).randbytes(size // 2).hex()


def words(size: int) -> str:
    return ("<p>" + "plain words that fill the page " * 30) * (size // 900)


PAGES: dict[str, Callable[[], str]] = {
    "empty": lambda: "<p>empty",
    "10 MB of words": lambda: words(10 * MB),
    "20 MB of words": lambda: words(20 * MB),
    "10 MB that cannot be compressed": lambda: f"<p>{noise(10 * MB - 100)}",
    "10 MB of characters that JSON escapes": lambda: "<pre>" + '\x01"\\' * (3 * MB),
    "10 MB of Markdown escapes": lambda: "<p>" + "*_[]" * (2 * MB + MB // 2),
    "links with a long base": lambda: f'<base href="{LONG}">' + "".join(f"<a href=l{n}>t</a> " for n in range(240_000)),
    "images with a long base": lambda: f'<base href="{LONG}">' + "".join(f"<img src=i{n}>" for n in range(240_000)),
    "long links to other hosts": lambda: "".join(
        f'<a href="https://h{n}.example/{"c" * 900}">t</a> ' for n in range(10_000)
    ),
    "10,000 short links": lambda: "".join(f"<a href=/{n}>t</a> " for n in range(10_000)),
    "nested lists": lambda: "<ul><li>x" * 2_000 + "<li>y" * 100_000,
    "nested quotes": lambda: "<blockquote>" * 500 + "<p>x" * 200_000,
    "a table with spans": lambda: "<table>" + ("<tr>" + "<td colspan=50 rowspan=50>xxxx" * 20) * 950,
    "meta tags and JSON-LD": lambda: (
        f'<script type="application/ld+json">{{"@type":"A","b":"{noise(4 * MB)}"}}</script>'
        + "".join(f'<meta name=m{n} content="{"d" * 1_000}">' for n in range(4_000))
    ),
    "headings": lambda: "".join(f"<h2>{'e' * 80}</h2>" for _ in range(100_000)),
}


class Handler(http.server.BaseHTTPRequestHandler):
    page = b""

    def do_GET(self) -> None:
        if self.path == "/robots.txt":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(self.page)))
        for number in range(90):
            self.send_header(f"X-{number}", "f" * 600)
        self.end_headers()
        self.wfile.write(self.page)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def sizes(data: Path) -> dict[str, int]:
    """Bytes on the disk by folder. The WAL of the database is written back first."""
    connection = sqlite3.connect(data / "silkline.db")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    found: dict[str, int] = {}
    for folder, _, names in os.walk(data):
        for name in names:
            part = Path(folder, name).relative_to(data).parts[0]
            found[part] = found.get(part, 0) + Path(folder, name).lstat().st_size
    return found


def crawl(url: str, data: Path, *options: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", "silkline", "crawl", url, "--limit", "1", "--speed", "max", "--fetchers", "1", *options],
        env={**os.environ, "SILKLINE_DATA": str(data)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        text=True,
    )
    return "" if ended.returncode == 0 else ended.stderr.strip().rpartition("\n")[2]


def main(wanted: list[str]) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    before = 0
    for name, make in PAGES.items():
        if wanted and name != "empty" and not any(each in name for each in wanted):
            continue
        text = make().encode()
        Handler.page = gzip.compress(text, 6)
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "data"
            problem = crawl(f"http://127.0.0.1:{server.server_address[1]}/", data, *EVERYTHING)
            found = sizes(data)
        stored = sum(found.values())
        before = before or stored
        parts = ", ".join(f"{part} {size / MB:.1f}" for part, size in sorted(found.items()) if size > MB / 20)
        wire = len(Handler.page) / MB
        print(
            f"{name:40} {len(text) / MB:6.1f} MB, sent {wire:6.2f} MB, stored {(stored - before) / MB:7.1f} MB ({parts}) "
            f"{problem}",
            flush=True,
        )
    server.shutdown()


if __name__ == "__main__":
    main(sys.argv[1:])

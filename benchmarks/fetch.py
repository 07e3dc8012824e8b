"""Measures the cost of one page in the HTTP client: CPU-ms per page, new connection and keep-alive, HTTP and HTTPS.

Starts nginx (Debian's nginx-light) on loopback with synthetic pages of 46.5 KB that gzip to about 16 KB, fetches them
from many 127.x.y.z hosts, and prints the lowest time of several rounds. Never asserts a time.

    python -m benchmarks.fetch [--pages 6000] [--concurrency 300] [--rounds 3] [--tls] [--only new|keep]

With TLS, certificates are verified. The bundle is that of the system plus the certificate of the server.
"""

import argparse
import asyncio
import gzip
import os
import random
import resource
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvloop

from silkline.fetch.client import HttpClient
from silkline.fetch.dns import Resolution
from silkline.fetch.guard import Guard, parse_exemption
from silkline.fetch.settings import FetchSettings
from silkline.model.fetched import Fetched, Request

PAGES = 200
CONFIG = """
daemon off; pid {root}/pid; error_log {root}/error.log; worker_processes 1; {user}
events {{ worker_connections 4096; }}
http {{
  access_log off; default_type text/html; gzip_static always; gunzip off; sendfile on; tcp_nopush on;
  client_body_temp_path {root}/t1; proxy_temp_path {root}/t2; fastcgi_temp_path {root}/t3;
  uwsgi_temp_path {root}/t4; scgi_temp_path {root}/t5;
  server {{ listen {new}; root {root}/web; keepalive_timeout 0; }}
  server {{ listen {keep}; root {root}/web; keepalive_requests 1000000; }}
  server {{ listen {new_tls} ssl; root {root}/web; keepalive_timeout 0; {cert} }}
  server {{ listen {keep_tls} ssl; root {root}/web; keepalive_requests 1000000; {cert} }}
}}
"""


def page(number: int) -> bytes:
    """A page with 60 links and text that gzips about three to one."""
    words = random.Random(number)
    paragraphs = []
    for _ in range(60):
        text = " ".join(f"{words.getrandbits(28):x}"[: words.randint(2, 7)] for _ in range(75))
        link = f'<a href="/p{words.randrange(PAGES)}.html">{text[:20]}</a>'
        paragraphs.append(f'<div class="entry"><p class="text">{text}</p>{link}</div>')
    return ("<!doctype html><title>page</title><body>" + "\n".join(paragraphs)).encode().ljust(46_500)[:46_500]


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in sockets]
    for listener in sockets:
        listener.close()
    return ports


@contextmanager
def nginx() -> Iterator[tuple[dict[str, int], str]]:
    """Run a server. Gives the port for each type of connection, and a bundle with the certificate."""
    if shutil.which("nginx") is None:
        raise SystemExit("nginx is not installed: apt install nginx-light")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        root.chmod(0o755)
        (root / "web").mkdir()
        for number in range(PAGES):
            (root / "web" / f"p{number}.html.gz").write_bytes(gzip.compress(page(number), 6))
        command = ["openssl", "req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=benchmark", "-addext"]
        command += ["subjectAltName=DNS:*.web.test", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        command += ["-keyout", f"{root}/key", "-out", f"{root}/cert"]
        subprocess.run(command, check=True, capture_output=True)
        bundle = root / "bundle.pem"
        bundle.write_text(Path(FetchSettings().ca_file()).read_text() + (root / "cert").read_text())
        ports = dict(zip(("new", "keep", "new_tls", "keep_tls"), free_ports(4), strict=True))
        cert = f"ssl_certificate {root}/cert; ssl_certificate_key {root}/key;"
        user = "user root;" if os.getuid() == 0 else ""
        (root / "nginx.conf").write_text(CONFIG.format(root=root, cert=cert, user=user, **ports))
        server = subprocess.Popen(["nginx", "-p", str(root), "-c", f"{root}/nginx.conf"])
        try:
            while True:
                try:
                    socket.create_connection(("127.0.0.1", ports["keep_tls"]), timeout=1).close()
                    break
                except OSError:
                    time.sleep(0.05)
            yield ports, str(bundle)
        finally:
            server.terminate()
            server.wait()


class Names:
    """Resolves each name such as `h7.web.test` to its own loopback address."""

    def cached(self, host: str) -> Resolution | None:
        number = int(host[1:-9])
        return (f"127.{1 + number // 250}.1.{1 + number % 250}",)

    async def resolve(self, host: str) -> Resolution:
        return self.cached(host) or ()

    def close(self) -> None:
        pass


async def ask(urls: list[str], concurrency: int, warm: int, ca_bundle: str) -> tuple[float, float, int]:
    """CPU seconds, wall seconds and bytes for these URLs. The first `warm` URLs are not counted."""
    guard = Guard([parse_exemption("127.0.0.0/8")])
    client = HttpClient(FetchSettings(ca_bundle=ca_bundle, http2=False), guard, Names())
    done = asyncio.Event()
    rest = iter(urls)
    left, size = len(urls), 0
    cpu = wall = 0.0

    def arrived(fetched: Fetched) -> None:
        nonlocal left, size, cpu, wall
        if not fetched.ok or len(fetched.body) != 46_500:
            raise SystemExit(f"not a page: {fetched.reason} {fetched.detail} {fetched.url}")
        size += fetched.wire_bytes
        left -= 1
        if left == len(urls) - warm:
            cpu, wall = time.process_time(), time.perf_counter()
        if (url := next(rest, None)) is not None:
            client.start(Request(url), arrived)
        elif left == 0:
            done.set()

    for _ in range(concurrency):
        client.start(Request(next(rest)), arrived)
    await done.wait()
    taken = time.process_time() - cpu, time.perf_counter() - wall, size
    client.close()
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=6000)
    parser.add_argument("--concurrency", type=int, default=300)
    parser.add_argument("--hosts", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--only", choices=["new", "keep"])
    options = parser.parse_args()
    with nginx() as (ports, bundle):
        for way in [options.only] if options.only else ["new", "keep"]:
            port = ports[way + "_tls"] if options.tls else ports[way]
            scheme = "https" if options.tls else "http"
            # Keep-alive helps only if there are fewer hosts than connections.
            hosts = options.hosts if way == "new" else options.concurrency
            warm = options.concurrency
            urls = [f"{scheme}://h{n % hosts}.web.test:{port}/p{n % PAGES}.html" for n in range(options.pages + warm)]
            best = min(uvloop.run(ask(urls, options.concurrency, warm, bundle)) for _ in range(options.rounds))
            cpu, wall, size = best
            print(
                f"{scheme} {way:5} {1000 * cpu / options.pages:.3f} CPU-ms/page  {options.pages / wall:7.0f} pages/s  "
                f"{size / len(urls) / 1024:.1f} KB/page"
            )
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()

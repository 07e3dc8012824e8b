"""Compares the rendering of pages that only scripts can build: pages/s, CPU-ms per page, and what is missing.

    python -m benchmarks.render --pages 120       or: make bench BENCH=render

A server in a process of its own serves pages whose text comes from a script: at once, from a request, after a timer of
50, 300 or 900 ms, and after a chain of both. Each crawler has two pages open at a time, and gets the whole list of URLs.
Silkline runs as a user runs it, `crawl --render always`; Crawlee and crawl4ai use Playwright with the full Chromium of
this machine, and wait for the load event and then for a quiet network, their documented way to see late content. Peers
are installed in build/peers-render, never in our own environment. CPU is that of the whole process tree with its
browsers, without the server. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
HERE = Path(__file__).resolve().parent
PEERS = ROOT / "build" / "peers-render"
WORDS = " ".join(f"word{number % 97}" for number in range(400))
SHOW = "document.getElementById('app').innerHTML = '<h1>page ' + {number} + '</h1><p>' + words + ' the' + 'end</p>'"
WAYS = (
    "const words = '{words}'; {show}",
    "fetch('/words').then(answer => answer.text()).then(words => {{ {show} }})",
    "setTimeout(() => fetch('/words').then(answer => answer.text()).then(words => {{ {show} }}), 50)",
    "setTimeout(() => fetch('/words').then(answer => answer.text()).then(words => {{ {show} }}), 300)",
    "setTimeout(() => fetch('/words').then(answer => answer.text()).then(words => {{ {show} }}), 900)",
    "const next = n => setTimeout(() => fetch('/words?' + n).then(answer => answer.text()).then(words => "
    "{{ if (n) next(n - 1); else {show} }}), 100); next(4)",
)
LAST = "theend"


@dataclass(frozen=True)
class Round:
    seconds: float
    cpu: float
    whole: int


def page(number: int) -> str:
    show = SHOW.format(number=number)
    script = WAYS[number % len(WAYS)].format(words=WORDS, show=show)
    return f"<!doctype html><title>Page {number}</title><div id=app></div><script>{script}</script>"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        body = WORDS if path == "/words" else page(int(path[3:])) if path.startswith("/p/") else ""
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html" if path.startswith("/p/") else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


@contextmanager
def server() -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.render", "--serve"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


def serve() -> None:
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    print(f"http://127.0.0.1:{httpd.server_port}", flush=True)
    httpd.serve_forever()


class TreeClock:
    """The CPU time of a process and of all its descendants, also of those that were killed."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._used: dict[tuple[int, float], float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stop.wait(0.05):
            try:
                processes = [self._root, *self._root.children(recursive=True)]
            except psutil.Error:
                continue
            for each in processes:
                try:
                    times = each.cpu_times()
                    self._used[each.pid, each.create_time()] = times.user + times.system
                except psutil.Error:
                    continue

    def stop(self) -> float:
        self._stop.set()
        self._thread.join()
        return sum(self._used.values())


def measure(command: list[str], environment: dict[str, str], whole: Callable[[], int]) -> Round:
    start = time.perf_counter()
    process = subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT
    )
    clock = TreeClock(process.pid)
    code = process.wait()
    seconds = time.perf_counter() - start
    cpu = clock.stop()
    if code:
        raise SystemExit(f"{command[:4]} ended with {code}")
    return Round(seconds, cpu, whole())


def silkline(urls: list[str]) -> Round:
    with tempfile.TemporaryDirectory() as folder:
        seeds, out = Path(folder) / "seeds.txt", Path(folder) / "pages.jsonl"
        seeds.write_text("\n".join(urls))
        options = ["--seeds", str(seeds), "--depth", "0", "--render", "always", "--speed", "max", "--ignore-robots"]
        options += ["--allow-private", "127.0.0.0/8", "--quiet", "--fetchers", "1", "--output", str(out)]
        environment = {"SILKLINE_DATA": folder, "SILKLINE_MAX_CONCURRENT_CHROME": "2"}
        command = [sys.executable, "-P", "-m", "silkline", "crawl", *options]
        return measure(command, environment, lambda: whole_pages(out))


def peer(name: str, urls: list[str]) -> Round:
    with tempfile.TemporaryDirectory() as folder:
        seeds, out = Path(folder) / "seeds.txt", Path(folder) / "pages.jsonl"
        seeds.write_text("\n".join(urls))
        script = str(HERE / f"render_{name}.py")
        program = shutil.which("chromium") or ""
        command = [str(PEERS / "bin" / "python"), "-P", script, str(seeds), str(out), program]
        environment = {"CRAWL4_AI_BASE_DIRECTORY": folder, "HOME": folder}
        return measure(command, environment, lambda: whole_pages(out))


def whole_pages(out: Path) -> int:
    """The number of pages whose last word is there."""
    return sum(LAST in json.dumps(json.loads(line)) for line in out.read_text().splitlines())


def install_peers() -> None:
    if not (PEERS / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(PEERS)], check=True)
        command = [str(PEERS / "bin" / "python"), "-m", "pip", "install", "-q", "crawlee[playwright]", "crawl4ai"]
        subprocess.run(command, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=120)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    sides: dict[str, Callable[[list[str]], Round]] = {"silkline": silkline}
    for name in ("crawlee", "crawl4ai"):
        sides[name] = lambda urls, name=name: peer(name, urls)
    sides = {name: side for name, side in sides.items() if options.only in name}
    if set(sides) != {"silkline"}:
        install_peers()
    found: dict[str, list[Round]] = {}
    with server() as url:
        urls = [f"{url}/p/{number}" for number in range(options.pages)]
        for _ in range(options.rounds):
            for name, side in sides.items():
                found.setdefault(name, []).append(side(urls))
                print(f"{name}: {found[name][-1]}", file=sys.stderr)
    print("| | pages/s | CPU-ms/page | pages with all their text |\n|---|---|---|---|")
    for name, rounds in found.items():
        best = min(rounds, key=lambda each: each.seconds)
        pages = options.pages
        print(f"| {name} | {pages / best.seconds:.1f} | {1000 * best.cpu / pages:.0f} | {best.whole} of {pages} |")


if __name__ == "__main__":
    main()

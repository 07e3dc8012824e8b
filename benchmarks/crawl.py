"""Compares a whole crawl with Scrapy, Crawlee and a lower bound: pages/s, CPU-ms per page, peak memory.

    make bench BENCH=crawl ARGS="--pages 20000"       or: python -m benchmarks.crawl --help

nginx (apt install nginx-light) serves 1,000 synthetic pages of about 47 KB (16 KB gzipped, 60 links) on 2,000 loopback
hosts. Each crawler follows links from one page until it has the wanted number of pages, with robots.txt and delays off,
and stores its results: Silkline a ledger and results in SQLite, the others a file of JSON lines. CPU is the CPU time of
the whole process tree, with the start. `--against DIR` measures another checkout of Silkline in the same run, and
`--without safety` or `--without metrics` measures this one without these parts (without/sitecustomize.py). The other
crawlers are installed in build/peers, never in our own environment. The lower bound is `wrk`. Nothing is asserted. The
crawlers run in turn, and the table shows the best and the median round of each.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
HERE = Path(__file__).resolve().parent
PEERS = ROOT / "build" / "peers"
NOWHERE = Path(os.devnull)
# Installed programs have compiled byte code. These programs have it from the second round on.
BYTE_CODE = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(ROOT / "build" / "pycache")}
PAGES, HOSTS, TLS_HOSTS, LINKS = 1000, 2000, 100, 60
CONFIG = """
daemon off; pid {root}/pid; error_log {root}/error.log; worker_processes 1; worker_rlimit_nofile 20000; {user}
events {{ worker_connections 8192; }}
http {{
  access_log off; default_type text/html; gzip_static always; gunzip off; sendfile on; tcp_nopush on;
  keepalive_requests 1000000;
  client_body_temp_path {root}/t1; proxy_temp_path {root}/t2; fastcgi_temp_path {root}/t3;
  uwsgi_temp_path {root}/t4; scgi_temp_path {root}/t5;
  server {{ listen {http} backlog=8192; root {root}/http; }}
  ssl_certificate {root}/cert; ssl_certificate_key {root}/key;
  server {{ listen {https} ssl backlog=8192; root {root}/https; }}
}}
"""


@dataclass(frozen=True)
class Round:
    pages: int
    seconds: float
    cpu: float
    memory: int

    @property
    def cost(self) -> float:
        return 1000 * self.cpu / self.pages


def host(number: int) -> str:
    return f"127.{1 + number // 250}.1.{1 + number % 250}"


def page(file: int, scheme: str, port: int, hosts: int) -> bytes:
    """A page with 60 links, two thirds of them to the same host, and text that gzips about three to one.

    With relative links, 1,000 files have 2,000,000 URLs, so nearly every link of a page is new to the crawler.
    """
    chance = random.Random(file)
    parts = [f"<!doctype html><html lang=en><head><title>Page {file}</title></head><body><main>"]
    for number in range(LINKS):
        text = " ".join(f"{chance.getrandbits(28):x}"[: chance.randint(2, 7)] for _ in range(118))
        abroad = f"{scheme}://{host(chance.randrange(hosts))}:{port}" if number % 3 == 0 else ""
        target = f"{abroad}/p/{chance.randrange(PAGES)}.html"
        parts.append(f'<div class="entry"><p class="text">{text}</p><a href="{target}">{text[:20]}</a></div>')
    return "\n".join([*parts, "</main></body></html>"]).encode()


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in sockets]
    for listener in sockets:
        listener.close()
    return ports


@contextmanager
def nginx(cores: str, *, https: bool = True) -> Iterator[dict[str, str]]:
    """Run a server. Gives the first URL for each scheme, and a bundle with the certificate. Without `https` only the
    pages for HTTP are made."""
    if shutil.which("nginx") is None:
        raise SystemExit("nginx is not installed: apt install nginx-light")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        root.chmod(0o755)
        ports = dict(zip(("http", "https"), free_ports(2), strict=True))
        for scheme, hosts in (("http", HOSTS), ("https", TLS_HOSTS)):
            (root / scheme / "p").mkdir(parents=True)
            for number in range(PAGES if https or scheme == "http" else 0):
                body = gzip.compress(page(number, scheme, ports[scheme], hosts), 6)
                (root / scheme / "p" / f"{number}.html.gz").write_bytes(body)
        names = ",".join(f"IP:{host(number)}" for number in range(TLS_HOSTS))
        command = ["openssl", "req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=benchmark", "-addext"]
        command += [f"subjectAltName={names}", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        subprocess.run([*command, "-keyout", f"{root}/key", "-out", f"{root}/cert"], check=True, capture_output=True)
        user = "user root;" if os.getuid() == 0 else ""
        (root / "nginx.conf").write_text(CONFIG.format(root=root, user=user, **ports))
        server = subprocess.Popen(["taskset", "-c", cores, "nginx", "-p", str(root), "-c", f"{root}/nginx.conf"])
        try:
            wait_for(ports["https"])
            starts = {scheme: f"{scheme}://{host(0)}:{ports[scheme]}/p/0.html" for scheme in ports}
            yield {**starts, "bundle": str(root / "cert")}
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()


def wait_for(port: int) -> None:
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)


def measure(
    command: list[str], cores: str, environment: dict[str, str], pages: Callable[[], int], out: Path = NOWHERE
) -> Round:
    """Run a crawler on some cores until it ends, and return its costs with those of its children."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    start = time.perf_counter()
    environment |= BYTE_CODE
    with out.open("w") as printed:
        process = subprocess.Popen(
            ["taskset", "-c", cores, *command], env={**os.environ, **environment}, stdout=printed
        )
    memory = 0
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        memory = max(memory, tree_memory(process.pid))
        time.sleep(0.25)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[:3]} ended with {process.returncode}")
    return Round(pages(), seconds, usage.ru_utime + usage.ru_stime, memory)


def tree_memory(pid: int) -> int:
    try:
        process = psutil.Process(pid)
        return sum(each.memory_info().rss for each in (process, *process.children(recursive=True)))
    except psutil.Error:
        return 0


def silkline(
    source: Path,
    start: str,
    wanted: int,
    cores: str,
    bundle: str,
    *,
    content: str,
    fetchers: int,
    parsers: int,
    without: str = "",
) -> Round:
    """Run the real command of a checkout, as a user does: a supervisor and the process tree of one job."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "job.json"
        command = silkline_command(start, wanted, content, fetchers, parsers)
        environment = silkline_environment(source, folder, bundle, without)
        return measure(command, cores, environment, lambda: json.loads(out.read_text())["progress"]["done"], out)


def silkline_command(start: str, wanted: int, content: str, fetchers: int = 1, parsers: int = 0) -> list[str]:
    options = ["--scope", "any", "--speed", "max", "--ignore-robots", "--allow-private", "127.0.0.0/8"]
    options += ["--limit", str(wanted), "--content", content, "--json", "--quiet"]
    options += ["--fetchers", str(fetchers), "--parsers", str(parsers)]
    return [sys.executable, "-P", "-m", "silkline", "crawl", start, *options]


def silkline_environment(source: Path, folder: str, bundle: str, without: str = "") -> dict[str, str]:
    environment = {"SSL_CERT_FILE": bundle, "PYTHONPATH": str(source / "src"), "SILKLINE_DATA": folder}
    if without:
        environment["PYTHONPATH"] += f"{os.pathsep}{HERE / 'without'}"
        environment["PYTHON_SILKLINE_WITHOUT"] = without
    return environment


def peer(name: str, start: str, wanted: int, cores: str, bundle: str) -> Round:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "pages.jsonl"
        script = str(HERE / f"crawl_{name}.py")
        command = [str(PEERS / "bin" / "python"), "-P", script, start, str(wanted), str(out)]
        return measure(command, cores, {"SSL_CERT_FILE": bundle}, lambda: sum(1 for _ in out.open()))


def floor(start: str, cores: str) -> tuple[float, float]:
    """Pages/s and CPU-ms per page of wrk, which decodes and stores nothing."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = ["taskset", "-c", cores, "wrk", "-t1", "-c100", "-d5s", "-H", "Accept-Encoding: gzip", start]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    requests = int(next(line for line in said.splitlines() if " requests in " in line).split()[0])
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return requests / 5, 1000 * cpu / requests


def fixed_work() -> float:
    """CPU seconds for a fixed amount of work. It shows the current speed of the machine under its other load."""
    before, total = time.process_time(), 0
    for number in range(1_000_000):
        total += number * number % 7
    return time.process_time() - before


def install_peers() -> None:
    if (PEERS / "bin" / "python").exists():
        return
    subprocess.run([sys.executable, "-m", "venv", str(PEERS)], check=True)
    command = [str(PEERS / "bin" / "python"), "-m", "pip", "install", "-q", "scrapy", "crawlee[parsel]"]
    subprocess.run(command, check=True)


def sides(options: argparse.Namespace, web: dict[str, str]) -> dict[str, Callable[[], Round]]:
    """The crawlers to measure, by name."""
    found: dict[str, Callable[[], Round]] = {}
    one, both, bundle = options.cores[:1], ",".join(options.cores), web["bundle"]

    def ours(name: str, start: str, cores: str, content: str, fetchers: int, parsers: int = 0) -> None:
        others = [(f" (without {part})", ROOT, part) for part in options.without]
        for label, source, part in (("", ROOT, ""), (" (against)", options.against, ""), *others):
            if source is not None:
                found[name + label] = lambda source=source, part=part: silkline(
                    *(source, start, options.pages, cores, bundle),
                    **{"content": content, "fetchers": fetchers, "parsers": parsers, "without": part},
                )

    ours("silkline 1x0", web["http"], one[0], "none", 1)
    ours("silkline 1x0, Markdown", web["http"], one[0], "full", 1)
    ours("silkline 1x0, main content", web["http"], one[0], "markdown", 1)
    ours("silkline 1x0, HTTPS", web["https"], one[0], "none", 1)
    ours("silkline 2x0, two cores", web["http"], both, "none", 2)
    ours("silkline 1x1, two cores", web["http"], both, "none", 1, 1)
    for name in ("scrapy", "crawlee"):
        found[name] = lambda name=name: peer(name, web["http"], options.peer_pages, one[0], bundle)
    wanted = {name: side for name, side in found.items() if options.only.lower() in name.lower()}
    if not wanted:
        raise SystemExit(f"--only {options.only}: there are {'; '.join(found)}")
    return wanted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--peer-pages", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="only the crawlers whose name contains this text")
    parser.add_argument("--against", type=Path, help="another checkout of Silkline, measured in turn with this one")
    parser.add_argument(
        "--without", action="append", default=[], choices=["safety", "metrics"], help="measured in turn"
    )
    parser.add_argument("--cores", type=lambda text: text.split(","), default=["0", "1"], help="crawler, server")
    options = parser.parse_args()
    rounds: dict[str, list[Round]] = {}
    speeds: list[float] = []
    with nginx(options.cores[-1]) as web:
        todo = sides(options, web)
        if not {"scrapy", "crawlee"}.isdisjoint(todo):
            install_peers()
        for _ in range(options.rounds):
            for name, side in todo.items():
                speeds.append(fixed_work())
                rounds.setdefault(name, []).append(side())
                print(f"{name}: {rounds[name][-1]}", file=sys.stderr)
        if shutil.which("wrk") and not options.only:
            rate, cost = floor(web["http"], options.cores[0])
            print(f"floor (wrk, one URL, nothing decoded or kept): {rate:,.0f} pages/s, {cost:.3f} ms\n")
    print(f"load average {os.getloadavg()[0]:.1f}, {len(os.sched_getaffinity(0))} cores")
    print(f"the same fixed work took {min(speeds):.3f} to {max(speeds):.3f} CPU-s between rounds\n")
    print(table(rounds))


def table(rounds: dict[str, list[Round]]) -> str:
    lines = ["| | pages | pages/s | CPU-ms/page, best | median | peak MB |", "|---|---|---|---|---|---|"]
    for name, several in rounds.items():
        best = min(several, key=lambda each: each.cost)
        median = statistics.median(each.cost for each in several)
        rate = max(each.pages / each.seconds for each in several)
        memory = max(each.memory for each in several) / 1e6
        lines.append(f"| {name} | {best.pages} | {rate:,.0f} | {best.cost:.2f} | {median:.2f} | {memory:.0f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()

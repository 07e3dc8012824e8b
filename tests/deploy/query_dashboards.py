"""`make dashboards-test`: a real Prometheus scrapes a running fleet, and every query of every panel returns a number.

promtool checks and tests the alert rules as well. It needs Debian's package prometheus, and Chromium for the panels
about rendering. It prints each panel with the value that it shows, and draws all of them: build/dashboards.html. With
a number of seconds as its argument, the fleet works for that long, so that the charts show more.
"""

import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError

import yaml

from silkline.model.database import Database
from silkline.model.job import NewJob
from silkline.sample.server import SampleServer
from silkline.sample.site import SampleAnswer, answer
from silkline.store import jobs
from silkline.store.opening import open_database
from tests.support.daemon import free_port
from tests.support.dashboards import ALERTS, ROOT, drawing, queries
from tests.support.served import Served
from tests.support.supervisors import LIBC, QUICK

PATIENCE = 240.0
WORKERS = 2
RANGE = "20s"  # in place of Grafana's $__rate_interval


def main() -> int:
    for program in ("prometheus", "promtool"):
        if shutil.which(program) is None:
            print(f"make dashboards-test: {program} is missing (Debian: apt-get install prometheus)", file=sys.stderr)
            return 1
    subprocess.run(["promtool", "check", "rules", ALERTS], check=True)
    subprocess.run(["promtool", "test", "rules", ALERTS.with_name("alerts_test.yml")], check=True)
    with tempfile.TemporaryDirectory(prefix="silkline-dashboards-") as folder, ExitStack() as stack:
        place = Path(folder)
        url = f"sqlite:///{place / 'silkline.db'}"
        database = open_database(url)
        stack.callback(database.close)
        api = Served(url, place / "api", "--port", "0", "--slots", "0")
        stack.callback(api.close)
        targets = [f"127.0.0.1:{api.ready().port}"]
        workers = [stack.enter_context(worker(url, place / f"worker-{number}")) for number in range(WORKERS)]
        targets += [address for address, _ in workers]
        prometheus = stack.enter_context(scraping(place / "prometheus", targets))
        sites = [stack.enter_context(SampleServer(respond=respond)) for respond in (answer, busy)]
        return watch(prometheus, database, [site.url for site in sites], [process for _, process in workers])


def busy(path: str, origin: str) -> SampleAnswer:
    """The sample site, but some of its pages ask to be fetched later."""
    return SampleAnswer(503, "text/html", b"later") if path.startswith("/birds/") else answer(path, origin)


@contextmanager
def worker(database_url: str, data: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A worker with a data directory of its own, as on a machine of its own."""
    port = free_port()
    settings = {**QUICK, "database_url": database_url, "data": data, "slots": 3, "max_retries": 2}
    variables = {f"SILKLINE_{name.upper()}": str(value) for name, value in settings.items()}
    process = started([sys.executable, "-m", "silkline", "worker", "--metrics-port", str(port)], variables, data)
    try:
        yield f"127.0.0.1:{port}", process
    finally:
        process.terminate()
        process.wait()


@contextmanager
def scraping(folder: Path, targets: list[str]) -> Iterator[str]:
    """The address of a Prometheus that scrapes these targets every second."""
    folder.mkdir()
    groups = (("silkline-api", targets[:1]), ("silkline-worker", targets[1:]))
    scrapes = [{"job_name": name, "static_configs": [{"targets": found}]} for name, found in groups]
    settings = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(ALERTS)],
        "scrape_configs": scrapes,
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(settings))
    address = f"127.0.0.1:{free_port()}"
    options = [f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
    process = started(["prometheus", *options, f"--web.listen-address={address}", "--log.level=warn"], {}, folder)
    try:
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait()


def started(command: list[str], variables: dict[str, str], folder: Path) -> "subprocess.Popen[bytes]":
    folder.mkdir(exist_ok=True)
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            command,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=lambda: LIBC.prctl(1, signal.SIGKILL),
        )


def watch(prometheus: str, database: Database, sites: list[str], workers: list["subprocess.Popen[bytes]"]) -> int:
    """Give the fleet work until each query has returned a number once; what is missing at the end is printed."""
    jobs.enqueue(database, NewJob("page", {"url": sites[0]}, paused=True))
    values: dict[tuple[str, str], float] = {}
    began, enough = time.time(), float((sys.argv[1:] or ["0"])[0])
    turn = 0
    while (passed := time.time() - began) < enough or (len(values) < len(set(queries())) and passed < PATIENCE):
        give_work(database, *sites, turn)
        turn += 1
        time.sleep(5)  # several scrapes
        for each in set(queries()) - values.keys():
            if (found := value_of(prometheus, each[1])) is not None:
                values[each] = found
    drawn = ROOT / "build" / "dashboards.html"
    drawn.parent.mkdir(exist_ok=True)
    drawn.write_text(drawing().page(prometheus, drawing().Span(began, time.time(), RANGE)))
    for panel, query in queries():
        print(f"{panel:70} {values.get((panel, query), 'NOTHING')}")
    missing = [each for each in queries() if each not in values]
    for panel, query in missing:
        print(f"nothing for {panel}: {query}", file=sys.stderr)
    firing = ask(prometheus, "/api/v1/rules")["groups"][0]["rules"]
    print("rules loaded:", {rule["name"]: rule["state"] for rule in firing})
    healthy = all(rule["health"] == "ok" for rule in firing)
    print(f"{len(queries()) - len(missing)} of {len(queries())} queries returned a number; drawn: {drawn}")
    return int(bool(missing) or not healthy or any(process.poll() is not None for process in workers))


def give_work(database: Database, site: str, busy_site: str, turn: int) -> None:
    """Crawls, pages, a page to render, a page from the cache, crashes, and a job that nobody takes."""
    private = [urllib.parse.urlsplit(site).netloc]
    crawl = {"url": site, "allow_private": private, "speed": "max", "fetchers": 2, "parsers": turn % 2}
    works = [
        NewJob("site", crawl),
        NewJob("site", {"url": busy_site, "allow_private": ["127.0.0.0/8"], "max_duration": 20, "speed": "max"}),
        NewJob("page", {"url": f"{site}about/keepers", "allow_private": private, "max_age": 600}),
        NewJob("diagnostic", {"do": "segfault"}, max_retries=1),
        NewJob("extension", {"url": site, "allow_private": private}),
    ]
    if turn % 2 == 0:
        works.append(NewJob("page", {"url": site, "allow_private": private, "render": "always"}))
    for work in works:
        jobs.enqueue(database, work)


def value_of(prometheus: str, query: str) -> float | None:
    """The first number of the answer; None: no data, or only NaN."""
    answer = ask(prometheus, "/api/v1/query", query=drawing().filled(query, RANGE))
    numbers = [float(series["value"][1]) for series in answer["result"]]
    return next((each for each in numbers if not math.isnan(each)), None)


def ask(prometheus: str, path: str, **parameters: str) -> Any:
    try:
        return drawing().ask(prometheus, path, **parameters)
    except URLError:  # it has not started yet
        return {"result": [], "groups": []}


if __name__ == "__main__":
    sys.exit(main())

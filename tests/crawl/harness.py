"""Drives a site job in processes of its own, against servers in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import psutil

from silkline.kinds import registry, specs
from silkline.model.database import Database
from silkline.model.job import Decision, Job, NewJob, Status, Wish
from silkline.model.ledger import Counts, Url
from silkline.store import jobs, results, urls
from silkline.store.backlinks import into, out_of
from silkline.store.opening import open_database
from tests.crawl.synthetic_web import Web

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}


class Crawl:
    """One job in a database of its own, and the process that works on it."""

    def __init__(self, directory: Path, tuning: dict[str, Any] | None = None, url: str = "") -> None:
        self.url = url or f"sqlite:///{directory / 'crawl.db'}"
        self.database: Database = open_database(self.url)
        self.tuning = tuning or {}
        self.names: dict[str, list[list[str]]] = {}
        self.job: Job
        self.grown = 0
        self.command = [sys.executable, str(HERE / "run_site.py")]
        self.process: subprocess.Popen[str]

    def enqueue(self, **payload: Any) -> None:
        payload = {"speed": "max", "allow_private": ["127.0.0.0/8"], "content": "none", **payload}
        specs.check_payload(registry.kind_named("site"), payload)
        self.job, _ = jobs.enqueue(self.database, NewJob("site", payload))

    def start(self, **changes: Any) -> None:
        """Start an attempt, with another spec in parts: process counts may change between runs."""
        if changes:
            job = jobs.get(self.database, self.job.id)
            with self.database.transaction() as transaction:
                transaction.script(
                    f"UPDATE crawl_jobs SET payload = '{json.dumps({**job.payload, **changes})}' WHERE id = '{job.id}'"
                )
        self.process = subprocess.Popen(
            [
                *self.command,
                self.url,
                self.job.id,
                *map(json.dumps, (self.tuning, self.names)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
            start_new_session=True,
        )

    def finish(self, timeout: float = 120) -> str:
        """Wait for the end of the attempt; the word it ended with."""
        try:
            said, _ = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        assert self.process.returncode == 0, f"the attempt ended with {self.process.returncode}"
        word, grown = said.split()
        self.grown = int(grown)
        return word

    def run(self, timeout: float = 120, **payload: Any) -> str:
        self.enqueue(**payload)
        self.start()
        return self.finish(timeout)

    def order(self, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """The whole tree, at once."""
        with suppress(ProcessLookupError):  # it may have ended by itself
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def children(self, role: str) -> list[psutil.Process]:
        """The fetchers or parsers of the attempt, without the readers that they start."""
        try:
            found = psutil.Process(self.process.pid).children()
            return [child for child in found if role in child.cmdline()]
        except psutil.NoSuchProcess:
            return []

    def put_back(self) -> None:
        """What the watchdog does with a job whose attempt died; it may have died before it claimed the job."""
        job = jobs.get(self.database, self.job.id)
        if job.status is Status.QUEUED:
            return
        due = self.database.now() - timedelta(seconds=1)
        assert jobs.rescue(self.database, job, Decision(Status.QUEUED, Wish.RUN, due, 0, 0, "crashed", None))

    # What is in the database.

    @property
    def counts(self) -> Counts:
        return urls.counts(self.database, self.job.id)

    def results(self) -> list[results.Result]:
        return list(results.every(self.database, self.job.id))

    def ledger(self) -> dict[str, Url]:
        """Every row by its URL; a URL that stands there twice is an error."""
        rows: dict[str, Url] = {}
        after = 0
        while page := urls.page(self.database, self.job.id, after=after, wanted=5000):
            for row in page:
                assert row.url not in rows, f"{row.url} stands in the ledger twice"
                rows[row.url] = row
            after = page[-1].id
        return rows

    def assert_books_balance(self) -> None:
        """Counters, ledger and results say the same."""
        counts, tally = self.counts, urls.tally(self.database, self.job.id)
        assert counts.discovered == sum(tally.values())
        assert (counts.queued + counts.in_flight, counts.done) == (tally["queued"], tally["done"])
        assert (counts.failed, counts.skipped) == (tally["failed"], tally["skipped"])
        assert results.count(self.database, self.job.id) == counts.done

    def close(self) -> None:
        if hasattr(self, "process") and self.process.poll() is None:
            self.kill()
        self.database.close()


class Server:
    """A server process; its first line of output is its port. `inside`: a command that runs it in another network."""

    def __init__(self, script: str, *arguments: str, inside: Sequence[str] = ()) -> None:
        self.process = subprocess.Popen(
            [*inside, sys.executable, str(HERE / script), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def log(self) -> list[tuple[float, str, str]]:
        """Every request so far: time, host, path."""
        return [tuple(json.loads(line)) for line in self.ask("/__log").splitlines()]

    def ask(self, path: str) -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=60) as answer:
            found: bytes = answer.read()
        return found

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=60)
        assert self.process.stdout is not None
        self.process.stdout.close()


class SyntheticWeb(Server):
    """`control`: the path of a socket for a web that is in another network."""

    def __init__(
        self,
        hosts: int,
        pages: int,
        *,
        seed: int = 1,
        latency: float = 0.0,
        network: str = "127",
        inside: Sequence[str] = (),
        control: Path | None = None,
    ) -> None:
        self.web = Web(hosts, pages, seed, network)
        self._control = control
        numbers = map(str, (hosts, pages, seed, latency))
        super().__init__("synthetic_web.py", *numbers, network, str(control or ""), inside=inside)

    def ask(self, path: str) -> bytes:
        if self._control is None:
            return super().ask(path)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect(str(self._control))
            answer = HTTPResponse(connection)
            connection.sendall(f"GET {path} HTTP/1.1\r\n\r\n".encode())
            answer.begin()
            return answer.read()

    @property
    def start(self) -> str:
        return self.web.url(self.web.start, self.port)

    def slow_after(self, pages: int | None) -> None:
        """Take a second for each page beyond so many more, or (None) no longer."""
        self.ask(f"/__slow/{'never' if pages is None else pages}")

    def connections(self) -> int:
        """How many there have been, this one included."""
        return int(self.ask("/__connections"))

    def reachable(self) -> set[str]:
        return {self.web.url(place, self.port) for place in self.web.reachable()}


def assert_links_are_those_of(web: SyntheticWeb, crawl: Crawl) -> None:
    """Who links to each page, and where each page links, is the graph of the web: every link once, none missing."""
    ledger = crawl.ledger()
    targets = {
        web.web.url(place, web.port): {web.web.url(target, web.port) for target in links}
        for place, links in web.web.links.items()
    }
    out = {url: [each.url for each in out_of(crawl.database, row).urls] for url, row in ledger.items()}
    assert {url: sorted(several) for url, several in out.items()} == {url: sorted(targets[url]) for url in ledger}
    links_in = into(crawl.database, crawl.job.id, list(ledger.values()), most=1_000)
    for url, row in ledger.items():
        sources = sorted(source.url for source in links_in[row.id].sources)
        assert sources == sorted(page for page in ledger if url in targets[page])
        assert links_in[row.id].count == len(sources)


@contextmanager
def closing(thing: Any) -> Iterator[Any]:
    try:
        yield thing
    finally:
        thing.close()

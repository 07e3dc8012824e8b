"""`kill -9` of any process of a crawl, the command itself included, and after each `resume last` with other sizes.

Whatever is killed and whatever the sizes are, every page is stored once. The short form runs in CI, the long one with
SILKLINE_CHAOS=long.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from silkline.model.database import Database
from silkline.model.job import Status
from silkline.store import jobs, results, urls
from silkline.store.opening import open_database
from tests.acceptance.conftest import Silkline
from tests.crawl.harness import SyntheticWeb
from tests.support.effort import LONG
from tests.support.supervisors import eventually

HOSTS, PAGES, KILLS = (60, 100, 40) if LONG else (12, 15, 5)
SIZES = [(1, 0), (2, 1), (3, 0), (1, 2), (4, 1), (2, 0), (1, 1), (3, 2)]
OPTIONS = ("--scope", "any", "--speed", "max", "--allow-private", "127.0.0.0/8", "--content", "none")


@pytest.fixture
def silkline(tmp_path: Path, database_url: str) -> Iterator[Silkline]:
    command = Silkline(tmp_path, tmp_path / "byte-code", database_url)
    yield command
    command.end()


class KilledCrawl:
    """One job, the command that runs it now, and what was killed of it."""

    def __init__(self, silkline: Silkline, database: Database, web: SyntheticWeb) -> None:
        self._silkline = silkline
        self._database = database
        self._web = web
        self._chance = random.Random(os.environ.get("SILKLINE_SEED", "silk"))
        self._sizes = 0
        self.kills: Counter[str] = Counter()
        self.commands = 0
        self.command: subprocess.Popen[bytes]
        self.id = ""

    def start(self) -> None:
        self._web.slow_after(self._step)
        self.command = self._run("crawl", self._web.start, *OPTIONS, "--fetchers", "2", "--concurrency", "8")
        eventually("there is a job", lambda: jobs.page(self._database))
        self.id = jobs.find(self._database, "last").id

    def resume(self) -> None:
        """With other sizes than before."""
        fetchers, parsers = SIZES[self._sizes % len(SIZES)]
        self._sizes += 1
        self.command = self._run("resume", "last", "--fetchers", str(fetchers), "--parsers", str(parsers))

    @property
    def _step(self) -> int:
        return max(4, HOSTS * PAGES // (KILLS + 4))

    @property
    def done(self) -> int:
        return urls.counts(self._database, self.id).done

    def strike(self) -> None:
        """Wait until pages were stored, kill one process, and leave no command behind."""
        self._web.slow_after(self._step)  # it must not be over before we strike
        before, goal = self.done, self._chance.randrange(1, self._step)
        eventually(f"pages are stored\n{self.command}", lambda: self.done >= before + goal or self._over())
        assert not self._over(), self.command.communicate()
        victim, role = self._choose()
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        self.kills[role] += 1
        if role != "command":
            self.command.send_signal(signal.SIGINT)  # the command lives: it pauses the job, or waits to start it again
        self.command.communicate(timeout=120)
        assert self.command.returncode in ((-signal.SIGKILL,) if role == "command" else (3,)), role

    def finish(self) -> None:
        self._web.slow_after(None)
        _, said = self.command.communicate(timeout=600)
        assert self.command.returncode == 0, said.decode()

    def _choose(self) -> tuple[int, str]:
        tree: dict[str, list[int]] = {"command": [self.command.pid]}
        runner = jobs.get(self._database, self.id).pid
        for process in psutil.Process(self.command.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                words = process.cmdline()
                role = next((role for role in ("fetcher", "parser") if role in words), None)
                tree.setdefault(role or ("runner" if process.pid == runner else "fork server"), []).append(process.pid)
        role = self._chance.choice(sorted(tree))
        return self._chance.choice(tree[role]), role

    def _over(self) -> bool:
        return self.command.poll() is not None

    def _run(self, *arguments: str) -> Any:
        self.commands += 1
        return self._silkline.start(*arguments)


@pytest.mark.timeout(3_000 if LONG else 300)
def test_every_page_is_stored_once_whatever_is_killed(silkline: Silkline, database_url: str, figure: list[str]) -> None:
    with (
        closing(SyntheticWeb(hosts=HOSTS, pages=PAGES, latency=0.005)) as web,
        closing(open_database(database_url)) as database,
    ):
        crawl = KilledCrawl(silkline, database, web)
        crawl.start()
        for _ in range(KILLS):
            crawl.strike()
            crawl.resume()
        crawl.finish()
        job = jobs.get(database, crawl.id)
        assert job.status is Status.COMPLETED
        stored = Counter(result.final_url for result in results.every(database, job.id))
        assert set(stored) == web.reachable()
        assert set(stored.values()) == {1}
        counts, tally = urls.counts(database, job.id), urls.tally(database, job.id)
        assert (counts.done, counts.discovered) == (tally["done"], sum(tally.values())) == (len(stored), len(stored))
        fetched = sum(path.startswith("/page/") for _, _, path in web.log())
    kills = ", ".join(f"{number} {role}" for role, number in sorted(crawl.kills.items()))
    figure.append(
        f"{len(stored):,} pages, each once; {sum(crawl.kills.values())} kills ({kills}), {crawl.commands} commands, "
        f"{job.attempt} attempts, {fetched - len(stored)} pages fetched again"
    )

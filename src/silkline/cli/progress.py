"""One line on stderr tells how a job gets on: drawn over itself on a terminal, a new one now and then elsewhere."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from typing import Any

from silkline.cli.terminal import duration_of, safe, size
from silkline.errors import StoreError
from silkline.model.job import Job
from silkline.model.wait import LEVEL, TURN, Wait, waits_in, why
from silkline.store import urls
from silkline.store.database import Database
from silkline.store.urls import Counts

ON_TERMINAL, ELSEWHERE = 1.0, 30.0


class Ticker:
    """Draws the line on a thread of its own, from what the last checkpoint stored."""

    def __init__(self, database: Database, job: Job, *, quiet: bool) -> None:
        self._database = database
        self._job = job
        self._terminal = sys.stderr.isatty()
        self._stop = threading.Event()
        self._thread = None if quiet else threading.Thread(target=self._run, name="progress", daemon=True)

    def __enter__(self) -> Ticker:
        if self._thread:
            self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()
            if self._terminal:
                sys.stderr.write("\r\x1b[2K")

    def _run(self) -> None:
        every = ON_TERMINAL if self._terminal else ELSEWHERE
        while not self._stop.wait(every):
            try:
                line = progress_line(urls.counts(self._database, self._job.id), self._job.payload.get("limit"))
            except StoreError:
                continue  # the next one will do
            if self._terminal:
                room = shutil.get_terminal_size().columns - 1
                sys.stderr.write(f"\r\x1b[2K{line[:room]}")
            else:
                sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")
            sys.stderr.flush()


def progress_line(counts: Counts, limit: int | None) -> str:
    """Such as `120/500 pages · 41/s · 380 queued · 2 failed · 3.1 MB · 9s left · waits for example.com: …`."""
    pages = counts.done + counts.unchanged
    rate = float(counts.live.get("rate") or 0)
    parts = [
        f"{pages:,}/{limit:,} pages" if limit else f"{pages:,} pages",
        f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s",
        f"{counts.queued + counts.in_flight:,} queued",
        f"{counts.failed:,} failed" if counts.failed else "",
        size(counts.bytes),
        _left(counts, limit, pages, rate),
        _waiting_for(waits_in(counts.live)),
    ]
    return " · ".join(part for part in parts if part)


def _left(counts: Counts, limit: int | None, pages: int, rate: float) -> str:
    to_do = counts.queued + counts.in_flight
    if limit:
        to_do = min(to_do, limit - pages) if to_do else 0
    return f"{duration_of(to_do / rate)} left" if rate and to_do > 0 else ""


def _waiting_for(waits: list[Wait]) -> str:
    """The host that holds the crawl up most, and why; nothing while it is only the crawl's own turn-taking."""
    telling = [wait for wait in waits if wait.reason not in (TURN, LEVEL)]
    return f"waits for {safe(telling[0].host)}: {safe(why(telling[0]))}" if telling else ""

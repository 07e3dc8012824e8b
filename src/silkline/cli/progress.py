"""The progress line of a job on stderr: redrawn in place on a terminal, a new line every 30 seconds elsewhere."""

from __future__ import annotations

import logging
import shutil
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from silkline.cli.terminal import duration_of, safe, size, wrapped
from silkline.errors import StoreError
from silkline.model.database import Database
from silkline.model.host_wait import (
    ADDRESS,
    BUSY,
    CRAWL_DELAY,
    DELAY,
    LEVEL,
    SLOW_ANSWERS,
    TURN,
    Wait,
    waits_in,
    why,
)
from silkline.model.job import Job
from silkline.model.ledger import Counts
from silkline.store import urls

ON_TERMINAL, ELSEWHERE = 1.0, 30.0
FASTER = {"polite": "normal", "normal": "fast", "fast": "max"}


class Ticker:
    """Draws the line in its own thread, from the counts of the last checkpoint."""

    def __init__(self, database: Database, job: Job, *, quiet: bool) -> None:
        self._database = database
        self._job = job
        self._terminal = sys.stderr.isatty()
        self._rows = 0
        self._drawing = threading.Lock()
        self._stop = threading.Event()
        self._thread = None if quiet else threading.Thread(target=self._run, name="progress", daemon=True)

    def __enter__(self) -> Ticker:
        if self._thread:
            for handler in logging.getLogger().handlers:
                handler.addFilter(self._begin_lines)
            self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()
            for handler in logging.getLogger().handlers:
                handler.removeFilter(self._begin_lines)
            self._clear()

    def _run(self) -> None:
        every = ON_TERMINAL if self._terminal else ELSEWHERE
        while not self._stop.wait(every):
            try:
                line = progress_line(urls.counts(self._database, self._job.id), self._job.payload)
            except StoreError:
                continue  # try again at the next interval
            with self._drawing:
                if self._terminal:
                    self._draw(line)
                else:
                    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")
                    sys.stderr.flush()

    def _draw(self, line: str) -> None:
        """Draw over the previous line. A long line takes several rows and is never cut."""
        self._erase()
        rows = wrapped(line, shutil.get_terminal_size().columns - 1)
        sys.stderr.write("\n".join(rows))
        sys.stderr.flush()
        self._rows = len(rows)

    def _erase(self) -> None:
        if self._rows:
            up = f"\x1b[{self._rows - 1}A" if self._rows > 1 else ""
            sys.stderr.write(f"\r{up}\x1b[J")
        self._rows = 0

    def _clear(self) -> None:
        """Erase the line, so that the next output starts at the beginning of a row."""
        with self._drawing:
            self._erase()
            sys.stderr.flush()

    def _begin_lines(self, record: logging.LogRecord) -> bool:
        """Erase the progress line before each log line."""
        self._clear()
        return True


def progress_line(counts: Counts, payload: Mapping[str, Any]) -> str:
    """For example `120/500 pages · 41/s · 380 queued · 2 failed · 3.1 MB · 9s left · waits for example.com: …`."""
    limit = payload.get("limit")
    pages = counts.done + counts.unchanged
    rate = float(counts.live.get("rate") or 0)
    parts = [
        f"{pages:,}/{limit:,} pages" if limit else f"{pages:,} pages",
        f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s",
        f"{counts.queued + counts.in_flight:,} queued",
        f"{counts.failed:,} failed" if counts.failed else "",
        size(counts.bytes),
        _left(counts, limit, pages, rate),
        _waiting_for(waits_in(counts.live), payload),
    ]
    return " · ".join(part for part in parts if part)


def _left(counts: Counts, limit: int | None, pages: int, rate: float) -> str:
    to_do = counts.queued + counts.in_flight
    if limit:
        to_do = min(to_do, limit - pages) if to_do else 0
    return f"{duration_of(to_do / rate)} left" if rate and to_do > 0 else ""


def _waiting_for(waits: list[Wait], payload: Mapping[str, Any]) -> str:
    """The host that delays the crawl most, why, and what helps; empty if the crawl only waits between requests."""
    telling = [wait for wait in waits if wait.reason not in (TURN, LEVEL)]
    if not telling:
        return ""
    help = remedy(telling[0], payload)
    return f"waits for {safe(telling[0].host)}: {safe(why(telling[0]))}" + (f" ({help})" if help else "")


def remedy(wait: Wait, payload: Mapping[str, Any]) -> str:
    """The option that makes this wait shorter, if there is one. None is named while the server answers with errors."""
    if wait.reason == DELAY and payload.get("delay") is not None:
        return "use a smaller --delay to send requests more often"
    if wait.reason == CRAWL_DELAY:
        return "use --ignore-robots to ignore it on your own site"
    faster = FASTER.get(str(payload.get("speed") or "normal"), "")
    if wait.reason in (DELAY, SLOW_ANSWERS, ADDRESS, BUSY) and faster:
        return f"use --speed {faster} to send requests more often"
    return ""

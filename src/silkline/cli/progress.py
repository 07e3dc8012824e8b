"""One line on stderr tells how a job gets on: drawn over itself on a terminal, a new one now and then elsewhere."""

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
from silkline.model.job import Job
from silkline.model.ledger import Counts
from silkline.model.wait import (
    ADDRESS,
    BUSY,
    CRAWL_DELAY,
    DELAY,
    ERRORS,
    LEVEL,
    SLOW_ANSWERS,
    TURN,
    Wait,
    waits_in,
    why,
)
from silkline.store import urls
from silkline.store.database import Database

ON_TERMINAL, ELSEWHERE = 1.0, 30.0
FASTER = {"polite": "normal", "normal": "fast", "fast": "max"}


class Ticker:
    """Draws the line on a thread of its own, from what the last checkpoint stored."""

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
                continue  # the next one will do
            with self._drawing:
                if self._terminal:
                    self._draw(line)
                else:
                    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")
                    sys.stderr.flush()

    def _draw(self, line: str) -> None:
        """Over what was drawn before; a long line takes several rows and is never cut."""
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
        """Nothing of the line is left; what is written next begins a line of its own."""
        with self._drawing:
            self._erase()
            sys.stderr.flush()

    def _begin_lines(self, record: logging.LogRecord) -> bool:
        """A log line must not be glued to the line of progress."""
        self._clear()
        return True


def progress_line(counts: Counts, payload: Mapping[str, Any]) -> str:
    """Such as `120/500 pages · 41/s · 380 queued · 2 failed · 3.1 MB · 9s left · waits for example.com: …`."""
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
    """The host that holds the crawl up most, why, and what helps; nothing while the crawl only takes turns."""
    telling = [wait for wait in waits if wait.reason not in (TURN, LEVEL)]
    if not telling:
        return ""
    help = remedy(telling[0], payload)
    return f"waits for {safe(telling[0].host)}: {safe(why(telling[0]))}" + (f" ({help})" if help else "")


def remedy(wait: Wait, payload: Mapping[str, Any]) -> str:
    """The option that makes this wait shorter, where there is one."""
    if wait.reason == DELAY and payload.get("delay") is not None:
        return "a smaller --delay asks more often"
    if wait.reason == CRAWL_DELAY:
        return "--ignore-robots does without, on a site of your own"
    faster = FASTER.get(str(payload.get("speed") or "normal"), "")
    if wait.reason in (DELAY, SLOW_ANSWERS, ADDRESS, BUSY, ERRORS) and faster:
        return f"--speed {faster} asks more often"
    return ""

"""Counts the statements of the database, and their time, for metrics."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from silkline.metrics.instruments import DATABASE_SECONDS, DATABASE_STATEMENTS


@contextmanager
def timed(name: str) -> Iterator[None]:
    """Count one statement, also if it fails."""
    began = time.perf_counter()
    try:
        yield
    finally:
        DATABASE_SECONDS.add(time.perf_counter() - began, name)
        DATABASE_STATEMENTS.add(1, name)

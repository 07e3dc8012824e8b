"""The log format of Silkline's programs: one line for each event, on stderr, easy to read for an operator."""

from __future__ import annotations

import logging
import sys
import time


class _Lines(logging.Formatter):
    """Control characters from crawled data must not reach a terminal."""

    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        return "".join(
            char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}"
            for char in super().format(record)
        )


def level_named(name: str) -> int:
    """The level for a name in the settings: debug, info, warning or error."""
    return logging.getLevelNamesMapping()[name.upper()]


def set_up(level: int = logging.INFO) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines("%(asctime)sZ %(levelname)-7s %(name)s: %(message)s", datefmt="%Y-%m-%dT%H:%M:%S"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)

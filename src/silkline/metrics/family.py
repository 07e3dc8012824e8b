"""What one family of metrics is: its name, type, labels and meaning. It holds no values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Type(StrEnum):
    """The types of Prometheus that we use."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Source(StrEnum):
    """Where the values of a family come from when it is read."""

    PROCESSES = "the meters of this machine's processes, alive and dead"
    CHECKPOINTS = "what the processes of this machine committed with their checkpoints; exact after any crash"
    DATABASE = "the database; the same on every machine"
    MACHINE = "this machine, when it is read"


FAST: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Seconds of work on a processor."""
NETWORK: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Seconds of a request."""
QUEUE: Final = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 21600.0)
"""Seconds of waiting in a queue."""


@dataclass(frozen=True)
class Family:
    """`labels` has each label with its possible values, in words. `name` is as Prometheus shows it."""

    name: str
    type: Type
    source: Source
    help: str
    labels: tuple[tuple[str, str], ...] = ()
    always: tuple[tuple[str, ...], ...] = ()
    """Labels that are shown from the start, with 0: a rate needs a value before the first event."""
    buckets: tuple[float, ...] = ()

    @property
    def label_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.labels)

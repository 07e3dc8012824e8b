"""The interface between the runner and the code of a kind:

    def run(context: Context[MySpec]) -> End | None:
        for step in work_to_do(context.spec):
            if context.control.order:            # pause, stop, cancel, or the supervisor shuts down
                return context.control.order     # recorded results are kept
            context.progress.record(Checkpoint(…))
            context.log.info("did %s", step)
        return None                              # completed

    run.spec = MySpec

To end with a failure raise `errors.Temporary` (the job is tried again later) or `errors.Permanent` (it is not). Any
other exception is a crash. runner/context.py implements these protocols.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from silkline.model.database import Database
from silkline.model.job import End, Job
from silkline.model.ledger import Checkpoint, Counts

SpecT_co = TypeVar("SpecT_co", covariant=True)


@dataclass(frozen=True, kw_only=True)
class KindSettings:
    """The settings that the code of a kind may use. The runner passes them; the code reads no settings itself.

    They contain no secrets of the service, such as the database URL and the API token.
    """

    data: str
    """The data directory, as an absolute path."""
    renderer_url: str = ""
    bluesky_url: str = ""
    youtube_url: str = ""
    fetchers: int = 0
    parsers: int = 0
    max_concurrent_http: int = 300
    max_concurrent_chrome: int = 2
    contact: str = ""
    read_seconds: float = 8.0
    read_memory: int = 1 << 30
    cpus: float = 0.0


class Control(Protocol):
    """The orders of the supervisor for this attempt."""

    @property
    def order(self) -> End | None:
        """How the attempt must end now (PAUSED, STOPPED, CANCELLED or RELEASED); None: continue."""
        ...

    def wait(self, seconds: float) -> End | None:
        """Sleep until the time is over or an order arrives."""
        ...

    def subscribe(self, callback: Callable[[End], None]) -> None:
        """Call `callback`, from another thread, when an order arrives (at once if there is one already)."""
        ...

    def subscribe_to_links(self, callback: Callable[[], None]) -> None:
        """Call `callback`, from another thread, whenever links of other shards may wait in the database."""
        ...


class Progress(Protocol):
    """Stores the work of an attempt. The functions of `store` read the ledger and the results of a `database`."""

    @property
    def job(self) -> Job: ...

    @property
    def database(self) -> Database: ...

    def record(self, checkpoint: Checkpoint) -> Counts:
        """Store a checkpoint in one transaction that checks the lease. After `LeaseLost`, end."""
        ...

    def report(self) -> None:
        """Tell the supervisor that the attempt makes progress. `record` does that too."""
        ...


@dataclass(frozen=True, slots=True)
class Context(Generic[SpecT_co]):
    """What the code of a kind gets: five attributes, and `marks` for kinds that parse pages.

    `marks` is the path of the file that records what is being parsed (reading_marks.py). Without it no supervisor
    watches the attempt, and everything is parsed in a separate process.
    """

    spec: SpecT_co
    control: Control
    progress: Progress
    log: logging.Logger
    settings: KindSettings
    marks: str = ""

"""What a kind's code is given, and what it gives back. The whole interface:

    def run(context: Context) -> End | None:
        for step in work_to_do(context.spec):
            if context.control.order:            # pause, stop, cancel, or the supervisor is going away
                return context.control.order     # what was recorded so far is kept
            context.progress.record(Checkpoint(…))
            context.log.info("did %s", step)
        return None                              # completed

    run.spec = MySpec

To end otherwise raise `errors.Temporary` (tried again later) or `errors.Permanent` (never again); any other exception
is a crash. The runner in runner/context.py fulfils these protocols.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from silkline.model.job import End, Job
from silkline.model.ledger import Checkpoint, Counts


@dataclass(frozen=True, kw_only=True)
class KindSettings:
    """The settings that a kind's code may know. They come with the job; the code reads no settings itself.

    Secrets of the service, such as the database URL and the API token, are not among them.
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


class Control(Protocol):
    """What the supervisor wants of this attempt."""

    @property
    def order(self) -> End | None:
        """How the attempt should end now (PAUSED, STOPPED, CANCELLED or RELEASED), or None: go on."""
        ...

    def wait(self, seconds: float) -> End | None:
        """Sleep, but wake at once for an order."""
        ...

    def subscribe(self, callback: Callable[[End], None]) -> None:
        """Call back, from another thread, when an order comes (at once if it is there already)."""
        ...


class Progress(Protocol):
    """Where an attempt's work becomes durable and visible. `database` is a `store.database.Database`."""

    job: Job
    database: Any

    def record(self, checkpoint: Checkpoint) -> Counts:
        """Store a checkpoint in one transaction, fenced by the lease. `LeaseLost`: give up."""
        ...

    def report(self, **live: Any) -> None:
        """Show something now, such as a rate or what is in flight; and a sign that the attempt is not stuck."""
        ...


@dataclass(frozen=True, slots=True)
class Context:
    """The five things a kind's code gets, and one more for those that read pages.

    `marks` is the path of the file in which they mark what they read (reading_marks.py). Without one there is no
    supervisor that watches them, and they read everything in a process of its own.
    """

    spec: Any
    control: Control
    progress: Progress
    log: logging.Logger
    settings: KindSettings
    marks: str = ""


Run = Callable[[Context], End | None]

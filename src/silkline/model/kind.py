"""What the code of a kind gets, and what it returns. The whole interface:

    def run(context: Context) -> End | None:
        spec = context.spec_as(MySpec)
        for step in work_to_do(spec):
            if context.control.order:            # pause, stop, cancel, or the supervisor is going away
                return context.control.order     # what was recorded so far is kept
            context.progress.record(Checkpoint(…))
            context.log.info("did %s", step)
        return None                              # completed

To end otherwise, raise `errors.Temporary` (the job is tried again later) or `errors.Permanent` (it is not). Any other
exception is a crash. runner/context.py implements these protocols. kinds/registry.py knows which spec belongs to which
kind.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from silkline.model.checkpoint import Checkpoint, Counts
from silkline.model.database import Database
from silkline.model.job import End, Job
from silkline.model.kind_settings import KindSettings as KindSettings
from silkline.model.spec import Spec

SomeSpec = TypeVar("SomeSpec", bound=Spec)


class Control(Protocol):
    """The orders of the supervisor for this attempt."""

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
    """Stores the work of an attempt."""

    job: Job
    database: Database

    def record(self, checkpoint: Checkpoint) -> Counts:
        """Store a checkpoint in one transaction, fenced by the lease. After `LeaseLost` the attempt must end."""
        ...

    def report(self) -> None:
        """Show that the attempt is not stuck. `record` does that too."""
        ...


@dataclass(frozen=True, slots=True)
class Context:
    """The five things that the code of a kind gets, and a sixth one for kinds that read pages.

    `marks` is the path of the file in which they mark what they read (reading_marks.py). Without a path no supervisor
    watches the attempt, so it reads everything in a separate process.
    """

    spec: Spec
    control: Control
    progress: Progress
    log: logging.Logger
    settings: KindSettings
    marks: str = ""

    def spec_as(self, expected: type[SomeSpec]) -> SomeSpec:
        """The spec with its own type."""
        if not isinstance(self.spec, expected):
            raise TypeError(f"the spec is a {type(self.spec).__name__}, not a {expected.__name__}")
        return self.spec


Run = Callable[[Context], End | None]

"""One attempt in the process of the caller, for `silkline fetch`. It is claimed, renewed and finished like any other.

No supervisor limits or kills this process, so the job reads input from the web in a separate process with limits. If
this process dies, the watchdog of any supervisor puts the job back into the queue. Like a supervisor, this process
holds a lock file while it runs, so that other processes of this machine notice its death at once.
"""

from __future__ import annotations

import logging
import random
import socket
import threading
from dataclasses import replace
from datetime import timedelta

from silkline.config import Settings
from silkline.errors import LeaseLost, Permanent, SpecError, Temporary, Unavailable, UrlsLeft
from silkline.kinds import registry, specs
from silkline.log import hide, in_every_line
from silkline.metrics.instruments import tell_cpu
from silkline.model.database import Database
from silkline.model.job import AttemptEnd, Backoff, End, Job, NewJob, Verb, Wish, decide
from silkline.model.kind import Context
from silkline.model.ledger import Checkpoint, Counts
from silkline.model.redaction import secrets_of
from silkline.runner.cpu_affinity import limited_here, wanted_cpus
from silkline.runner.orders import Orders
from silkline.store import jobs, urls
from silkline.store.identity import Identity, new_worker_id

# No other process may claim the job before this one.
_OURS_FIRST = timedelta(hours=1)
ENOUGH = "over_limit"  # the reason of URLs that were not fetched because the watcher had enough
_ENDS = {Wish.PAUSE: End.PAUSED, Wish.STOP: End.STOPPED, Wish.CANCEL: End.CANCELLED}


class WatchedControl(Orders):
    """Renews the lease in its own thread, and reads the wishes for the job at the same time."""

    def __init__(self, database: Database, job: Job, interval: float) -> None:
        super().__init__()
        self._database = database
        self._job = job
        self._interval = interval
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="lease", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(self._interval):
            try:
                wish = jobs.renew(self._database, self._job.id, self._job.run_lease, self._job.worker_id or "")
            except Unavailable:
                continue
            except LeaseLost:
                self.give(End.CANCELLED)
                return
            if wish in _ENDS:
                self.give(_ENDS[wish])


class Watcher:
    """Is called while a job runs. This class does nothing; subclasses override its methods."""

    def begin(self, orders: Orders) -> None:
        """The job starts. `orders` can end it; the order `End.COMPLETED` means that enough was found."""

    def recorded(self, checkpoint: Checkpoint) -> None:
        """A checkpoint was stored. The thread that stored it makes this call."""

    def end(self) -> None:
        """The job has ended."""


class DirectProgress:
    """Stores checkpoints directly in the database."""

    def __init__(self, database: Database, job: Job, watcher: Watcher) -> None:
        self.database = database
        self.job = job
        self._watcher = watcher
        self._checkpoints = urls.counts(database, job.id).checkpoints

    def record(self, checkpoint: Checkpoint) -> Counts:
        counts = urls.record(self.database, self.job, checkpoint, self._checkpoints)
        self._checkpoints = counts.checkpoints
        tell_cpu()
        self._watcher.recorded(checkpoint)
        return counts

    def report(self) -> None:
        """Nothing to do: no supervisor waits for a sign of life."""


def run_here(
    database: Database, settings: Settings, new: NewJob, log: logging.Logger, watcher: Watcher | None = None
) -> Job:
    """Store a job, run it in this process, and store how it ended. Returns the ended job. Ctrl-C cancels the job."""
    queued, _ = jobs.enqueue(database, replace(new, run_at=database.now() + _OURS_FIRST))
    return run_queued(database, settings, queued.id, log, watcher)


def run_queued(
    database: Database, settings: Settings, id: str, log: logging.Logger, watcher: Watcher | None = None
) -> Job:
    """The same for a job that is already queued."""
    try:
        identity = Identity(settings.data)
    except OSError:  # with a remote database this directory need not be writable
        return _run_as(new_worker_id(), database, settings, id, log, watcher or Watcher())
    in_order = False
    try:
        job = _run_as(identity.id, database, settings, id, log, watcher or Watcher())
        in_order = True
        return job
    finally:
        identity.close(in_order=in_order)


def _run_as(
    worker_id: str, database: Database, settings: Settings, id: str, log: logging.Logger, watcher: Watcher
) -> Job:
    registry.refuse_external(jobs.outline(database, id).kind)
    job = jobs.claim_one(database, worker_id, socket.gethostname(), id)
    hide(secrets_of(job.payload))
    in_every_line(worker=worker_id, **job.log_fields)
    control = WatchedControl(database, job, min(settings.heartbeat_interval, 1.0))
    watcher.begin(control)
    try:
        progress = DirectProgress(database, job, watcher)
        with limited_here(wanted_cpus(job.payload, settings.cpus)):
            ended = _attempt(progress, control, settings, log)
        if ended.end is End.COMPLETED and control.order is End.COMPLETED:
            urls.skip_queued(database, job, ENOUGH)
    except KeyboardInterrupt:
        jobs.wish(database, job.id, Verb.CANCEL)
        _finish(database, settings, job, AttemptEnd(End.CANCELLED))
        raise
    except LeaseLost:
        raise
    except Exception as error:
        _finish(database, settings, job, AttemptEnd(End.PERMANENT, f"crashed ({type(error).__name__})", str(error)))
        raise
    finally:
        control.close()
    try:
        _finish(database, settings, job, ended)
    except UrlsLeft as error:
        _finish(database, settings, job, AttemptEnd(End.PERMANENT, "urls left", str(error)))
    watcher.end()
    return jobs.get(database, job.id)


def _attempt(progress: DirectProgress, control: WatchedControl, settings: Settings, log: logging.Logger) -> AttemptEnd:
    kind = registry.kind_named(progress.job.kind, test_kinds=settings.test_kinds)
    try:
        spec = specs.check_payload(kind, progress.job.payload)
        end = registry.load(kind)(Context(spec, control, progress, log, settings.for_kinds()))
    except (Permanent, SpecError) as error:
        return AttemptEnd(End.PERMANENT, getattr(error, "reason", "") or str(error)[:200], str(error))
    except Temporary as error:
        # No supervisor tries again later, so the person gets the error now.
        return AttemptEnd(End.PERMANENT, str(error)[:200], str(error))
    return AttemptEnd(end or End.COMPLETED)


def _finish(database: Database, settings: Settings, job: Job, ended: AttemptEnd) -> None:
    backoff = Backoff(settings.backoff_base, settings.backoff_cap)
    jobs.finish(
        database,
        job,
        lambda seen: decide(seen, ended, backoff=backoff, now=database.now(), jitter=random.random()),  # noqa: S311
    )

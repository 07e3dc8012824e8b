"""The main loop that `Supervisor` and `ForegroundRun` share: it claims jobs, runs their attempts and stores their ends.

Each turn of the loop handles signals, waits for children, stores how they ended, passes on wishes and fills free slots.
Work that must continue while the loop waits for the database has its own thread: heartbeat, limits, output, log lines,
housekeeping.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import silkline
from silkline import log as program_log
from silkline.config import Settings
from silkline.confine.environment import hide
from silkline.errors import DatabaseRemoved, StoreError, UsageError
from silkline.metrics.instruments import CLAIM_SECONDS, tell_cpu
from silkline.metrics.process import attach
from silkline.model.database import Database
from silkline.model.job import Backoff, Job
from silkline.private_files import repair_folder
from silkline.runner.metrics_text import MetricsText
from silkline.runner.readiness import why_not_ready
from silkline.service import process_table
from silkline.service.attempts import Attempts
from silkline.service.cgroup import Cgroups
from silkline.service.child_program import ChildProgram
from silkline.service.disk_watermark import DiskWatermark
from silkline.service.event_wait import EventWait
from silkline.service.heartbeat import Heartbeat
from silkline.service.housekeeping import Housekeeping
from silkline.service.launcher import Launcher
from silkline.service.limits import Limits
from silkline.service.metrics_server import MetricsListener, MetricsServer
from silkline.service.open_files import allow_open_files
from silkline.service.output import LogQueue, LogWriter, OutputThread
from silkline.service.runner_process import boot_clock
from silkline.service.shard_keeper import ShardKeeper
from silkline.service.usage_sampler import UsageSampler
from silkline.store import workers
from silkline.store.identity import Identity
from silkline.store.opening import open_database

IDLE_POLLS = 5  # an idle supervisor that gets database notifications polls this many times less often
OUTAGE_WAIT = 0.5
DRAIN_TICK = 0.1
BALANCE_HOLD = 5.0  # seconds in which a worker that released a shard claims nothing, so that another worker gets it

log = logging.getLogger("silkline.supervisor")


class ClaimPolicy(Protocol):
    """The decisions that differ between a service and the foreground run of one job."""

    @property
    def slots(self) -> int:
        """How many jobs may run at the same time."""
        ...

    @property
    def signals(self) -> Sequence[signal.Signals]:
        """The signals to catch."""
        ...

    def kinds(self) -> list[str]:
        """The kinds of job that this process takes from the queue, as the list of workers shows them."""
        ...

    def registered(self) -> None:
        """Called after this process was stored in the list of workers, also when that happened again."""
        ...

    def claim(self, loop: JobLoop, free: int) -> list[Job]:
        """Claim jobs for the free slots."""
        ...

    def handle_signal(self, loop: JobLoop, number: int) -> None: ...

    def database_removed(self, error: DatabaseRemoved) -> None:
        """Called again and again while the file of the database is missing. An exception ends the process."""
        ...


class JobLoop:
    """Owns the database connection, the children and the threads of one process that runs jobs.

    `child_program` is a program to keep alive. `signals_caught` is called when signals are caught: from then on a
    signal ends the process in good order.
    """

    database: Database
    identity: Identity

    def __init__(
        self,
        settings: Settings,
        policy: ClaimPolicy,
        *,
        child_program: ChildProgram | None = None,
        metrics: MetricsListener | None = None,
        signals_caught: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings = settings
        self._policy = policy
        self._child_program = child_program
        self._metrics_listener = metrics
        self._signals_caught = signals_caught
        self._draining_since: float | None = None
        self._hurried = False
        self._next_claim = 0.0
        self._next_wishes = 0.0
        self._hold_claims_until = 0.0
        self._complained_at = 0.0
        self._events = EventWait()

    def run(self) -> int:
        """Run until the process is told to end. Returns 0."""
        restore = self._events.catch_signals(self._policy.signals)
        try:
            self._signals_caught()
            self._open()
            try:
                while not self._done():
                    self._turn()
            finally:
                self._close()
        finally:
            restore()
            self._events.close()
        return 0

    @property
    def draining(self) -> bool:
        """Whether the process is ending: it claims nothing more."""
        return self._draining_since is not None

    @property
    def listening(self) -> bool:
        """Whether the database can notify this process."""
        return self._events.listening

    def claim_after(self, seconds: float) -> None:
        """Try the next claim after this time."""
        self._next_claim = time.monotonic() + seconds

    def read_wishes_now(self) -> None:
        self._next_wishes = 0.0

    def start_drain(self) -> None:
        """End in good order. The second call ends at once."""
        if self._draining_since is None:
            log.info("ending: %d running jobs save their checkpoints and go back to the queue", len(self._attempts))
            self._draining_since = time.monotonic()
            if self._child_program:
                self._child_program.end()
            self._attempts.release_all()
        else:
            log.warning("ending at once")
            self._hurried = True
            self._attempts.kill_all()

    def kill_all(self) -> None:
        """Kill every running attempt. Their checkpoints are kept."""
        self._attempts.kill_all()

    def _open(self) -> None:
        settings = self._settings
        hide((*settings.secrets(), os.environ.get("PGPASSWORD", "")))
        process_table.become_subreaper()
        allow_open_files(settings.open_files)
        self.database = open_database(settings.database)
        try:
            self.identity = Identity(settings.data)
            repair_folder(settings.data)
            attach(settings.data, "supervisor")
        except OSError as error:
            self.database.close()
            raise UsageError(f"the data directory {settings.data} cannot be used: {error}") from error
        program_log.in_every_line(worker=self.identity.id)
        self._register()
        self._disk = DiskWatermark(settings)
        self._lines = LogQueue()
        self._writer = LogWriter(self.database, self._lines)
        self._pump = OutputThread()
        self._cgroups = Cgroups(self.identity.id, wanted=settings.cgroups)
        self._launcher = Launcher(
            self.identity.id,
            dialect=self.database.dialect,
            nice=settings.nice,
            open_files=settings.open_files,
            data=settings.data,
            fork_server=settings.fork_server,
            environment=settings.runner_environment,
        )
        self._attempts = Attempts(
            self.database, settings, self._launcher, self._cgroups, self._pump, self._lines, self._child_program
        )
        self._heartbeat = Heartbeat(
            self.database,
            self.identity.id,
            interval=settings.heartbeat_interval,
            held=self._attempts.children,
            describe=self._describe,
            forgotten=self._register,
            usage=lambda: self._usage.latest,
        )
        self._usage = UsageSampler(
            self._attempts.children, interval=settings.heartbeat_interval, memory_limit=settings.memory_limit
        )
        self._limits = Limits(settings, self._attempts.children, lambda: self._heartbeat.renewed_at)
        self._housekeeping = Housekeeping(
            self.database, self.identity, settings, Backoff(settings.backoff_base, settings.backoff_cap)
        )
        self._metrics = self._metrics_server()
        self._shard_keeper = ShardKeeper(
            self.database,
            self.identity.id,
            interval=settings.wish_interval,
            balance=settings.balance_interval,
            stale_after=settings.stale_after,
        )
        self._housekeeping.settle_dead_neighbours()
        if self._child_program:
            self._child_program.start()
        self._launcher.warm_up()
        keeper = self._shard_keeper
        for part in (self._pump, self._writer, self._usage, self._heartbeat, self._limits, self._housekeeping, keeper):
            part.start()
        if self._metrics:
            self._metrics.start()
        log.info("supervisor %s: slots %d, %s", self.identity.id, self._policy.slots, self.database.dialect)

    def _close(self) -> None:
        self._attempts.kill_all()
        if self._child_program:
            self._child_program.stop()
        for part in (self._shard_keeper, self._housekeeping, self._limits, self._heartbeat, self._usage):
            part.stop()
        if self._metrics:
            self._metrics.stop()
        self._launcher.stop()
        self._attempts.reap()
        self._writer.stop()
        self._pump.stop()
        self._cgroups.close()
        self._events.stop_listening()
        self.identity.close(in_order=self._sign_off())
        self.database.close()

    def _metrics_server(self) -> MetricsServer | None:
        if self._metrics_listener is None:
            return None
        settings = self._settings
        metrics = MetricsText(
            self.database, settings.data, watermark=settings.disk_free_min, stale_after=settings.stale_after
        )
        return MetricsServer(self._metrics_listener, metrics.text, self._why_not_ready)

    def _why_not_ready(self) -> str | None:
        return "it is ending" if self.draining else why_not_ready(self.database)

    def _register(self) -> None:
        """Store this process in the list of workers: at the start, and when another process has removed it.

        The second case happens when the machine slept for days.
        """
        workers.register(
            self.database,
            id=self.identity.id,
            host=self.identity.host,
            pid=self.identity.pid,
            boot_id=self.identity.boot_id,
            slots=self._policy.slots,
            version=silkline.__version__,
            kinds=self._policy.kinds(),
        )
        self._policy.registered()

    def _sign_off(self) -> bool:
        """Remove this process from the list of workers. Returns whether no job is left to take back."""
        if len(self._attempts):
            return False
        try:
            workers.retire(self.database, self.identity.id)
        except StoreError as error:
            log.warning("this worker could not be removed from the list of workers: %s", error)
            return False
        return True

    def _describe(self) -> tuple[int, str]:
        if self.draining:
            return self._policy.slots, "draining"
        return self._policy.slots, workers.NO_SPACE if self._disk.closed else "running"

    def _done(self) -> bool:
        if not self.draining or self._attempts.alive:
            return False
        if len(self._attempts) and not (self._hurried or self._grace_is_over()):
            return False
        if len(self._attempts):
            log.error(
                "the ends of %d jobs could not be stored; the next supervisor takes them back", len(self._attempts)
            )
        return True

    def _turn(self) -> None:
        self._wait()
        tell_cpu()
        for number in self._events.signals():
            self._policy.handle_signal(self, number)
        self._attempts.reap()
        try:
            self._attempts.write_ends()
            self._pass_on_wishes()
            self._balance()
            self._fill_slots()
        except StoreError as error:
            if isinstance(error, DatabaseRemoved):
                self._policy.database_removed(error)
                self._hurried = self.draining  # what cannot be stored is not waited for
            self._warn_of_outage(error)
            self._events.stop_listening()
            self._next_claim = self._next_wishes = time.monotonic() + OUTAGE_WAIT
        if self._grace_is_over():
            self._attempts.kill_all()

    def _warn_of_outage(self, error: StoreError) -> None:
        """Log once for each outage. After that the heartbeat logs how long the outage lasts."""
        if self._complained_at < self._heartbeat.renewed_at:
            self._complained_at = boot_clock()
            log.warning("the database did not answer, trying again: %s", error)

    def _wait(self) -> None:
        now = time.monotonic()
        until = self._next_wishes if len(self._attempts) else now + self._settings.poll_interval * IDLE_POLLS
        if self._free_slots():
            until = min(until, max(self._next_claim, self._hold_claims_until))
        if self._child_program and (due := self._child_program.tend()) is not None:
            until = min(until, now + due)
        if self.draining:
            until = min(until, now + DRAIN_TICK)
        heard = set(self._events.wait(until - now))
        if "" in heard:
            self._next_claim = self._next_wishes = 0.0
        self._attempts.tell_of_links(heard - {""})

    def _free_slots(self) -> int:
        return 0 if self.draining else max(0, self._policy.slots - len(self._attempts))

    def _fill_slots(self) -> None:
        """Claim as many due jobs as there are free slots."""
        free = self._free_slots()
        if free < 1 or time.monotonic() < max(self._next_claim, self._hold_claims_until):
            return
        self.claim_after(self._settings.poll_interval)
        if self._heartbeat_is_late() or not self._disk.check():
            return
        self._attempts.release_unknown(self._heartbeat.unknown, self.identity.id)
        self._events.listen(self.database, self.identity.id, self._settings.poll_interval)
        claimed = self._policy.claim(self, free)
        for job in claimed:
            CLAIM_SECONDS.observe(max(0.0, (self.database.now() - job.run_at).total_seconds()))
            self._attempts.start(job)
        if claimed:
            self._next_claim = 0.0

    def _heartbeat_is_late(self) -> bool:
        """After an outage, the fence would kill a new job until the next heartbeat is stored."""
        return boot_clock() - self._heartbeat.renewed_at > self._settings.fence_after / 2

    def _pass_on_wishes(self) -> None:
        if len(self._attempts) and time.monotonic() >= self._next_wishes and not self.draining:
            self._next_wishes = time.monotonic() + self._settings.wish_interval
            self._attempts.pass_on_wishes(self.identity.id)

    def _balance(self) -> None:
        """Release a shard to a worker that has fewer, and leave it to that worker."""
        if self._shard_keeper.gives_one.is_set():
            self._shard_keeper.gives_one.clear()
            if not self.draining and self._attempts.release_one_shard():
                self._hold_claims_until = time.monotonic() + BALANCE_HOLD

    def _grace_is_over(self) -> bool:
        since = self._draining_since
        return since is not None and time.monotonic() - since > self._settings.grace_period

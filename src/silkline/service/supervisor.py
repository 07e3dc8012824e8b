"""The long-lived parent: claims jobs, gives each a fresh process tree, and brings every job to a true end.

One flat loop. Signal handlers only enqueue; the loop handles signals, waits for children, writes down how they ended,
passes on wishes and fills free slots. Everything that must go on while the loop waits for the database has a thread of
its own: heartbeat, limits, output, log lines, housekeeping.
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import silkline
from silkline.config import Settings
from silkline.confine.environment import hide
from silkline.errors import Refused, SilklineError, StoreError, UsageError
from silkline.kinds import registry
from silkline.model.job import Backoff, Job, Status, Verb
from silkline.private_files import repair_folder
from silkline.service import process_table
from silkline.service.attempts import Attempts
from silkline.service.cgroup import Cgroups
from silkline.service.cleaner import DiskGate
from silkline.service.companion import Companion
from silkline.service.heartbeat import Heartbeat
from silkline.service.housekeeping import Housekeeping
from silkline.service.launcher import Launcher
from silkline.service.limits import Limits
from silkline.service.open_files import allow_open_files
from silkline.service.output import LogQueue, LogWriter, Pump
from silkline.service.runner_process import boot_clock
from silkline.store import jobs, workers
from silkline.store.database import Bell, Database
from silkline.store.identity import Identity
from silkline.store.opening import open_database

IDLE_POLLS = 5  # an idle supervisor that the bell serves looks this many times less often
OUTAGE_WAIT = 0.5
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)

log = logging.getLogger("silkline.supervisor")


class Supervisor:
    """One for each machine or container.

    `only`: run this one job here, then end (`silkline crawl`). `beside`: a program to keep alive (`silkline serve`).
    `caught`: called when signals are caught, so that a signal from then on ends in good order.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        only: str | None = None,
        reload: Callable[[], Settings] | None = None,
        beside: Companion | None = None,
        caught: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings = settings
        self._only = only
        self._reload = reload
        self._beside = beside
        self._caught = caught
        self._slots = 1 if only else settings.slots
        self._signals: deque[int] = deque()
        self._draining_since: float | None = None
        self._hurried = False
        self._idle = False
        self._claimed_only = False
        self._paused_only = False
        self._next_claim = 0.0
        self._next_wishes = 0.0
        self._complained_at = 0.0
        self._bell: Bell | None = None
        self._deaf = False  # the bell cannot be had here: polling must do
        self._selector = selectors.DefaultSelector()
        self._waker, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(self._waker, selectors.EVENT_READ)

    def run(self) -> int:
        """Until told to end; 0 when every job was left in good order."""
        restore = self._catch_signals()
        try:
            self._caught()
            self._open()
            try:
                while not self._done():
                    self._turn()
            finally:
                self._close()
        finally:
            restore()
            self._selector.close()
            os.close(self._waker)
            os.close(self._wake)
        return 0

    def drain(self) -> None:
        """Ask for an orderly end, from any thread; asked twice, at once."""
        self._receive(signal.SIGTERM)

    def _open(self) -> None:
        settings = self._settings
        hide((*settings.secrets(), os.environ.get("PGPASSWORD", "")))
        process_table.become_subreaper()
        allow_open_files(settings.open_files)
        self._database: Database = open_database(settings.database)
        try:
            self._identity = Identity(settings.data)
            repair_folder(settings.data)
        except OSError as error:
            self._database.close()
            raise UsageError(f"the data directory {settings.data} cannot be used: {error}") from error
        self._register()
        self._disk = DiskGate(settings)
        self._lines = LogQueue()
        self._writer = LogWriter(self._database, self._lines)
        self._pump = Pump()
        self._cgroups = Cgroups(self._identity.id, wanted=settings.cgroups)
        self._launcher = Launcher(
            self._identity.id,
            dialect=self._database.dialect,
            nice=settings.nice,
            open_files=settings.open_files,
            fork_server=settings.fork_server,
            environment=settings.runner_environment,
        )
        self._attempts = Attempts(self._database, settings, self._launcher, self._cgroups, self._pump, self._lines)
        self._attempts.beside = self._beside
        self._heartbeat = Heartbeat(
            self._database,
            self._identity.id,
            interval=settings.heartbeat_interval,
            held=self._attempts.children,
            describe=self._describe,
            forgotten=self._register_again,
        )
        self._limits = Limits(settings, self._attempts.children, lambda: self._heartbeat.renewed_at)
        self._housekeeping = Housekeeping(
            self._database, self._identity, settings, Backoff(settings.backoff_base, settings.backoff_cap)
        )
        self._housekeeping.settle_dead_neighbours()
        if self._beside:
            self._beside.start()
        self._launcher.warm_up()
        for part in (self._pump, self._writer, self._heartbeat, self._limits, self._housekeeping):
            part.start()
        log.info("supervisor %s: %d slots, %s", self._identity.id, self._slots, self._database.dialect)

    def _close(self) -> None:
        self._attempts.kill_all()
        if self._beside:
            self._beside.stop()
        for part in (self._housekeeping, self._limits, self._heartbeat):
            part.stop()
        self._launcher.stop()
        self._attempts.reap()
        self._writer.stop()
        self._pump.stop()
        self._cgroups.close()
        self._drop_bell()
        self._identity.close(in_order=self._sign_off())
        self._database.close()

    def _register(self) -> None:
        workers.register(
            self._database,
            id=self._identity.id,
            host=self._identity.host,
            pid=self._identity.pid,
            boot_id=self._identity.boot_id,
            slots=self._slots,
            version=silkline.__version__,
            kinds=[] if self._only else self._kinds(),
        )

    def _kinds(self) -> list[str]:
        return registry.claimable(test_kinds=self._settings.test_kinds, crawl4ai=self._settings.crawl4ai)

    def _register_again(self) -> None:
        """Somebody took us for gone for good, such as after a sleep of days."""
        self._register()
        self._idle = False

    def _sign_off(self) -> bool:
        """Whether nothing is left for anybody to see to."""
        if len(self._attempts):
            return False
        try:
            workers.retire(self._database, self._identity.id)
        except StoreError as error:
            log.warning("could not sign off: %s", error)
            return False
        return True

    def _describe(self) -> tuple[int, str]:
        if self._draining_since is not None:
            return self._slots, "draining"
        return self._slots, workers.NO_SPACE if self._disk.closed else "running"

    def _done(self) -> bool:
        if self._draining_since is None or self._attempts.alive:
            return False
        if len(self._attempts) and not (self._hurried or self._grace_is_over()):
            return False
        if len(self._attempts):
            log.error("how %d jobs ended could not be stored: the next supervisor takes them back", len(self._attempts))
        return True

    def _turn(self) -> None:
        self._wait()
        while self._signals:
            self._handle(self._signals.popleft())
        self._attempts.reap()
        try:
            self._attempts.write_ends()
            self._pass_on_wishes()
            self._fill_slots()
        except StoreError as error:
            self._complain(error)
            self._drop_bell()
            self._next_claim = self._next_wishes = time.monotonic() + OUTAGE_WAIT
        if self._draining_since is not None:
            self._drain()

    def _complain(self, error: StoreError) -> None:
        """Once for each outage: from then on the heartbeat says how long it lasts."""
        if self._complained_at < self._heartbeat.renewed_at:
            self._complained_at = boot_clock()
            log.warning("the database did not answer, trying again: %s", error)

    def _wait(self) -> None:
        now = time.monotonic()
        until = self._next_wishes if len(self._attempts) else now + self._settings.poll_interval * IDLE_POLLS
        if self._free_slots():
            until = min(until, self._next_claim)
        if self._beside and (due := self._beside.tend()) is not None:
            until = min(until, now + due)
        if self._draining_since is not None:
            until = min(until, now + 0.1)
        for key, _ in self._selector.select(max(0.0, until - now)):
            if key.fileobj == self._waker:
                os.read(self._waker, 4096)
            elif self._bell is not None:
                self._hear_bell(self._bell)

    def _hear_bell(self, bell: Bell) -> None:
        self._next_claim = self._next_wishes = 0.0
        try:
            bell.drain()
        except StoreError:
            self._drop_bell()

    def _free_slots(self) -> int:
        return 0 if self._draining_since is not None else max(0, self._slots - len(self._attempts))

    def _fill_slots(self) -> None:
        """Claim as many due jobs as there are free slots."""
        free = self._free_slots()
        if free < 1 or time.monotonic() < self._next_claim:
            return
        self._next_claim = time.monotonic() + self._settings.poll_interval
        if self._heartbeat_is_late() or not self._disk.check():
            return
        self._attempts.release_unknown(self._heartbeat.unknown, self._identity.id)
        self._listen()
        claimed = self._claim(free)
        for job in claimed:
            self._attempts.start(job)
        if not self._only and not claimed:
            self._become_idle()
        elif claimed:
            self._next_claim = 0.0

    def _heartbeat_is_late(self) -> bool:
        """After an outage the fence would kill what we start, until the heartbeat has been stored again."""
        return boot_clock() - self._heartbeat.renewed_at > self._settings.fence_after / 2

    def _claim(self, free: int) -> list[Job]:
        identity = self._identity
        if self._only:
            return self._claim_only(self._only)
        kinds = self._kinds()
        claimed = jobs.claim(self._database, identity.id, identity.host, kinds, free)
        if self._idle and len(claimed) == free:
            self._set_idle(False)
        return claimed

    def _claim_only(self, id: str) -> list[Job]:
        """The one job we are here for; when it neither waits nor runs any more, we are done.

        While somebody else runs it we stay: should they die, our watchdog takes it back and we go on with it.
        """
        job = jobs.get(self._database, id)
        if job.status is not Status.QUEUED:
            if job.status is not Status.RUNNING:
                self._start_drain()
            return []
        wait = (job.run_at - self._database.now()).total_seconds() if self._claimed_only else 0.0
        if wait > 0:
            self._next_claim = time.monotonic() + min(wait, self._settings.poll_interval)
            return []
        self._claimed_only = True
        try:
            return [jobs.claim_one(self._database, self._identity.id, self._identity.host, id)]
        except Refused:
            return []  # somebody was quicker: it is looked at again

    def _become_idle(self) -> None:
        """Nothing to do: ask to be woken, look once more, and sleep until the next job is due at the latest."""
        if not self._idle:
            self._set_idle(True)
            self._next_claim = 0.0
            return
        wait = self._settings.poll_interval * (IDLE_POLLS if self._bell else 1)
        due = jobs.next_due(self._database)
        if due is not None:
            wait = min(wait, max(0.0, (due - self._database.now()).total_seconds()))
        self._next_claim = time.monotonic() + wait

    def _set_idle(self, idle: bool) -> None:
        workers.set_idle(self._database, self._identity.id, idle)
        self._idle = idle

    def _listen(self) -> None:
        if self._bell is not None:
            return
        try:
            self._bell = self._database.listen(self._identity.id)
        except OSError as error:
            if not self._deaf:
                log.warning("there is no bell, so new jobs wait up to %g s: %s", self._settings.poll_interval, error)
            self._deaf = True
            return
        self._deaf = False
        self._selector.register(self._bell, selectors.EVENT_READ)

    def _drop_bell(self) -> None:
        if self._bell is not None:
            for key in [key for key in self._selector.get_map().values() if key.fileobj is self._bell]:
                self._selector.unregister(key.fd)
            self._bell.close()
            self._bell = None

    def _pass_on_wishes(self) -> None:
        if len(self._attempts) and time.monotonic() >= self._next_wishes and self._draining_since is None:
            self._next_wishes = time.monotonic() + self._settings.wish_interval
            self._attempts.pass_on_wishes(self._identity.id)

    def _handle(self, number: int) -> None:
        if number == signal.SIGHUP and self._reload is not None:
            self._read_settings_again(self._reload)
        elif number in (signal.SIGINT, signal.SIGHUP) and self._only and self._draining_since is None:
            if number == signal.SIGINT or not self._paused_only:  # a closing terminal may hang up twice
                self._pause_only(self._only)
        elif number in (signal.SIGTERM, signal.SIGINT):
            self._start_drain()

    def _read_settings_again(self, reload: Callable[[], Settings]) -> None:
        try:
            self._slots = reload().slots
        except SilklineError as error:
            log.error("the settings stay as they are, %d slots: %s", self._slots, error)
            return
        log.info("settings read again: %d slots", self._slots)
        self._next_claim = 0.0

    def _pause_only(self, id: str) -> None:
        """^C on `silkline crawl`, or its terminal closed: pause it, a wish like any other.

        A second ^C does not wait for the checkpoint.
        """
        try:
            job = jobs.wish(self._database, id, Verb.PAUSE)
            self._next_wishes = 0.0
        except SilklineError as error:
            log.warning("%s", error)
            self._start_drain()
            return
        if self._paused_only or job.status is not Status.RUNNING:
            self._start_drain()
            self._attempts.kill_all()
        self._paused_only = True

    def _start_drain(self) -> None:
        if self._draining_since is None:
            log.info("ending: %d running jobs save their checkpoints and go back to the queue", len(self._attempts))
            self._draining_since = time.monotonic()
            if self._beside:
                self._beside.end()
            self._attempts.release_all()
        else:
            log.warning("ending at once")
            self._hurried = True
            self._attempts.kill_all()

    def _drain(self) -> None:
        if self._grace_is_over():
            self._attempts.kill_all()

    def _grace_is_over(self) -> bool:
        since = self._draining_since
        return since is not None and time.monotonic() - since > self._settings.grace_period

    def _catch_signals(self) -> Callable[[], None]:
        """Handlers that only enqueue; none of ours when somebody else's thread runs us."""
        if threading.current_thread() is not threading.main_thread():
            return lambda: None
        nohup = self._only and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        taken = [number for number in SIGNALS if not (nohup and number == signal.SIGHUP)]
        before = {number: signal.signal(number, lambda number, _: self._receive(number)) for number in taken}

        def restore() -> None:
            for number, handler in before.items():
                signal.signal(number, handler)

        return restore

    def _receive(self, number: int, _: Any = None) -> None:
        self._signals.append(number)
        with contextlib.suppress(OSError):  # full: it will wake anyway; closed: it has ended
            os.write(self._wake, b"!")

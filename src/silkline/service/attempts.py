"""The attempts of this supervisor: starts them, passes on wishes, waits for their processes, stores how they ended."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import threading
from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta

from silkline.config import Settings
from silkline.confine.environment import of_database
from silkline.errors import LeaseLost, StoreError, UrlsLeft
from silkline.kinds import registry
from silkline.metrics.instruments import ATTEMPTS, CRASHES, crash_label
from silkline.model.database import Database
from silkline.model.job import AttemptEnd, Backoff, Decision, End, Job, Status, Wish, decide
from silkline.model.redaction import secrets_of
from silkline.model.sharding import is_parent
from silkline.process_usage import below, children_by_parent
from silkline.reading_marks import MarksFile
from silkline.runner import protocol, shard_parents
from silkline.runner.cpu_affinity import Cores, wanted_cpus
from silkline.runner.log_file import LogFile, log_path
from silkline.service import process_table
from silkline.service.cgroup import Cgroups
from silkline.service.child_program import ChildProgram
from silkline.service.cpu_limit import limit_cpu
from silkline.service.launcher import Launcher, LaunchFailed
from silkline.service.marks_files import marks_path
from silkline.service.output import LogQueue, Output, OutputThread
from silkline.service.runner_process import RunnerProcess
from silkline.store import blames, jobs

LAUNCH_WAIT = 2.0  # seconds before a job that could not be started is tried again
_ENDS = {Wish.PAUSE: End.PAUSED, Wish.STOP: End.STOPPED, Wish.CANCEL: End.CANCELLED}

log = logging.getLogger("silkline.supervisor")


class Attempts:
    """Only the thread of the main loop changes it. Any thread may call `children`."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        launcher: Launcher,
        cgroups: Cgroups,
        pump: OutputThread,
        lines: LogQueue,
        child_program: ChildProgram | None = None,
    ) -> None:
        self._database = database
        self._settings = settings
        self._launcher = launcher
        self._cgroups = cgroups
        self._pump = pump
        self._lines = lines
        self._child_program = child_program
        self._cores = Cores(settings.nice)
        self._backoff = Backoff(settings.backoff_base, settings.backoff_cap)
        self._lock = threading.Lock()
        self._children: dict[int, RunnerProcess] = {}
        self._ended: list[RunnerProcess] = []

    def children(self) -> list[RunnerProcess]:
        """Every attempt whose end is not stored yet, including those whose process has ended."""
        with self._lock:
            return [*self._children.values(), *self._ended]

    @property
    def alive(self) -> bool:
        """Whether a runner still has a process."""
        return bool(self._children)

    def __len__(self) -> int:
        return len(self._children) + len(self._ended)

    def start(self, job: Job) -> None:
        """Start a process for a claimed job. If that fails, the job goes back to the queue and no retry is counted."""
        if is_parent(job):
            self._start_shards(job)
            return
        if self._is_held(job):
            self._release(job, AttemptEnd(End.RELEASED, "claim lost", "the database lost a claim", LAUNCH_WAIT))
            return
        try:
            child = self._launch(job)
        except (LaunchFailed, OSError) as error:
            log.error("job %s could not be started: %s", job.id, error, extra=job.log_fields)
            self._release(job, AttemptEnd(End.RELEASED, "not started", str(error), LAUNCH_WAIT))
            return
        about = (job.id, job.kind, job.attempt, child.pid)
        log.info("job %s (%s) attempt %d runs as pid %d", *about, extra=job.log_fields)
        child.output.say("info", f"attempt {job.attempt} started on {job.host} as process {child.pid}{_limits(child)}")
        child.tell(self._start_message(job))
        try:
            self._note_start(child)
        except LeaseLost:
            child.lost = True
            child.kill()
            return
        except StoreError as error:
            log.warning("job %s: the start could not be stored: %s", job.id, error, extra=job.log_fields)

    def _is_held(self, job: Job) -> bool:
        """Whether an attempt of this job has not ended yet. Then the database lost the commit of its claim, and this
        claim has the same lease: the lease alone would not stop the older attempt, so kill it."""
        older = [child for child in self.children() if child.job.id == job.id]
        for child in older:
            child.lost = True
            child.kill()
        return bool(older)

    def _start_shards(self, job: Job) -> None:
        """A crawl in several shards needs no process of its own, and no slot."""
        try:
            if not shard_parents.start(self._database, job):
                self._release(job, AttemptEnd(End.RELEASED, "not started"))
        except LeaseLost as error:
            log.warning("%s", error)
        except StoreError as error:
            log.error("the shards of job %s could not be started: %s", job.id, error)
            self._release(job, AttemptEnd(End.RELEASED, "not started", str(error), LAUNCH_WAIT))

    def pass_on_wishes(self, worker_id: str) -> None:
        """Send the wishes of people to the runners."""
        held = {(held.id, held.run_lease): held.desired for held in jobs.wishes(self._database, worker_id)}
        for child in self._children.values():
            end = _ENDS.get(held.get(child.key, Wish.RUN))
            if end is not None:
                child.give_order(end)

    def tell_of_links(self, job_ids: Collection[str]) -> None:
        """Tell runners of shards that links of other shards may have arrived."""
        for child in self._children.values() if job_ids else ():
            if child.job.id in job_ids:
                child.tell(protocol.LinksArrived())

    def release_one_shard(self) -> bool:
        """Give one shard back to the queue, for a worker that has fewer. Returns whether that was done now."""
        several = [child for child in self.children() if child.job.shard is not None]
        if not several or any(child.order is not None or child.wait_status is not None for child in several):
            return False  # one is on its way already
        log.info("job %s: a worker with fewer shards continues it", several[0].job.id)
        several[0].give_order(End.RELEASED)
        return True

    def release_all(self) -> None:
        """The supervisor is ending: order every runner to save its checkpoint and to end."""
        for child in self._children.values():
            if child.order is None:
                child.give_order(End.RELEASED)

    def kill_all(self) -> None:
        for child in self._children.values():
            child.kill(AttemptEnd(child.order or End.RELEASED, "released", "the supervisor had to end at once"))

    def reap(self) -> None:
        """Wait for every child that ended: runners, the fork server, the child program, and adopted processes."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                break
            child = self._children.get(pid)
            if child is not None:
                child.exited(status)
                with self._lock:
                    del self._children[pid]
                    self._ended.append(child)
            elif self._child_program is not None and self._child_program.exited(pid, status):
                continue
            elif self._launcher.exited(pid):
                log.warning("the fork server ended (status %d); it is started again", status)
        self._kill_leftovers()

    def write_ends(self) -> None:
        """Store how attempts ended. If the database does not answer, the next turn tries again."""
        for child in list(self._ended):
            child.finishing = True
            if not child.lost:
                self._finish(child)
            child.close()
            self._cores.release(child.cpu_limit.cores if child.cpu_limit else ())
            marks_path(self._settings, child.job).unlink(missing_ok=True)
            with self._lock:
                self._ended.remove(child)

    def release_unknown(self, keys: set[tuple[str, int]], worker_id: str) -> None:
        """Release jobs that were claimed by a statement whose answer was lost, unless they have been started since."""
        for id, lease in keys - {child.key for child in self.children()}:
            with contextlib.suppress(LeaseLost):
                job = jobs.owned_outline(self._database, id, lease, worker_id)
                self._release(job, AttemptEnd(End.RELEASED, "claim lost", "the answer to the claim was lost"))

    def _launch(self, job: Job) -> RunnerProcess:
        with contextlib.ExitStack() as if_it_fails, contextlib.ExitStack() as theirs:
            stdout, stdout_theirs = _pipe(if_it_fails, theirs)
            stderr, stderr_theirs = _pipe(if_it_fails, theirs)
            ours, channel = protocol.pair()
            if_it_fails.callback(ours.close)
            theirs.callback(channel.close)
            marks = MarksFile.create(marks_path(self._settings, job))
            if_it_fails.callback(marks.close)
            pid = self._launcher.launch(job, stdout_theirs, stderr_theirs, channel.fileno(), marks.descriptor)
            cgroup = self._cgroups.make(f"{job.id}-{job.run_lease}")
            if cgroup:
                if_it_fails.callback(cgroup.remove)
            if_it_fails.callback(_end_at_once, pid)
            output = self._output(job)
            child = RunnerProcess(job, pid, ours, output, cgroup, marks)
            if cgroup and cgroup.add(pid) and self._settings.memory_limit:
                child.kernel_limits_memory = cgroup.limit_memory(self._settings.memory_limit)
            cpus = wanted_cpus(job.payload, self._settings.cpus)
            child.cpu_limit = limit_cpu(pid, cgroup, cpus, self._cores)
            child.watch(self._pump, stdout, stderr)
            if_it_fails.pop_all()
        with self._lock:
            self._children[pid] = child
        return child

    def _output(self, job: Job) -> Output:
        settings, worker, secrets = self._settings, job.worker_id or "", secrets_of(job.payload)
        as_json = settings.log_format == "json"
        file = LogFile(log_path(settings.data, job.id), settings.log_bytes, as_json=as_json)
        most, shard = settings.log_lines, job.shard
        return Output(job.id, job.attempt, file, self._lines, most, worker=worker, shard=shard, secrets=secrets)

    def _note_start(self, child: RunnerProcess) -> None:
        crawl = registry.is_crawl(child.job.kind)
        limit = self._settings.site_deadline if crawl else self._settings.page_deadline
        child.deadline = child.started + limit if limit else None
        deadline_at = self._database.now() + timedelta(seconds=limit) if limit else None
        jobs.started(self._database, child.job, child.pid, deadline_at)

    def _start_message(self, job: Job) -> protocol.StartAttempt:
        return protocol.StartAttempt(
            job_id=job.id,
            run_lease=job.run_lease,
            worker_id=job.worker_id or "",
            database=self._settings.database,
            environment=of_database(),
            test_kinds=self._settings.test_kinds,
            settings=self._settings.for_kinds(),
        )

    def _finish(self, child: RunnerProcess) -> None:
        ended = child.ended or AttemptEnd(End.CRASHED, "unknown")
        try:
            if ended.end is End.CRASHED and blames.blame(self._database, child.job, child.blamed):
                ended = replace(ended, excused=True)
            decision, ended = self._store_end(child.job, ended)
        except LeaseLost as error:
            log.warning("%s", error, extra=child.job.log_fields)
            child.output.say("warning", f"attempt {child.job.attempt}: {error}")
            return
        ATTEMPTS.add(1, child.job.kind, decision.status.value)
        if ended.end is End.CRASHED:
            CRASHES.add(1, crash_label(ended.reason))
        if decision.status is Status.QUEUED and not ended.wait:
            self._database.wake_supervisors()  # a worker with a free slot continues the job at once
        line = _summary(child.job, ended, decision)
        failed = decision.status is Status.FAILED
        child.output.say("error" if failed else "info", line)
        level, first = logging.ERROR if failed else logging.INFO, child.output.clean(line.splitlines()[0])
        log.log(level, "job %s: %s", child.job.id, first, extra=child.job.log_fields)

    def _store_end(self, job: Job, ended: AttemptEnd) -> tuple[Decision, AttemptEnd]:
        try:
            return jobs.finish(self._database, job, lambda job: self._decide(job, ended)), ended
        except UrlsLeft as error:  # the runner did not know of them: the next attempt reads the ledger anew
            left = AttemptEnd(End.TEMPORARY, "urls left", str(error))
            return jobs.finish(self._database, job, lambda job: self._decide(job, left)), left

    def _release(self, job: Job, ended: AttemptEnd) -> None:
        try:
            jobs.finish(self._database, job, lambda now: self._decide(now, ended))
        except StoreError as error:
            why = "job %s could not be released; it is rescued when its lease expires: %s"
            log.warning(why, job.id, error, extra=job.log_fields)

    def _decide(self, job: Job, ended: AttemptEnd) -> Decision:
        jitter = random.random()  # noqa: S311 - spreads retries, guards nothing
        return decide(job, ended, backoff=self._backoff, now=self._database.now(), jitter=jitter)

    def _kill_leftovers(self) -> None:
        """Kill adopted processes that belong to no running attempt, so that no process stays after its job."""
        known = {*self._children, self._launcher.server_pid, self._child_program.pid if self._child_program else None}
        for pid in process_table.own_children() - known:
            if not any(process_table.belongs_to(pid, *child.key) for child in self._children.values()):
                process_table.kill(below(pid, children_by_parent()))


def _end_at_once(pid: int) -> None:
    """Kill a runner that was started but cannot be supervised."""
    process_table.kill({pid})
    process_table.reap({pid})


def _limits(child: RunnerProcess) -> str:
    limit = child.cpu_limit
    return f", at most {limit.cpus:g} cores (by {limit.by})" if limit else ""


def _pipe(if_it_fails: contextlib.ExitStack, theirs: contextlib.ExitStack) -> tuple[int, int]:
    """Make a pipe: our end, which is closed if the start fails, and the end of the runner."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    if_it_fails.callback(os.close, reading)
    theirs.callback(os.close, writing)
    return reading, writing


def _summary(job: Job, ended: AttemptEnd, decision: Decision) -> str:
    line = f"attempt {job.attempt} ended: {ended.reason or ended.end}; the job is now {decision.status}"
    if ended.excused:
        line += ", continues at once and reads the input that ended it in an isolated process"
    elif decision.status is Status.QUEUED:
        line += f", next try at {decision.run_at:%H:%M:%S} UTC"
    return f"{line}\n{ended.message}" if ended.message and ended.end is not End.COMPLETED else line

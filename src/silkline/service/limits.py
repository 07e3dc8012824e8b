"""The limits of running jobs, and the fence: kill our own children before another supervisor may start their jobs.

One thread checks several times a second and never uses the database. So it works during an outage of the database, and
reacts within a second after this process was suspended and resumed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from silkline.config import Settings
from silkline.model.job import AttemptEnd, End
from silkline.process_usage import children_by_parent
from silkline.reading_marks import LEADER, Mark
from silkline.service import process_table
from silkline.service.background_thread import BackgroundThread
from silkline.service.runner_process import RunnerProcess, boot_clock

TICK = 0.25
NEAR_TICK = 0.05  # while a job uses more than half of its memory limit
NEAR = 0.5
LEAST_READING = 2.0
AFTER_FAILURE = 1.0  # the thread continues after every error: nothing else enforces the limits

log = logging.getLogger("silkline.limits")


class Limits(BackgroundThread):
    """Checks the run time, memory, progress and orders of each child, and the age of the last heartbeat."""

    def __init__(
        self, settings: Settings, held: Callable[[], list[RunnerProcess]], renewed_at: Callable[[], float]
    ) -> None:
        super().__init__("limits")
        self._settings = settings
        self._held = held
        self._renewed_at = renewed_at
        self._memory_at = 0.0
        self._near = False
        # At most one heartbeat interval: within it the runner must show that it is alive.
        self._read_limit = min(settings.read_seconds, max(settings.heartbeat_interval, LEAST_READING))

    def _run(self) -> None:
        while not self._stopping.wait(NEAR_TICK if self._near else TICK):
            try:
                self._look()
            except Exception:
                log.exception("the check of the limits failed; trying again")
                self._stopping.wait(AFTER_FAILURE)

    def _look(self) -> None:
        children = [child for child in self._held() if child.wait_status is None]
        if not children:
            self._near = False
            return
        now = boot_clock()
        self._fence(children, now)
        for child in children:
            if child.verdict is None and (verdict := self._judge(child, now)):
                log.warning("job %s: %s", child.job.id, verdict.message, extra=child.job.log_fields)
                child.kill(verdict)
            elif child.verdict is None and (mark := self._overdue(child)):
                self._end_reading(child, mark)
        if self._near or now - self._memory_at >= self._settings.memory_interval:
            self._memory_at = now
            self._check_memory(children)

    def _fence(self, children: list[RunnerProcess], now: float) -> None:
        silent = now - self._renewed_at()
        if silent < self._settings.fence_after:
            return
        reason = f"no heartbeat could be stored for {silent:.0f} s: another supervisor may soon start this job"
        for child in children:
            if child.verdict is None:
                log.error("killing job %s: %s", child.job.id, reason, extra=child.job.log_fields)
            child.kill(AttemptEnd(End.RELEASED, "fenced", reason))

    def _judge(self, child: RunnerProcess, now: float) -> AttemptEnd | None:
        if child.deadline is not None and now > child.deadline:
            limit = child.deadline - child.started
            return AttemptEnd(End.CRASHED, "timeout", f"killed: it ran longer than its limit of {limit:g} s")
        if child.order is not None and now - child.ordered_at > self._settings.kill_after:
            waited = self._settings.kill_after
            return AttemptEnd(
                child.order,
                child.order.value,
                f"killed: it did not end within {waited:g} s after the order; its checkpoint is kept",
            )
        stall = self._settings.stall_after
        if stall and now - child.last_sign > stall:
            return AttemptEnd(End.CRASHED, "stalled", f"killed: no sign of progress for {stall:g} s")
        return None

    def _overdue(self, child: RunnerProcess) -> Mark | None:
        """The input that the runner has been reading for too long, if any. The runner may be unable to stop itself."""
        mark = child.marks.mark_of(LEADER)
        return mark if mark and mark.pid == child.pid and time.monotonic() - mark.started > self._read_limit else None

    def _end_reading(self, child: RunnerProcess, mark: Mark) -> None:
        message = f"killed: it read one input for more than {self._read_limit:g} s: {mark}"
        log.warning("job %s: %s", child.job.id, message, extra=child.job.log_fields)
        child.kill(AttemptEnd(End.CRASHED, "read_timeout", message), [mark])

    def _check_memory(self, children: list[RunnerProcess]) -> None:
        limit = self._settings.memory_limit
        watched = [child for child in children if not child.kernel_limits_memory]
        self._near = False
        if not limit or not watched:
            return
        everybody = children_by_parent()
        for child in watched:
            pids = child.processes(everybody)
            used = process_table.resident(pids)
            self._near = self._near or used > limit * NEAR
            if used > limit and (used := process_table.proportional(pids)) > limit:
                megabytes = f"{used // 1_000_000} MB used, {limit // 1_000_000} MB allowed"
                about = child.job.log_fields
                log.warning("job %s: above its memory limit, %s", child.job.id, megabytes, extra=about)
                if _end_largest_reader(child, pids):
                    continue
                child.kill(
                    AttemptEnd(End.CRASHED, "memory", f"killed: its processes exceeded the memory limit ({megabytes})")
                )


def _end_largest_reader(child: RunnerProcess, pids: set[int]) -> bool:
    """Kill the largest process if it reads an input and is not the runner itself. The runner then replaces it."""
    sizes = {pid: process_table.resident({pid}) for pid in pids}
    largest = max(sizes, key=lambda pid: sizes[pid], default=child.pid)
    mark = next((mark for mark in child.marks.active() if mark.pid == largest), None)
    if mark is None or largest == child.pid:
        return False
    about = child.job.log_fields
    log.warning("job %s: killing process %d, which reads %s", child.job.id, largest, mark, extra=about)
    process_table.kill({largest})
    return True

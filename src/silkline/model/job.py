"""The job, its states, and every decision about it as a pure function.

Users write `Wish` (the column `desired`). While a job runs, its owner writes `Status`, or the process that rescues the
job from a dead owner. The diagram in ARCHITECTURE.md, `TRANSITIONS` and the statements in store/sql/jobs.sql must
agree; tests compare them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    CANCELLED = "cancelled"
    COMPLETED = "completed"
    FAILED = "failed"


class Wish(StrEnum):
    RUN = "run"
    PAUSE = "pause"
    STOP = "stop"
    CANCEL = "cancel"


class Verb(StrEnum):
    """What a user can do with a job."""

    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    CANCEL = "cancel"
    RETRY = "retry"


class End(StrEnum):
    """How one attempt ended, as seen by its supervisor."""

    COMPLETED = "completed"
    PAUSED = "paused"
    STOPPED = "stopped"
    CANCELLED = "cancelled"
    RELEASED = "released"  # the supervisor shuts down; not counted as a retry or crash
    TEMPORARY = "temporary"
    PERMANENT = "permanent"
    CRASHED = "crashed"


TRANSITIONS: frozenset[tuple[Status, Status]] = frozenset(
    {
        (Status.QUEUED, Status.RUNNING),
        (Status.QUEUED, Status.PAUSED),
        (Status.QUEUED, Status.STOPPED),
        (Status.QUEUED, Status.CANCELLED),
        (Status.RUNNING, Status.QUEUED),
        (Status.RUNNING, Status.PAUSED),
        (Status.RUNNING, Status.STOPPED),
        (Status.RUNNING, Status.CANCELLED),
        (Status.RUNNING, Status.COMPLETED),
        (Status.RUNNING, Status.FAILED),
        (Status.PAUSED, Status.QUEUED),
        (Status.PAUSED, Status.STOPPED),
        (Status.PAUSED, Status.CANCELLED),
        (Status.STOPPED, Status.QUEUED),
        (Status.FAILED, Status.QUEUED),
    }
)

LIVE = frozenset({Status.QUEUED, Status.RUNNING, Status.PAUSED})
ENDED = frozenset(Status) - LIVE

WISH_BECOMES = {Wish.PAUSE: Status.PAUSED, Wish.STOP: Status.STOPPED, Wish.CANCEL: Status.CANCELLED}
_STRENGTH = {Wish.RUN: 0, Wish.PAUSE: 1, Wish.STOP: 2, Wish.CANCEL: 3}


@dataclass(frozen=True, slots=True)
class Job:
    """One row of `crawl_jobs`."""

    id: str
    kind: str
    status: Status
    desired: Wish
    request_url: str | None
    payload: dict[str, Any]
    metadata: dict[str, Any]
    priority: int
    tenant: str
    run_at: datetime
    dedupe_key: str | None
    parent_id: str | None
    attempt: int
    retry_count: int
    crash_count: int
    max_retries: int
    run_lease: int
    worker_id: str | None
    host: str | None
    pid: int | None
    last_heartbeat: datetime | None
    heartbeat_seq: int
    deadline_at: datetime | None
    exit_reason: str | None
    error_message: str | None
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    shard: int | None = None

    @property
    def log_fields(self) -> dict[str, Any]:
        """The ids in each log line about this job."""
        return {"job": self.id, "attempt": self.attempt, **({} if self.shard is None else {"shard": self.shard})}


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job that is not stored yet. Its payload has been validated by its spec."""

    kind: str
    payload: dict[str, Any]
    request_url: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    priority: int = 0
    tenant: str = ""
    run_at: datetime | None = None
    dedupe_key: str | None = None
    parent_id: str | None = None
    max_retries: int = 3
    paused: bool = False


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """How an attempt ended and why: `message` for people, `reason` for programs."""

    end: End
    reason: str = ""
    message: str = ""
    wait: float = 0.0  # seconds before a released job may run again, for example when the disk is full
    excused: bool = False  # the crash is not counted: the next attempt parses the input that caused it in isolation


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds to wait before try number n: exponential, with a maximum; the upper half is random."""

    base: float = 5.0
    cap: float = 900.0

    def delay(self, failures: int, jitter: float) -> timedelta:
        full = min(self.cap, self.base * 2.0 ** min(max(failures - 1, 0), 32))
        return timedelta(seconds=full * (0.5 + 0.5 * jitter))


@dataclass(frozen=True, slots=True)
class Decision:
    """The new state of a job whose attempt ended."""

    status: Status
    desired: Wish
    run_at: datetime
    retry_count: int
    crash_count: int
    exit_reason: str
    error_message: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """The new status and wish of a job; equal to the current ones if there is nothing to do."""

    status: Status
    desired: Wish
    fresh_retries: bool = False
    due_now: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a verb cannot be applied."""

    why: str


def answer(verb: Verb, status: Status, desired: Wish) -> Change | Refusal:
    """The effect of `verb` on a job. Repeating a verb changes nothing. A weaker wish never replaces a stronger one."""
    shown = shown_status(status, desired)
    if verb is Verb.RETRY:
        if status in (Status.FAILED, Status.STOPPED):
            return Change(Status.QUEUED, Wish.RUN, fresh_retries=True, due_now=True)
        return Refusal(f"only a failed or stopped job can be retried; this one is {shown}")
    if verb is Verb.RESUME:
        if status is Status.PAUSED:  # a user decided to continue it: earlier failures no longer count
            return Change(Status.QUEUED, Wish.RUN, fresh_retries=True)
        if status is Status.RUNNING and desired is Wish.PAUSE:
            return Change(status, Wish.RUN)
        if status in (Status.QUEUED, Status.RUNNING) and desired is Wish.RUN:
            return Change(status, desired)
        hint = "; use retry" if status in (Status.FAILED, Status.STOPPED) else ""
        return Refusal(f"only a paused, queued or running job can be resumed; this one is {shown}{hint}")
    wish = Wish(verb.value)
    target = WISH_BECOMES[wish]
    if status is target:
        return Change(status, desired)
    if status in ENDED:
        return Refusal(f"the job has ended: it is {shown}")
    if status is Status.RUNNING:
        if _STRENGTH[wish] < _STRENGTH[desired]:
            return Refusal(f"the job is already {shown}")
        return Change(status, wish)
    return Change(target, wish)


def decide(job: Job, ended: AttemptEnd, *, backoff: Backoff, now: datetime, jitter: float) -> Decision:
    """The new state of `job` after its attempt ended. `jitter` is a random number in [0, 1)."""
    wished = WISH_BECOMES.get(job.desired)

    def to(
        status: Status, *, retries: int = job.retry_count, crashes: int = job.crash_count, failures: int = 0
    ) -> Decision:
        run_at = now + (backoff.delay(failures, jitter) if failures else timedelta(seconds=ended.wait))
        message = ended.message or None
        # A job that is queued again, or has ended without a wish, must not keep an old wish.
        desired = Wish.RUN if status in (Status.QUEUED, Status.COMPLETED, Status.FAILED) else job.desired
        return Decision(status, desired, run_at, retries, crashes, ended.reason or ended.end.value, message)

    match ended.end:
        case End.COMPLETED:
            return to(Status.COMPLETED)
        case End.PERMANENT:
            return to(Status.CANCELLED if wished is Status.CANCELLED else Status.FAILED)
        case End.PAUSED | End.STOPPED | End.CANCELLED | End.RELEASED:
            # The wish may have changed while the attempt was ending: use the newest one.
            return to(wished or Status.QUEUED)
        case End.TEMPORARY:
            if wished:
                return to(wished)
            if job.retry_count >= job.max_retries:
                return to(Status.FAILED)
            return to(Status.QUEUED, retries=job.retry_count + 1, failures=job.retry_count + 1)
        case End.CRASHED:
            if ended.excused:
                return to(wished or Status.QUEUED)
            if wished:
                return to(wished, crashes=job.crash_count + 1)
            if job.crash_count >= job.max_retries:
                return to(Status.FAILED, crashes=job.crash_count + 1)
            return to(Status.QUEUED, crashes=job.crash_count + 1, failures=job.crash_count + 1)


def shown_status(status: Status, desired: Wish, run_at: datetime | None = None, now: datetime | None = None) -> str:
    """The status that users see: the stored one, or `pending`, `pausing`, `stopping` or `cancelling`."""
    if status is Status.RUNNING and desired is not Wish.RUN:
        return {Wish.PAUSE: "pausing", Wish.STOP: "stopping", Wish.CANCEL: "cancelling"}[desired]
    if status is Status.QUEUED and run_at is not None and now is not None and run_at > now:
        return "pending"
    return status.value

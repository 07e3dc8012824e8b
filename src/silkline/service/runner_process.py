"""One running attempt on the supervisor's side: its process, its messages, its orders, and how it ended."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time

import msgspec

from silkline.model.job import AttemptEnd, End, Job
from silkline.model.strict_json import is_deeper_than
from silkline.process_usage import below, children_by_parent
from silkline.reading_marks import Mark, MarksFile
from silkline.runner import protocol
from silkline.service import process_table
from silkline.service.cgroup import Cgroup
from silkline.service.cpu_limit import CpuLimit
from silkline.service.marks_files import blamed_of, inputs_of
from silkline.service.output import Output, OutputPipe, OutputThread

STREAMS_TIMEOUT = 2.0
_MOST_LEVELS = 50  # of the data of a log line: our own lines have few
LAST_MESSAGES_TIMEOUT = 30.0  # reached only on a machine that hangs: all data is already there


def boot_clock() -> float:
    """A clock that also counts the time while the machine sleeps or this process is stopped."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class RunnerProcess:
    """Used by the threads of the main loop, the output and the limits. Only one of them writes each field."""

    _pump: OutputThread

    def __init__(
        self,
        job: Job,
        pid: int,
        channel: socket.socket,
        output: Output,
        cgroup: Cgroup | None,
        marks: MarksFile,
    ) -> None:
        self.job = job
        self.marks = marks
        self.blamed: list[str] = []  # the inputs that were read when it died, according to the marks
        self.pid = pid
        self.output = output
        self.cgroup = cgroup
        self.started = boot_clock()
        self.last_sign = self.started
        self.deadline: float | None = None
        self.kernel_limits_memory = False
        self.cpu_limit: CpuLimit | None = None
        self.order: End | None = None
        self.ordered_at = 0.0
        self.verdict: AttemptEnd | None = None  # why the supervisor killed it, if it did
        self.lost = False  # the lease is lost: store nothing more about this attempt
        self.finishing = False
        self.ended: AttemptEnd | None = None
        self.wait_status: int | None = None
        self._said: protocol.RunnerEvent | None = None
        self._channel = channel
        self._sources: list[OutputPipe] = []
        self._silent = threading.Event()

    @property
    def key(self) -> tuple[str, int]:
        return self.job.id, self.job.run_lease

    def watch(self, pump: OutputThread, stdout: int, stderr: int) -> None:
        heard = os.dup(self._channel.fileno())  # may fail, so do it before the first stream is watched
        self._pump = pump
        self._sources = [
            OutputPipe(stdout, lambda data: self.output.feed("info", data), self._source_ended),
            OutputPipe(stderr, lambda data: self.output.feed("warning", data), self._source_ended),
            OutputPipe(heard, self._heard, self._source_ended),
        ]
        for source in self._sources:
            pump.watch(source)

    def tell(self, message: protocol.StartAttempt | protocol.Order | protocol.LinksArrived) -> None:
        """Send a message to the runner. If the runner no longer listens, it has ended, and `reap` notices that."""
        with contextlib.suppress(OSError):
            protocol.send(self._channel, message)

    def give_order(self, end: End) -> None:
        if self.order is not end:
            self.order = end
            self.ordered_at = boot_clock()
            self.tell(protocol.Order(end))

    def processes(self, children: dict[int, list[int]] | None = None) -> set[int]:
        """Every process of this attempt."""
        roots = {
            pid for pid in process_table.own_children() if pid != self.pid and process_table.belongs_to(pid, *self.key)
        }
        if self.wait_status is None:
            roots.add(self.pid)
        found = self.cgroup.processes() if self.cgroup else set()
        if roots:
            everybody = children_by_parent() if children is None else children
            found = found.union(*(below(root, everybody) for root in roots))
        return found

    def kill(self, verdict: AttemptEnd | None = None, blamed: list[Mark] | None = None) -> None:
        """Kill all processes of the attempt now. Only the first verdict, and the inputs that it blames, are kept."""
        if verdict is not None and self.verdict is None and self.wait_status is None:
            self.verdict = verdict
            self.blamed = inputs_of(blamed or [])
        if self.cgroup:
            self.cgroup.kill()
        # Stop the runner first, so that it starts no process while its descendants are listed.
        if self.wait_status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGSTOP)
        process_table.kill(self.processes())

    def exited(self, wait_status: int) -> None:
        """Called when the runner has ended: kill the processes that it left, and read its last messages."""
        self.wait_status = wait_status
        for _ in range(100):
            left = self.processes()
            if not left:
                break
            if self.cgroup:
                self.cgroup.kill()
            process_table.kill(left)
            process_table.reap(left)
        if not self._silent.wait(STREAMS_TIMEOUT):
            for source in self._sources:
                self._pump.abandon(source)
            self._silent.wait(LAST_MESSAGES_TIMEOUT)
        self.ended = self._how_it_ended(wait_status)
        if self.ended.end is End.CRASHED and not self.blamed:
            short_of_memory = self.ended.reason in ("memory", "oom_kill")
            self.blamed = inputs_of(blamed_of(self.marks, all_of_them=short_of_memory))

    def close(self) -> None:
        """Free the descriptors and the cgroup."""
        self._channel.close()
        self.output.close()
        self.marks.close()
        if self.cgroup:
            self.cgroup.remove()

    def _how_it_ended(self, wait_status: int) -> AttemptEnd:
        said, tail = self._said, "\n".join(self.output.tail)
        ended_by_itself = os.WIFEXITED(wait_status) and os.WEXITSTATUS(wait_status) == protocol.EXIT_DONE and said
        if self.verdict is not None and not ended_by_itself:  # otherwise it had ended before it was killed
            return self.verdict
        if os.WIFSIGNALED(wait_status):
            number = os.WTERMSIG(wait_status)
            if number == signal.SIGKILL and self.cgroup and self.cgroup.oom_kills():
                return AttemptEnd(
                    End.CRASHED,
                    "oom_kill",
                    f"the kernel killed this job because it reached its memory limit\n{tail}".strip(),
                )
            return AttemptEnd(
                End.CRASHED, f"crashed (signal {number})", tail or f"the runner was killed by signal {number}"
            )
        code = os.WEXITSTATUS(wait_status)
        message = (said.message if said and said.end else "") or tail
        reason = said.reason if said and said.end else ""
        if code == protocol.EXIT_DONE:
            if said and said.end:
                return AttemptEnd(said.end, reason or said.end.value, message if reason else "", said.wait)
            return AttemptEnd(End.COMPLETED, End.COMPLETED.value)
        if code == protocol.EXIT_UNTOLD:
            return AttemptEnd(
                self.order or End.RELEASED, "released", "the runner ended in good order but could not report it"
            )
        if code == protocol.EXIT_TEMPORARY:
            return AttemptEnd(End.TEMPORARY, reason or f"exit {code}", message)
        if code == protocol.EXIT_PERMANENT:
            return AttemptEnd(End.PERMANENT, reason or f"exit {code}", message)
        return AttemptEnd(
            End.CRASHED, reason or f"crashed (exit {code})", f"{message}\n{tail}".strip() if message != tail else tail
        )

    def _heard(self, data: bytes) -> None:
        self.last_sign = boot_clock()
        with contextlib.suppress(ValueError, RecursionError):  # a page may have taken the runner over
            event = msgspec.json.decode(data, type=protocol.RunnerEvent)
            if event.data is not None and is_deeper_than(event.data, _MOST_LEVELS):
                return
            if event.end is not None:
                self._said = event
            elif event.message:
                self.output.say(event.level or "info", event.message, event.event, event.data)

    def _source_ended(self) -> None:
        if not any(source.open for source in self._sources):
            self._silent.set()

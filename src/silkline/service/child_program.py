"""A program that runs as a child of the supervisor. It starts and ends with the supervisor, and is restarted if it dies
or hangs.

`silkline serve` runs the API this way. The two processes share only the database. The program reads its settings from
standard input, so that no secret is visible in a process list.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import time
from collections.abc import Sequence

from silkline.confine.environment import of_database, scrubbed
from silkline.service.health_probe import HealthProbe

RESTART_FIRST = 0.2
RESTART_MOST = 10.0
HEALTHY_AFTER = 10.0  # seconds; a program that ran this long is restarted without a delay
STOP_LIMIT = 10.0

log = logging.getLogger("silkline.child_program")


class ChildProgram:
    """Used by the supervisor's thread only."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        says: bytes,
        descriptors: Sequence[int] = (),
        answers: HealthProbe | None = None,
    ) -> None:
        self._name = name
        self._command = list(command)
        self._says = says
        self._descriptors = tuple(descriptors)
        self._started = 0.0
        self._wait = 0.0
        self._due: float | None = None
        self._stopping = False
        self._answers = answers
        self.pid: int | None = None

    def start(self) -> None:
        self._due, self._started = None, time.monotonic()
        if self._answers is not None:
            self._answers.begin()
        reading, writing = os.pipe2(os.O_CLOEXEC)
        try:
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                self._command,
                env={**scrubbed(), **of_database()},
                stdin=reading,
                pass_fds=self._descriptors,
                start_new_session=True,
            )
        finally:
            os.close(reading)
        process.returncode = 0  # the supervisor waits for its children itself, so `subprocess` must not
        self.pid = process.pid
        with os.fdopen(writing, "wb") as pipe, contextlib.suppress(BrokenPipeError):
            pipe.write(self._says)

    def tend(self) -> float | None:
        """Restart the program when that is due. Returns the seconds until then, or None if nothing is due."""
        if self._stopping:
            return None
        if self._due is None:
            return self._end_if_hung()
        wait = self._due - time.monotonic()
        if wait > 0:
            return wait
        self.start()
        return None

    def _end_if_hung(self) -> float | None:
        """Kill the program if it has not answered for too long. Returns the seconds until the next check."""
        if self._answers is None or self.pid is None:
            return None
        if (silence := self._answers.silence()) is not None:
            log.error("the %s has not answered for %.0f s; it is killed and started again", self._name, silence)
            self._answers.begin()
            self._signal(signal.SIGKILL)
        return self._answers.every

    def exited(self, pid: int, status: int) -> bool:
        """Called when a child has ended. Returns whether that child was this program."""
        if pid != self.pid:
            return False
        self.pid = None
        if not self._stopping:
            healthy = time.monotonic() - self._started > HEALTHY_AFTER
            self._wait = 0.0 if healthy else min(RESTART_MOST, max(RESTART_FIRST, 2 * self._wait))
            self._due = time.monotonic() + self._wait
            code = os.waitstatus_to_exitcode(status)
            log.error("the %s ended (%d); it is started again in %.1f s", self._name, code, self._wait)
        return True

    def end(self) -> None:
        """Ask the program to end in good order."""
        self._stopping = True
        self._signal(signal.SIGTERM)

    def stop(self) -> None:
        """End the program and wait. After a time limit, kill it."""
        self.end()
        if self._answers is not None:
            self._answers.close()
        give_up = time.monotonic() + STOP_LIMIT
        while self.pid is not None:
            try:
                ended, _ = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                ended = self.pid
            if ended:
                self.pid = None
            elif time.monotonic() > give_up:
                self._signal(signal.SIGKILL)
                give_up = float("inf")
            else:
                time.sleep(0.01)

    def _signal(self, number: signal.Signals) -> None:
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

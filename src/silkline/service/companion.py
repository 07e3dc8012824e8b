"""A program that lives beside the supervisor, as its child: started with it, started again if it dies or hangs, ended
with it.

`silkline serve` puts the API there. The two share nothing but the database; what the program needs to know it reads
from its standard input, so that no secret stands in a process list.
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
HEALTHY_AFTER = 10.0  # seconds; who lived that long is started again without a wait
STOP_LIMIT = 10.0

log = logging.getLogger("silkline.companion")


class Companion:
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
        process.returncode = 0  # the supervisor waits for its children itself; tell subprocess not to
        self.pid = process.pid
        with os.fdopen(writing, "wb") as pipe, contextlib.suppress(BrokenPipeError):
            pipe.write(self._says)

    def tend(self) -> float | None:
        """Start it again when it is time to; seconds until then, or None when there is nothing to wait for."""
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
        """Kill it when it has not answered for too long. Seconds to the next look."""
        if self._answers is None or self.pid is None:
            return None
        if (silence := self._answers.silence()) is not None:
            log.error("the %s has not answered for %.0f s; it is killed and started again", self._name, silence)
            self._answers.begin()
            self._signal(signal.SIGKILL)
        return self._answers.every

    def exited(self, pid: int, status: int) -> bool:
        """Told of a child that ended; whether it was ours."""
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
        """Ask it to end in good order."""
        self._stopping = True
        self._signal(signal.SIGTERM)

    def stop(self) -> None:
        """Wait for its end; not for ever."""
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

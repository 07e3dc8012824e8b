"""Starts runners through the fork server. Starts the fork server too, and restarts it if it dies."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec

from silkline.confine.environment import scrubbed
from silkline.errors import SilklineError
from silkline.model.job import Job
from silkline.runner import protocol

READY_TIMEOUT = 60.0
FORK_TIMEOUT = 30.0
# -P: do not import modules from the current folder, where other people may have put files.
FORK_SERVER = (sys.executable, "-P", "-m", "silkline.runner.server")


log = logging.getLogger("silkline.launcher")


class LaunchFailed(SilklineError):
    """No process could be started for the job. This does not count as a failure of the job."""


class Launcher:
    """The supervisor's side of the fork server. Only the thread of the main loop uses it."""

    def __init__(
        self,
        worker_id: str,
        *,
        dialect: str,
        nice: int,
        open_files: int,
        data: Path | None = None,
        fork_server: bool = True,
        environment: Iterable[str] = (),
    ) -> None:
        self._environment = {**scrubbed(environment), protocol.SUPERVISOR_TAG: worker_id}
        self._dialect = dialect
        self._data = data
        self._nice = nice
        self._open_files = open_files
        self._fork_server = fork_server
        self._server: socket.socket | None = None
        self.server_pid: int | None = None

    def launch(self, job: Job, stdout: int, stderr: int, channel: int, marks: int) -> int:
        """Start a process for the attempt and return its pid. The process waits for `protocol.StartAttempt`."""
        launch = protocol.Launch(
            job_id=job.id,
            run_lease=job.run_lease,
            supervisor_pid=os.getpid(),
            nice=self._nice,
            open_files=self._open_files,
        )
        descriptors = [stdout, stderr, channel, marks]
        if not self._fork_server:
            return self._fresh(launch, descriptors)
        try:
            pid = self._fork(launch, descriptors)
        except Exception as error:  # after any error the state of the fork server is unknown: start a new one
            self.stop()
            raise LaunchFailed(f"the fork server did not answer: {error}") from error
        if pid <= 0:
            raise LaunchFailed("the fork server could not start another process")
        return pid

    def warm_up(self) -> None:
        """Start the fork server before the first job needs it."""
        if not self._fork_server or self._server is not None:
            return
        try:
            self._start_server()
        except Exception as error:
            log.warning("the fork server did not start, trying again with the first job: %s", error)
            self.stop()

    def stop(self) -> None:
        # Kill it before its socket is closed. A closed socket means that the supervisor died, and the fork server would
        # then kill every runner.
        if self.server_pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.server_pid, signal.SIGKILL)
            self.server_pid = None
        if self._server is not None:
            self._server.close()
            self._server = None

    def exited(self, pid: int) -> bool:
        """Called when a child has ended. Returns whether that child was the fork server."""
        if pid != self.server_pid:
            return False
        self.server_pid = None
        self.stop()
        return True

    def _fork(self, launch: protocol.Launch, descriptors: list[int]) -> int:
        server = self._server or self._start_server()
        server.settimeout(FORK_TIMEOUT)
        socket.send_fds(server, [msgspec.json.encode(launch)], descriptors)
        answer = protocol.receive(server, protocol.Launched)
        if not isinstance(answer, protocol.Launched):
            raise ConnectionError("it ended")
        return answer.pid

    def _start_server(self) -> socket.socket:
        self._server, theirs = protocol.pair()
        with theirs:
            command = [*FORK_SERVER, str(theirs.fileno()), self._dialect]
            if self._data is not None:
                command.append(str(self._data.absolute()))
            process = self._popen(command, [theirs.fileno()], new_session=True)
        ours, self.server_pid = self._server, process.pid
        ours.settimeout(READY_TIMEOUT)
        if not isinstance(protocol.receive(ours, protocol.Launched), protocol.Launched):
            raise ConnectionError("it did not start")
        return ours

    def _fresh(self, launch: protocol.Launch, descriptors: list[int]) -> int:
        command = [
            sys.executable,
            "-P",
            "-m",
            "silkline.runner",
            msgspec.json.encode(launch).decode(),
            *map(str, descriptors),
        ]
        return self._popen(command, descriptors, new_session=False).pid

    def _popen(self, command: list[str], descriptors: list[int], *, new_session: bool) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            command,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            pass_fds=descriptors,
            start_new_session=new_session,
        )
        process.returncode = 0  # the supervisor waits for its children itself, so `subprocess` must not
        return process

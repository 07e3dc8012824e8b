"""A server process that belongs to the test session: started under guard.py, so that it dies with the session."""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

GUARD = Path(__file__).with_name("guard.py")
SECONDS_TO_START = 120
SECONDS_TO_STOP = 120
# Below the range that Linux hands out to outgoing connections (from 32768): a server that is stopped and started again
# in a test finds its port free, whatever a crawl on the same machine has opened in between.
PORTS = range(20_000, 32_000)


class Daemon:
    """One folder, one port, one process at a time."""

    def __init__(self, name: str, *, user: str = "") -> None:
        self.name = name
        self.user = user
        self.port = free_port()
        self.directory = Path(tempfile.mkdtemp(prefix=f"silkline-{name}-"))
        if user:
            shutil.chown(self.directory, user)
        self._guard: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._guard is not None and self._guard.poll() is None

    @property
    def log(self) -> str:
        path = self.directory / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self, command: Sequence[str | Path], ready: Callable[[], bool]) -> None:
        """Returns when `ready` says that the server answers."""
        if self.running:
            raise RuntimeError(f"{self.name} is running already")
        guarded = [
            sys.executable,
            "-S",
            str(GUARD),
            str(os.getpid()),
            str(self.directory),
            self.user,
            *map(str, command),
        ]
        with (self.directory / "log").open("ab") as log:
            self._guard = subprocess.Popen(
                guarded, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/"
            )
        deadline = time.monotonic() + SECONDS_TO_START
        while not ready():
            if self._guard.poll() is not None:
                raise RuntimeError(f"{self.name} ended with status {self._guard.returncode} at its start:\n{self.log}")
            if time.monotonic() > deadline:
                self.stop(signal.SIGQUIT)
                raise RuntimeError(f"{self.name} did not answer within {SECONDS_TO_START} s:\n{self.log}")
            time.sleep(0.02)

    def stop(self, number: signal.Signals) -> None:
        """Sends the signal and waits for the end. A server that has stopped already stays stopped."""
        if self._guard is None:
            return
        if self.running:
            self._guard.send_signal(number)
        self._guard.wait(SECONDS_TO_STOP)
        self._guard = None

    def remove(self) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.directory, ignore_errors=True)


def free_port() -> int:
    """A port that no other test process is given as long as this one lives."""
    # Not the common generator: Hypothesis gives it the same seed in every process, and then the same ports.
    for port in random.SystemRandom().sample(PORTS, min(200, len(PORTS))):
        if _reserve(port):
            with socket.socket() as probe:
                try:
                    probe.bind(("127.0.0.1", port))
                except OSError:
                    continue
                return port
    raise RuntimeError("no free port was found for a test server")


def _reserve(port: int) -> bool:
    """A server opens its port seconds after it was chosen, and may be stopped in between: a bare look is not enough.

    A name in the abstract namespace belongs to whoever bound it, leaves no file, and is free again when we end.
    """
    name = socket.socket(socket.AF_UNIX)
    try:
        name.bind(f"\0silkline-test-port-{port}")
    except OSError:
        name.close()
        return False
    name.detach()
    return True

"""Starting a runner fails at each possible point: nothing is left behind, and the job goes back to the queue."""

import gc
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from silkline.config import Settings
from silkline.model.database import Database
from silkline.model.job import Job, NewJob, Status
from silkline.runner import protocol
from silkline.service import launcher as launching
from silkline.service.attempts import Attempts
from silkline.service.cgroup import Cgroup, Cgroups
from silkline.service.launcher import Launcher
from silkline.service.output import LogQueue, OutputThread
from silkline.service.runner_process import RunnerProcess
from silkline.store import jobs
from silkline.store.opening import open_database
from tests.support.supervisors import PATIENCE, eventually

# A fork server that is ready, takes one request, and then does what the test wants.
FAILING = """
import os, socket, sys, time
channel = socket.socket(fileno=int(sys.argv[2]))
channel.send(b'{"pid": 0}')
channel.recvmsg(65536, 1000)
match sys.argv[1]:
    case "dies": os._exit(7)
    case "garbage": channel.send(b"\\xff{nonsense")
    case "wrong": channel.send(b'{"pid": "seven"}')
    case "none": channel.send(b'{"pid": -1}')
channel.recv(1)
"""


class CountedCgroup(Cgroup):
    """Not a cgroup of the kernel, which not every machine gives; it says whether it was removed."""

    def __init__(self) -> None:
        self.removed = False

    def add(self, pid: int) -> bool:
        return False

    def processes(self) -> set[int]:
        return set()

    def kill(self) -> None: ...

    def remove(self) -> None:
        self.removed = True


class CountedCgroups(Cgroups):
    def __init__(self) -> None:
        self.made: list[CountedCgroup] = []

    def make(self, name: str) -> Cgroup:
        self.made.append(CountedCgroup())
        return self.made[-1]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(f"sqlite:///{tmp_path / 'silkline.db'}")) as found:
        yield found


@pytest.fixture
def launcher() -> Iterator[Launcher]:
    made = Launcher("worker", dialect="sqlite", nice=0, open_files=256)
    yield made
    made.stop()


@pytest.fixture
def cgroups() -> CountedCgroups:
    return CountedCgroups()


@pytest.fixture
def attempts(tmp_path: Path, database: Database, launcher: Launcher, cgroups: CountedCgroups) -> Attempts:
    settings = Settings(data=tmp_path, database_url=f"sqlite:///{tmp_path / 'silkline.db'}")
    return Attempts(database, settings, launcher, cgroups, OutputThread(), LogQueue())


def claimed(database: Database) -> Job:
    jobs.enqueue(database, NewJob("page", {"url": "https://example.com/"}))
    (job,) = jobs.claim(database, "worker", "here", ["page"], 1)
    return job


def descriptors() -> int:
    """Those of this process; what earlier tests left behind is closed first."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


@pytest.mark.parametrize("how", ["dies", "garbage", "wrong", "none"])
def test_a_fork_server_that_fails(
    how: str, attempts: Attempts, database: Database, launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = claimed(database)
    monkeypatch.setattr(launching, "FORK_SERVER", (sys.executable, "-c", FAILING, how))
    before = descriptors()
    attempts.start(job)
    launcher.stop()
    assert len(attempts) == 0
    assert descriptors() <= before
    found = jobs.get(database, job.id)
    assert (found.status, found.retry_count, found.crash_count) == (Status.QUEUED, 0, 0), "that is not its fault"
    assert found.exit_reason == "not started"


def test_a_runner_that_cannot_be_watched_is_ended(
    attempts: Attempts, database: Database, launcher: Launcher, cgroups: CountedCgroups, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was born, and then something fails: it must not run on while its job goes back to the queue."""
    job = claimed(database)
    launcher.warm_up()
    before = descriptors()
    born: list[int] = []
    launch = launcher.launch

    def noting(*arguments: object) -> int:
        born.append(launch(*arguments))  # type: ignore[arg-type]
        return born[-1]

    def failing(*_: object) -> None:
        raise OSError("too many open files")

    monkeypatch.setattr(launcher, "launch", noting)
    monkeypatch.setattr(RunnerProcess, "watch", failing)
    attempts.start(job)
    (pid,) = born
    eventually("the runner is gone", lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie")
    assert [each.removed for each in cgroups.made] == [True]
    assert attempts.children() == []
    assert descriptors() <= before
    assert jobs.get(database, job.id).status is Status.QUEUED


def test_a_fork_server_that_breaks_leaves_no_process_behind(tmp_path: Path) -> None:
    """What its runners started is ended, also when it ends by an error."""
    ours, theirs = protocol.pair()
    tag = {protocol.SUPERVISOR_TAG: f"worker-{os.getpid()}-broken"}
    left = subprocess.Popen([sys.executable, "-c", "input()"], env={**os.environ, **tag}, stdin=subprocess.PIPE)
    with left, ours:
        with theirs:
            command = [sys.executable, "-m", "silkline.runner.server", str(theirs.fileno()), "sqlite"]
            server = subprocess.Popen(
                command, env={**os.environ, **tag}, pass_fds=[theirs.fileno()], stderr=subprocess.DEVNULL
            )
        assert isinstance(protocol.receive(ours, protocol.Launched), protocol.Launched)
        socket.send_fds(ours, [b"{nonsense"], [])
        assert server.wait(PATIENCE) != 0
        assert left.wait(PATIENCE) == -9

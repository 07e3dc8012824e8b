"""What must go on whatever else goes wrong: the guards, the bell, the slots."""

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from silkline.config import Settings
from silkline.errors import UsageError
from silkline.model.database import Database
from silkline.model.job import AttemptEnd, End, NewJob, Status, Verb
from silkline.reading_marks import ReadingMarks
from silkline.runner import protocol
from silkline.runner.log_file import LogFile
from silkline.service import process_table
from silkline.service.attempts import Attempts
from silkline.service.cgroup import Cgroups
from silkline.service.cleaner import Cleaner
from silkline.service.launcher import Launcher
from silkline.service.output import LogQueue, Output, OutputPipe, OutputThread
from silkline.service.runner_process import RunnerProcess
from silkline.service.supervisor import Supervisor
from silkline.store import job_removal, jobs
from silkline.store.opening import open_database
from silkline.warc_files import folder_of
from tests.support.supervisors import STALE, Yard, eventually
from tests.support.supervisors import yard as open_yard


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return open_database(f"sqlite:///{tmp_path / 'silkline.db'}")


def claimed(database: Database) -> jobs.Job:
    jobs.enqueue(database, NewJob("diagnostic", {}))
    (job,) = jobs.claim(database, "worker", "host", ["diagnostic"], 1)
    return job


def test_the_watchdog_goes_on_after_a_log_that_cannot_be_deleted(yard: Yard) -> None:
    watching = yard.ready(yard.start("watching", keep_jobs_count=1, slots=0, **STALE))
    for id in yard.add("nothing", many=3):
        (watching.data / "logs" / f"{id}.log").mkdir(parents=True)
    other = yard.start("other", **STALE)
    eventually("the cleaner trips", lambda: "the watchdog run failed" in watching.log)
    (orphan,) = yard.add("sleep", seconds=600)
    yard.runner_of(orphan)
    other.kill()
    eventually("the job is rescued", lambda: yard.job(orphan).status is Status.QUEUED)


def test_without_a_bell_jobs_run_all_the_same(tmp_path: Path) -> None:
    with open_yard(f"sqlite:///{tmp_path / 'silkline.db'}", tmp_path) as yard:
        (tmp_path / "silkline.db-wakeup").write_text("no folder can be here")
        supervisor = yard.ready(yard.start())
        (id,) = yard.add("nothing")
        yard.wait_for(id, Status.COMPLETED)
        assert supervisor.log.count("database notifications are not available") == 1


def test_a_data_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    in_the_way = tmp_path / "data"
    in_the_way.write_text("")
    settings = Settings(data=in_the_way, database_url=f"sqlite:///{tmp_path / 'silkline.db'}")
    with pytest.raises(UsageError, match=f"the data directory {in_the_way} cannot be used"):
        Supervisor(settings).run()


def test_a_start_that_fails_leaves_no_file_open(tmp_path: Path, database: Database) -> None:
    """Where the number of open files is exhausted, it would never recover."""
    script = """
import os, resource, sys
from tests.service.test_guards import attempts_without_launcher, claimed, open_database
database = open_database(sys.argv[1])
attempts, job = attempts_without_launcher(database), claimed(database)
def count(): return len(os.listdir("/proc/self/fd"))
before = count()
for spare in range(8):
    resource.setrlimit(resource.RLIMIT_NOFILE, (before + spare, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    try:
        attempts._launch(job)
    except OSError:
        pass
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    assert count() == before, (spare, before, count())
"""
    root = Path(__file__).resolve().parents[2]
    subprocess.run([sys.executable, "-c", script, f"sqlite:///{tmp_path / 'silkline.db'}"], check=True, cwd=root)


def attempts_without_launcher(database: Database) -> Attempts:
    class NoLauncher(Launcher):
        def launch(self, *_: object) -> int:
            raise OSError("no process")

    launcher = NoLauncher("worker", dialect="sqlite", nice=0, open_files=256)
    settings = Settings(data=Path(tempfile.mkdtemp()), database_url="sqlite:///nothing")
    return Attempts(database, settings, launcher, Cgroups("worker", wanted=False), OutputThread(), LogQueue())


def test_a_job_that_took_long_to_start_is_not_given_back(database: Database) -> None:
    """The heartbeat has seen it twice without a process; then it got one."""
    attempts, job = attempts_without_launcher(database), claimed(database)
    ours, theirs = protocol.pair()
    with ours, theirs:
        attempts._children[1] = child_of(job, 1, ours)
        attempts.release_unknown({(job.id, job.run_lease)}, "worker")
        assert jobs.get(database, job.id).status is Status.RUNNING
        attempts._children.clear()
        attempts.release_unknown({(job.id, job.run_lease)}, "worker")
        assert jobs.get(database, job.id).status is Status.QUEUED


def child_of(job: jobs.Job, pid: int, channel: socket.socket) -> RunnerProcess:
    output = Output(job.id, 1, LogFile(Path(os.devnull), 1 << 20), LogQueue(), 10)
    return RunnerProcess(job, pid, channel, output, None, ReadingMarks.open(""))


def test_a_kill_that_comes_after_the_end_does_not_change_it(database: Database) -> None:
    job = claimed(database)
    ours, theirs = protocol.pair()
    runner = subprocess.Popen(["true"])
    os.waitid(os.P_PID, runner.pid, os.WEXITED | os.WNOWAIT)
    child, pump = child_of(job, runner.pid, ours), OutputThread()
    pump.start()
    streams = [os.pipe(), os.pipe()]
    child.watch(pump, streams[0][0], streams[1][0])
    protocol.send(theirs, protocol.RunnerEvent(end=End.COMPLETED))
    for _, writing in streams:
        os.close(writing)
    theirs.close()
    child.kill(AttemptEnd(End.CRASHED, "timeout"))
    child.exited(os.waitpid(runner.pid, 0)[1])
    runner.returncode = 0
    child.close()
    pump.stop()
    assert child.ended is not None
    assert child.ended.end is End.COMPLETED


def test_what_a_runner_said_last_counts_however_late_it_is_read(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine stands still, and an escaped process holds the streams open: a pause is not taken for completed."""
    monkeypatch.setattr("silkline.service.runner_process.STREAMS_TIMEOUT", 0.01)
    given_up: list[OutputPipe] = []

    class Late(OutputThread):
        def abandon(self, source: OutputPipe) -> None:
            super().abandon(source)
            given_up.append(source)
            if len(given_up) == 3:
                self.start()

    job = claimed(database)
    ours, theirs = protocol.pair()
    runner = subprocess.Popen(["true"])
    child, pump = child_of(job, runner.pid, ours), Late()
    streams = [os.pipe(), os.pipe()]
    child.watch(pump, streams[0][0], streams[1][0])
    os.write(streams[1][1], b"some words\n")
    for _ in range(50):
        protocol.send(theirs, protocol.RunnerEvent(message="a line"))
    protocol.send(theirs, protocol.RunnerEvent(end=End.PAUSED))
    child.exited(os.waitpid(runner.pid, 0)[1])
    runner.returncode = 0
    child.close()
    pump.stop()
    theirs.close()
    for _, writing in streams:
        os.close(writing)
    assert child.ended is not None
    assert child.ended.end is End.PAUSED
    assert "some words" in child.output.tail


def test_children_are_found_where_the_kernel_does_not_list_them(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    child = subprocess.Popen(["sleep", "600"])
    try:
        assert child.pid in process_table.own_children(tmp_path)
        assert child.pid in process_table.own_children()
    finally:
        child.kill()
        child.wait()


def test_retention_leaves_the_log_of_a_job_that_runs_again(tmp_path: Path, database: Database) -> None:
    settings = Settings(data=tmp_path)
    job = claimed(database)
    settings.logs.mkdir()
    log = settings.logs / f"{job.id}.log"
    log.write_text("a line\n")
    Cleaner(database, settings)._delete([job.id])
    assert log.exists()


def test_retention_takes_the_files_along(tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(data=tmp_path, keep_jobs_count=1)
    ids = [jobs.enqueue(database, NewJob("site", {}))[0].id for _ in range(3)]
    for id in ids:
        jobs.wish(database, id, Verb.CANCEL)
        folder_of(tmp_path, id).mkdir(parents=True)
        settings.logs.mkdir(exist_ok=True)
        (settings.logs / f"{id}.log").write_text("a line\n")
        (settings.logs / f"{id}.log.1").write_text("an older line\n")
    with monkeypatch.context() as patched:
        patched.setattr(job_removal, "_delete_data", lambda *_: sys.exit(137))
        with pytest.raises(SystemExit):
            job_removal.delete(database, ids[0])
    assert Cleaner(database, settings).clean() == 1, "one of two; the third was being deleted when somebody died"
    assert [path.name for path in (tmp_path / "warc").iterdir()] == [ids[2]]
    assert sorted(path.name for path in settings.logs.iterdir()) == [f"{ids[2]}.log", f"{ids[2]}.log.1"]

"""The wakeup: whoever stores a job wakes a supervisor in another process; the dead are not waited for."""

import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

from silkline.model.database import Database, WakeupListener
from silkline.store import workers
from silkline.store.wakeup import PipeListener, write_to_pipes
from tests.store.given import queued, rescued, running

LISTEN = """
import select, sys
from silkline.store import workers
from silkline.store.opening import open_database
database = open_database(sys.argv[1])
workers.register(database, id="w1", host="h", pid=1, boot_id="b", slots=1, version="1")
workers.set_idle(database, "w1", True)
listener = database.listen("w1")
print("listening", flush=True)
assert select.select([listener], [], [], 120)[0], "nobody rang"
listener.drain()
assert not select.select([listener], [], [], 0)[0], "it was not drained"
listener.close()
database.close()
print("woken", flush=True)
"""


def woken(listener: WakeupListener, within: float = 60) -> bool:
    return bool(select.select([listener], [], [], within)[0])


def idle_worker(database: Database) -> None:
    workers.register(database, id="w1", host="h", pid=1, boot_id="b", slots=1, version="1")
    workers.set_idle(database, "w1", True)


def test_a_new_job_wakes_a_listener_in_another_process(database: Database, migrated_url: str) -> None:
    command = [sys.executable, "-c", LISTEN, migrated_url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listener:
        assert listener.stdout
        assert listener.stdout.readline() == "listening\n"
        queued(database)
        assert listener.stdout.readline() == "woken\n"
        assert listener.wait(60) == 0


def test_a_rescued_job_rings_too(database: Database) -> None:
    idle_worker(database)
    job = running(database)
    listener = database.listen("w1")
    listener.drain()
    rescued(database, job)
    assert woken(listener)
    listener.drain()
    assert not woken(listener, 0)
    listener.close()


def test_every_listener_is_woken(database: Database) -> None:
    idle_worker(database)
    listeners = [database.listen(f"w{number}") for number in range(3)]
    queued(database)
    assert all(woken(listener) for listener in listeners)
    for listener in listeners:
        listener.close()


def test_postgres_rings_only_when_somebody_is_idle(postgres_database: Database) -> None:
    listener = postgres_database.listen("w1")
    queued(postgres_database)
    postgres_database.wake_supervisors()
    idle_worker(postgres_database)
    workers.set_idle(postgres_database, "w1", False)
    queued(postgres_database)
    assert not woken(listener, 0)
    workers.set_idle(postgres_database, "w1", True)
    queued(postgres_database)
    assert woken(listener)
    listener.close()


def test_pipes_of_the_dead_are_swept_away(sqlite_database: Any) -> None:
    folder = sqlite_database._pipes
    folder.mkdir()
    os.mkfifo(folder / "dead")
    living = sqlite_database.listen("living")
    queued(sqlite_database)
    assert [pipe.name for pipe in folder.iterdir()] == ["living"]
    assert woken(living)
    living.close()
    assert list(folder.iterdir()) == []


def test_a_pipe_left_by_a_crash_is_taken_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "w1")
    listener = PipeListener(tmp_path, "w1")
    write_to_pipes(tmp_path)
    assert woken(listener)
    listener.close()


def test_ringing_at_a_full_pipe_a_strange_file_or_nothing_is_no_error(tmp_path: Path) -> None:
    write_to_pipes(tmp_path / "nowhere")
    (tmp_path / "folder").mkdir()
    listener = PipeListener(tmp_path, "w1")
    for _ in range(70_000):
        if os.write(listener.fileno(), b"!") and len(select.select([], [listener], [], 0)[1]) == 0:
            break
    write_to_pipes(tmp_path)
    listener.drain()
    assert not woken(listener, 0)
    listener.close()

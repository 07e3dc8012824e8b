"""`silkline resume`: one job under a supervisor of its own, at a terminal."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from silkline.cli import codes
from silkline.model.job import Status, Verb
from silkline.store import jobs
from tests.support.supervisors import PATIENCE, QUICK, STALE, Yard, alive, eventually
from tests.support.supervisors import yard as open_yard

Resume = Callable[..., "subprocess.Popen[str]"]


def resumed(yard: Yard, id: str, data: Path, command: tuple[str, ...] = (), **settings: Any) -> subprocess.Popen[str]:
    variables = {f"SILKLINE_{name.upper()}": str(value) for name, value in {**QUICK, **settings}.items()}
    return subprocess.Popen(
        [*command, sys.executable, "-m", "silkline", "resume", id],
        env={**os.environ, **variables, "SILKLINE_DATABASE_URL": yard.url, "SILKLINE_DATA": str(data)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        cwd=yard.folder,
        text=True,
    )


@pytest.fixture
def resume(yard: Yard) -> Iterator[Resume]:
    """Starts `silkline resume ID` with a data directory of its own."""
    started: list[subprocess.Popen[str]] = []

    def start(id: str, command: tuple[str, ...] = (), **settings: Any) -> subprocess.Popen[str]:
        process = resumed(yard, id, yard.folder / "here", command, **settings)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def paused(yard: Yard, do: str, **payload: Any) -> str:
    (id,) = yard.add(do, **payload)
    jobs.wish(yard.database, id, Verb.PAUSE)
    return id


def told_to_pause(yard: Yard, id: str) -> bool:
    return yard.job(id).desired == "pause"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_interrupted_or_hung_up_it_pauses(yard: Yard, resume: Resume, number: signal.Signals) -> None:
    id = paused(yard, "work", steps=100_000, seconds=0.01)
    process = resume(id)
    yard.wait_for_results(id)
    process.send_signal(number)
    assert process.wait(PATIENCE) == codes.PAUSED
    assert (yard.job(id).status, yard.job(id).crash_count) == (Status.PAUSED, 0)


def test_under_nohup_it_goes_on(yard: Yard, resume: Resume) -> None:
    id = paused(yard, "work", steps=100_000, seconds=0.01)
    process = resume(id, command=("nohup",))
    yard.wait_for_results(id)
    process.send_signal(signal.SIGHUP)
    yard.wait_for_results(id, len(yard.results_of(id)) + 20)
    assert yard.job(id).desired == "run"


def test_interrupted_twice_it_leaves_a_job_that_somebody_else_runs(yard: Yard, resume: Resume) -> None:
    (id,) = yard.add("disobey", seconds=600)
    yard.start(kill_after=600)
    runner = yard.runner_of(id)
    process = resume(id)
    eventually("it watches", lambda: list((yard.folder / "here" / "workers").glob("*.lock")))
    process.send_signal(signal.SIGINT)
    eventually("it wishes for a pause", lambda: told_to_pause(yard, id))
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == codes.PAUSED
    assert yard.job(id).pid == runner
    assert process.stderr is not None
    assert "is pausing" in process.stderr.read()


def test_it_goes_on_with_a_job_whose_supervisor_elsewhere_dies(yard: Yard, resume: Resume) -> None:
    (id,) = yard.add("work", steps=100_000, seconds=0.01)
    elsewhere = yard.start("elsewhere", **STALE)
    yard.runner_of(id)
    lease = yard.job(id).run_lease
    resume(id, **STALE)
    eventually("it watches", lambda: list((yard.folder / "here" / "workers").glob("*.lock")))
    elsewhere.kill()
    yard.runner_of(id, after=lease)


def test_it_ends_when_the_data_folder_is_removed(tmp_path: Path) -> None:
    """Nobody could store how the job ended, so it would wait for ever."""
    data, away = tmp_path / "data", tmp_path / "away"
    with open_yard(f"sqlite:///{data / 'silkline.db'}", tmp_path) as place, ExitStack() as stack:
        id = paused(place, "work", steps=100_000, seconds=0.01)
        process = resumed(place, id, data)
        stack.callback(process.communicate)
        stack.callback(process.kill)
        place.wait_for_results(id)
        runner = place.runner_of(id)
        data.rename(away)
        _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 1
        assert "was removed or replaced while Silkline used it" in said
        assert len(said.splitlines()) < 20
        eventually("its runner ends too", lambda: not alive(runner))
        shutil.rmtree(data, ignore_errors=True)
        away.rename(data)

"""Workers of other people, and what they do to their own process: the supervisor says exactly what became of them."""

import os
import signal
import sys
from pathlib import Path

import pytest

from silkline.model.job import Job, NewJob, Status
from silkline.store import jobs
from tests.support.supervisors import Yard, alive, eventually

PLUGIN = """
import os, signal, sys
from silkline.errors import Permanent
from silkline.model.spec import Spec

class OddSpec(Spec):
    do: str

def run(context):
    return ACTS[context.spec.do](context)

run.spec = OddSpec

def odd_text(context):
    context.log.warning("a name that is no text: %s", os.fsdecode(b"caf\\xe9"))

def odd_failure(context):
    raise Permanent(os.fsdecode(b"caf\\xe9 and a\\0 nul"))

def close_output(context):
    sys.stdout.close()
    sys.stderr = None

def close_everything(context):
    os.closerange(0, 256)

def kill_group(context):
    os.killpg(0, signal.SIGKILL)

def exit_zero(context):
    sys.exit(0)

def interrupt(context):
    raise KeyboardInterrupt

def fill_the_socket(context):
    while not os.path.exists("go"):
        context.control.wait(0.01)
    for _ in range(5_000):
        context.log.warning("x" * 1_000)
    open("full", "w").close()
    return context.control.wait(600)

def daemonise(context):
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.pause()

ACTS = {name: value for name, value in globals().items() if callable(value)}
"""


@pytest.fixture
def plugins(tmp_path: Path) -> dict[str, str]:
    """The environment of a supervisor with a plugin installed: kind `odd`, and `broken`, which cannot be imported."""
    folder = tmp_path / "plugins"
    (folder / "odd-1.0.dist-info").mkdir(parents=True)
    (folder / "odd_kind.py").write_text(PLUGIN)
    (folder / "broken_kind.py").write_text("import a_module_that_nobody_has\n")
    (folder / "odd-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n")
    (folder / "odd-1.0.dist-info" / "entry_points.txt").write_text(
        "[silkline.kinds]\nodd = odd_kind:run\nbroken = broken_kind:run\n"
    )
    return {"PYTHONPATH": ":".join([str(folder), *filter(None, sys.path)])}


def run(yard: Yard, kind: str, **payload: str) -> Job:
    (id,) = jobs.enqueue_many(yard.database, [NewJob(kind, payload, max_retries=0)])
    return yard.wait_for_end([id])[0]


def test_each_ends_with_its_own_reason(yard: Yard, plugins: dict[str, str]) -> None:
    supervisor = yard.start(environment=plugins)
    ended = {
        do: (job.status, job.exit_reason)
        for do in ("odd_failure", "close_output", "kill_group", "exit_zero", "interrupt", "daemonise")
        if (job := run(yard, "odd", do=do))
    }
    assert ended == {
        "odd_failure": (Status.FAILED, "exit 65: caf? and a\N{REPLACEMENT CHARACTER} nul"),
        "close_output": (Status.COMPLETED, "completed"),
        "kill_group": (Status.FAILED, "crashed (signal 9)"),
        "exit_zero": (Status.FAILED, "crashed (exit 1)"),
        "interrupt": (Status.FAILED, "crashed (exit 1)"),
        "daemonise": (Status.COMPLETED, "completed"),
    }
    eventually("only the fork server is left", lambda: len(yard.processes_of(supervisor)) <= 1)


def test_text_that_is_no_text_is_logged(yard: Yard, plugins: dict[str, str]) -> None:
    yard.start(environment=plugins)
    job = run(yard, "odd", do="odd_text")
    assert job.status is Status.COMPLETED, job.error_message
    eventually("the line is stored", lambda: "a name that is no text: caf?" in yard.lines(job.id))


def test_a_kind_that_cannot_be_imported_says_so(yard: Yard, plugins: dict[str, str]) -> None:
    yard.start(environment=plugins)
    job = run(yard, "broken")
    assert job.exit_reason == "crashed (ModuleNotFoundError)"
    assert "a_module_that_nobody_has" in (job.error_message or "")


def test_a_kind_that_closes_every_file_harms_nobody_else(yard: Yard, plugins: dict[str, str]) -> None:
    yard.start(environment=plugins)
    run(yard, "odd", do="close_everything")
    (id,) = yard.add("work", steps=2)
    yard.wait_for(id, Status.COMPLETED)


def test_an_end_that_could_not_be_told_is_not_taken_for_completed(yard: Yard, plugins: dict[str, str]) -> None:
    supervisor = yard.start(environment=plugins)
    (id,) = jobs.enqueue_many(yard.database, [NewJob("odd", {"do": "fill_the_socket"}, max_retries=0)])
    runner, lease = yard.runner_of(id), yard.job(id).run_lease
    supervisor.signal(signal.SIGSTOP)
    (supervisor.data / "go").touch()
    eventually("nobody reads what it says", (supervisor.data / "full").exists)
    os.kill(runner, signal.SIGTERM)
    eventually("it lets go", lambda: not alive(runner))
    supervisor.signal(signal.SIGCONT)
    yard.runner_of(id, after=lease)
    assert yard.job(id).crash_count == 0

"""`silkline doctor` says what is wrong and what to do; `silkline config` says where a value came from."""

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from silkline.cli import checks
from silkline.config import SETTINGS, Settings
from silkline.model.database import Database
from silkline.model.job import Job
from silkline.store import jobs, migrate, workers
from silkline.store.opening import open_database
from tests.acceptance.conftest import Finished, Silkline


def levels(doctor: Finished) -> dict[str, str]:
    return {check["name"]: check["level"] for check in doctor.json}


def test_a_new_machine_is_well_and_nothing_is_made(silkline: Silkline) -> None:
    doctor = silkline("doctor")
    assert doctor.code == 0, doctor
    assert "ok    SQLite: version 3." in doctor.out
    assert "created when first needed" in doctor.out
    assert not (silkline.folder / "data").exists()


def test_what_confines_readers_on_this_machine_is_said(silkline: Silkline) -> None:
    line = next(line for line in silkline("doctor").out.splitlines() if " sandbox: " in line)
    assert line.startswith(
        "ok    sandbox: the processes that parse pages run with no new privileges, no core dumps, Landlock version "
    )
    assert line.endswith(", seccomp: no files, no sockets, no programs")


def test_a_machine_without_a_sandbox_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("silkline.confine.landlock.version", lambda: 0)
    monkeypatch.setattr("silkline.confine.roles.architecture", lambda: None)
    found = checks.sandbox()
    assert (found.level, found.says) == (
        "warn",
        "the processes that parse pages run with no new privileges, no core dumps; they can still open files or "
        "sockets",
    )
    assert "Landlock (Linux 5.13) and seccomp (x86_64 or aarch64)" in found.advice


def test_a_variable_with_a_wrong_letter_is_named() -> None:
    found = list(checks.variables({"SILKLINE_SLOT": "4", "SILKLINE_DATA": "x", "SILKLINE_IMAGE": "x", "SLOTS": "1"}))
    assert [(check.level, check.says, check.advice) for check in found] == [
        (checks.WARN, "SILKLINE_SLOT is not a setting", "Did you mean SILKLINE_SLOTS?")
    ]


def test_a_mistyped_variable_is_part_of_the_report(silkline: Silkline) -> None:
    assert "SILKLINE_MEMORY_LIMITS is not a setting" in silkline("doctor", SILKLINE_MEMORY_LIMITS="1G").out


def test_both_databases_are_looked_at(on_both: Silkline) -> None:
    with closing(open_database(on_both.database_url)) as database:
        workers.register(database, id="w", host="h", pid=1, boot_id="b", slots=2, version="0")
    doctor = on_both("doctor", "--json")
    assert doctor.code == 0, doctor
    found = levels(doctor)
    assert (found["database"], found["workers"], found["running jobs"]) == ("ok", "ok", "ok")
    assert found.get("clock", "ok") == "ok"
    assert ("clock" in found) is on_both.database_url.startswith("postgres")


def test_a_silent_worker_is_named(silkline: Silkline, store: Database, enqueue: Callable[..., Job]) -> None:
    job = enqueue()
    jobs.claim(store, "gone", "a-host", ["page"], 1)
    doctor = silkline(
        "doctor", SILKLINE_STALE_AFTER="0.003", SILKLINE_FENCE_AFTER="0.002", SILKLINE_HEARTBEAT_INTERVAL="0.001"
    )
    assert doctor.code == 0, doctor
    line = next(line for line in doctor.out.splitlines() if "running jobs" in line)
    assert line.startswith("warn  running jobs: 1 without a heartbeat for up to ")
    assert line.endswith(f", for example {job.id}")
    assert "start one with `silkline worker`" in doctor.out


def test_an_older_database_is_left_as_it_is(silkline: Silkline, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'data' / 'silkline.db'}"
    with closing(open_database(url, upgrade=False)) as database:
        migrate.upgrade(database, to=1)
        assert levels(silkline("doctor", "--json"))["database"] == "warn"
        assert migrate.revision(database) == 1


def test_what_is_broken_fails(silkline: Silkline, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    doctor = silkline(
        *("doctor", "--json", "--data", str(tmp_path / "file" / "data")),
        SILKLINE_DATABASE_URL="postgresql://me:secret@127.0.0.1:1/x",
        SILKLINE_DISK_FREE_MIN=str(1 << 60),
    )
    assert doctor.code == 1
    found = levels(doctor)
    assert {name for name, level in found.items() if level == "fail"} == {"data directory", "disk", "database"}
    assert "secret" not in doctor.out


@pytest.mark.parametrize(
    ("version", "level"),
    [("3.51.2", "warn"), ("3.51.3", "ok"), ("3.54.1", "ok"), ("3.7.0", "warn"), ("3.40.1", "warn")],
)
def test_sqlite_with_the_wal_reset_bug(version: str, level: str) -> None:
    assert checks.sqlite(version).level == level


@pytest.mark.parametrize(("seconds", "level"), [(0.2, "ok"), (-4, "ok"), (60, "warn"), (-60, "warn")])
def test_the_clock(seconds: float, level: str) -> None:
    assert checks.clock(timedelta(seconds=seconds)).level == level


def test_memory_control(tmp_path: Path) -> None:
    process = tmp_path / "self"
    process.write_text("1:name=systemd:/other\n0::/ours\n")
    assert "no cgroup v2" in checks.memory_control(tmp_path, process).says
    (tmp_path / "ours").mkdir()
    (tmp_path / "cgroup.controllers").write_text("cpu memory\n")
    (tmp_path / "ours" / "cgroup.controllers").write_text("cpu\n")
    assert "no memory controller" in checks.memory_control(tmp_path, process).says
    (tmp_path / "ours" / "cgroup.controllers").write_text("cpu memory\n")
    assert checks.memory_control(tmp_path, process).level == "ok"


def test_a_browser_elsewhere_is_named_without_its_token() -> None:
    check = checks.chromium(Settings(renderer_url="wss://me:hush@browser/?token=hush"))
    assert check.says == "a running browser at wss://me:***@browser/?token=***"


def test_config_tells_where_a_value_came_from(silkline: Silkline) -> None:
    (silkline.folder / "silkline.toml").write_text('slots = 5\nnice = 7\ncontact = "me@example.com"\n')
    environment = {
        "SILKLINE_SLOTS": "6",
        "DATABASE_URL": "postgresql://me:hush@db/x?password=hush",
        "SILKLINE_API_TOKEN": "hush",
    }
    found = silkline("config", "--json", "--data", "elsewhere", **environment)
    assert "hush" not in found.out
    settings = {each["name"]: each for each in found.json}
    assert settings.keys() == SETTINGS.keys()
    where = {name: (each["value"], each["source"]) for name, each in settings.items()}
    assert where["data"] == ("elsewhere", "command line")
    assert where["slots"] == (6, "environment, SILKLINE_SLOTS")
    assert where["database_url"] == ("postgresql://me:***@db/x?password=***", "environment, DATABASE_URL")
    assert where["api_token"] == ("***", "environment, SILKLINE_API_TOKEN")
    assert where["nice"] == (7, "silkline.toml")
    assert where["max_retries"] == (3, "default")
    table = silkline("config", **environment).out.splitlines()
    assert table[0].split() == ["SETTING", "VALUE", "FROM"]
    assert len(table) == 1 + len(SETTINGS)

"""What a supervisor does when it is told something by a signal."""

import os
import signal
from pathlib import Path

from silkline.model.job import Status
from tests.support.supervisors import SupervisorProcess, Yard, eventually


def test_settings_that_cannot_be_read_again_change_nothing(yard: Yard) -> None:
    (id,) = yard.add("sleep", seconds=600)
    supervisor = yard.start()
    runner = yard.runner_of(id)
    (supervisor.data / "silkline.toml").write_text("slots = = 1\n")
    supervisor.signal(signal.SIGHUP)
    eventually("it says so", lambda: "the settings stay as they are" in supervisor.log)
    assert supervisor.process.poll() is None
    assert (yard.job(id).status, yard.job(id).pid) == (Status.RUNNING, runner)


def test_fewer_slots_than_running_jobs_let_it_rest(yard: Yard) -> None:
    settings = yard.folder / "data" / "silkline.toml"
    settings.parent.mkdir()
    settings.write_text("slots = 3\n")
    ids = yard.add("sleep", many=3, seconds=600)
    supervisor = yard.start()
    for id in ids:
        yard.runner_of(id)
    before = _cpu_of_heartbeats(yard, supervisor, ids[0])
    settings.write_text("slots = 1\n")
    supervisor.signal(signal.SIGHUP)
    eventually("it has fewer slots", lambda: "settings read again: 1 slots" in supervisor.log)
    after = _cpu_of_heartbeats(yard, supervisor, ids[0])
    assert after < 4 * before + 0.2, "it turns round and round"
    assert all(yard.job(id).status is Status.RUNNING for id in ids)


def _cpu_of_heartbeats(yard: Yard, supervisor: SupervisorProcess, id: str) -> float:
    """Seconds of CPU that the supervisor used during a number of heartbeats."""
    used, heartbeat = _cpu(supervisor.process.pid), yard.job(id).heartbeat_seq
    eventually("its heart beats", lambda: yard.job(id).heartbeat_seq >= heartbeat + 8)
    return _cpu(supervisor.process.pid) - used


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

"""The image's own command as PID 1, with the image's user, a read-only root, and no capability.

The root is this machine's, so that the test is short; `make image-test` does the same in the root that the Dockerfile
makes. PID 1 is Silkline itself here, without tini before it: it must reap and drain even so.
"""

import signal
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from silkline.model.job import NewJob, Status
from silkline.store import jobs, results
from silkline.store.opening import open_database
from tests.conftest import ROOT
from tests.support.container import DATA, NONE, Container, can_unshare, in_this_root
from tests.support.dockerfile import image, stages
from tests.support.supervisors import ENDLESS, QUICK, eventually

IMAGE = image(stages(ROOT / "Dockerfile"), "silkline")
TINI = ["/usr/bin/tini", "--", "silkline"]
HERE = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONPATH": str(ROOT / "src"), "TMPDIR": f"{DATA}/tmp", "HOME": DATA}


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Container]:
    if not can_unshare():
        pytest.skip(NONE)
    assert IMAGE.start[: len(TINI)] == TINI
    command = [sys.executable, "-m", "silkline", *IMAGE.start[len(TINI) :]]
    (tmp_path / "data" / "tmp").mkdir(parents=True)
    (tmp_path / "data" / "token").write_text("a secret of the operator\n")
    ours = {**QUICK, "data": DATA, "api_token_file": f"{DATA}/token"}
    settings = {f"SILKLINE_{name.upper()}": str(value) for name, value in ours.items()}
    environment = {**IMAGE.environment, **HERE, **settings}
    with closing(in_this_root(command, tmp_path / "data", user=IMAGE.user, environment=environment)) as started:
        yield started


def test_the_command_of_the_image_serves_and_drains_as_pid_1(container: Container, tmp_path: Path) -> None:
    health = [sys.executable, *IMAGE.health[1:-1], str(ROOT / "deploy" / Path(IMAGE.health[-1]).name)]
    eventually("the health check passes", lambda: container.execute(*health).returncode == 0)

    seen = container.execute("sh", "-c", "id -u; id -g; cat /proc/1/comm; grep -h CapEff /proc/1/status")
    assert seen.stdout.split() == [*IMAGE.user.split(":"), "python", "CapEff:", "0" * 16], seen
    for folder in ("/", "/etc", "/usr", "/tmp", str(ROOT)):
        assert container.execute("touch", f"{folder}/written").returncode != 0, folder
    assert not (tmp_path / "data" / "not-read-only").exists()
    assert "a secret" not in container.execute("cat", "/proc/1/environ").stdout

    def orphan_ended() -> bool:
        container.execute("sh", "-c", f"(sleep 0.1; touch {DATA}/orphan) &")  # its parent ends first
        return (tmp_path / "data" / "orphan").exists()

    eventually("an orphan has ended", orphan_ended)
    eventually("PID 1 has reaped the orphan", lambda: not container.unreaped())

    with closing(open_database(f"sqlite:///{tmp_path / 'data' / 'silkline.db'}")) as database:
        job, _ = jobs.enqueue(database, NewJob("diagnostic", {"do": "work", **ENDLESS}))
        eventually("the job has results", lambda: results.count(database, job.id))
        assert container.stop(getattr(signal, IMAGE.stop_signal)) == 0, container.log
        ended = jobs.get(database, job.id)
        assert (ended.status, ended.crash_count) == (Status.QUEUED, 0), container.log
    assert "1 running jobs save their checkpoints and go back to the queue" in container.log

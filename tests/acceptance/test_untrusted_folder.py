"""The current folder may be anybody's: its modules are not imported, and settings that others can write are refused."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from silkline.sample.server import SampleServer
from tests.acceptance.conftest import Silkline

MODULES = ("uvloop", "tomllib", "pycurl", "msgspec", "silkline")


def test_modules_in_the_current_folder_are_not_imported(silkline: Silkline) -> None:
    for name in MODULES:
        (silkline.folder / f"{name}.py").write_text("open('imported', 'a').write(__name__)\n")
    with SampleServer() as site:
        # As the installed command starts: it does not look into the current folder; what it starts must not either.
        command = [sys.executable, "-P", "-m", "silkline", "crawl", site.url, "--speed", "max", "--limit", "2"]
        done = subprocess.run(command, cwd=silkline.folder, env=silkline.environment(), check=False)
        assert done.returncode == 0
    assert not (silkline.folder / "imported").exists()


def test_settings_that_everybody_can_write_are_refused(silkline: Silkline) -> None:
    file = silkline.folder / "silkline.toml"
    file.write_text("slots = 3\n")
    file.chmod(0o666)
    silkline("jobs", "ls").refused(2, "silkline.toml can be written by every user", "chmod o-w")
    file.chmod(0o644)
    assert silkline("jobs", "ls").code == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
def test_settings_of_another_user_are_refused(silkline: Silkline) -> None:
    file = silkline.folder / "silkline.toml"
    file.write_text("slots = 3\n")
    os.chown(file, 65534, 65534)
    silkline("jobs", "ls").refused(2, "silkline.toml belongs to another user")


@pytest.mark.parametrize("closed", [">&-", "<&-", "2>&-", ">&- 2>&- <&-"])
def test_a_closed_stream_is_no_error(silkline: Silkline, closed: str) -> None:
    command = " ".join([*silkline.command("jobs", "show", "zzz"), closed])
    done = subprocess.run(["sh", "-c", command], cwd=silkline.folder, env=silkline.environment(), check=False)
    assert done.returncode == 5


def test_a_full_device_is_one_sentence(silkline: Silkline) -> None:
    with SampleServer() as site:
        silkline("crawl", site.url, "--speed", "max", "--limit", "2")
    done = silkline("results", "last", "--format", "csv", "-o", str(Path("/dev/full")))
    done.refused(2, "/dev/full cannot be written: No space left on device")


def test_a_job_that_nobody_will_run_says_how_to_run_it(silkline: Silkline) -> None:
    with SampleServer() as site:
        silkline("crawl", site.url, "--speed", "max", "--limit", "2", "--detach")
        silkline("jobs", "stop", "last")
        done = silkline("jobs", "retry", "last")
        assert "No worker is running" in done.err
        assert "silkline resume" in done.err

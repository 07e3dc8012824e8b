"""Other users of the machine read nothing of the data directory, whatever the umask, and also what is there already."""

import os
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from silkline.private_files import repair_folder
from silkline.store.opening import open_database
from silkline.warc_files import folder_of
from tests.support.served import Served


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> list[str]:
    found = [folder, *folder.rglob("*")]
    return [str(path) for path in found if not path.is_symlink() and stat.S_IMODE(path.lstat().st_mode) & 0o077]


def test_nothing_of_a_new_data_directory_is_for_others(tmp_path: Path, open_umask: None) -> None:
    data = tmp_path / "data"
    with closing(Served(f"sqlite:///{data / 'silkline.db'}", tmp_path / "home", data=str(data))) as server:
        client = server.ready()
        client.wait_for(client.job(do="work", steps=3), "completed")
        assert (data / "silkline.db-wal").exists()
        found = [path for path in open_to_others(data) if not path.startswith(str(data / "serve.log"))]
        assert found == []
        assert stat.S_IMODE(data.stat().st_mode) == 0o700
        assert stat.S_IMODE((data / "silkline.db").stat().st_mode) == 0o600


def test_what_is_there_already_is_repaired_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, open_umask: None
) -> None:
    data = tmp_path / "data"
    url = f"sqlite:///{data / 'silkline.db'}"
    with closing(open_database(url)):
        pass
    for folder in (data, data / "logs", data / "warc" / "job"):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)
    for file in (data / "silkline.db", data / "logs" / "x.log", data / "warc" / "job" / "a.warc.gz"):
        file.touch()
        file.chmod(0o644)
    with closing(open_database(url)):
        assert stat.S_IMODE(data.stat().st_mode) == 0o700
        assert open_to_others(data / "silkline.db") == []
        assert [path for path in data.glob("silkline.db*") if open_to_others(path)] == []
    assert f"{data / 'silkline.db'} could be read by other users (mode 644)" in caplog.text
    repair_folder(data)
    assert open_to_others(data) == []
    caplog.clear()
    repair_folder(data)
    assert caplog.text == "", "said once"
    assert folder_of(data, "job").is_dir()


def test_a_folder_that_is_not_ours_alone_keeps_its_mode(tmp_path: Path) -> None:
    """Somebody's home, or /tmp: closing it would break other programs. Our own files in it are closed all the same."""
    shared = tmp_path / "home"
    shared.mkdir()
    (shared / "letter.txt").touch()
    shared.chmod(0o755)
    (shared / "letter.txt").chmod(0o644)
    with closing(open_database(f"sqlite:///{shared / 'silkline.db'}")):
        pass
    repair_folder(shared)
    assert stat.S_IMODE(shared.stat().st_mode) == 0o755
    assert stat.S_IMODE((shared / "letter.txt").stat().st_mode) == 0o644
    assert open_to_others(shared / "silkline.db") == []


def test_links_lead_nowhere(tmp_path: Path) -> None:
    """A link in the data directory does not make us change what it points to."""
    data, other = tmp_path / "data", tmp_path / "other"
    data.mkdir()
    other.mkdir()
    (other / "file").touch()
    other.chmod(0o755)
    (other / "file").chmod(0o644)
    (data / "logs").symlink_to(other)
    (data / "silkline.db").symlink_to(other / "file")
    repair_folder(data)
    assert stat.S_IMODE(other.stat().st_mode) == 0o755
    assert stat.S_IMODE((other / "file").stat().st_mode) == 0o644


def test_a_data_directory_that_has_run_jobs_is_closed_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with closing(Served(f"sqlite:///{data / 'silkline.db'}", data)) as server:
        client = server.ready()
        client.wait_for(client.job(do="work", steps=3), "completed")
        assert (data / "marks").is_dir()
    (data / "serve.log").unlink()
    data.chmod(0o755)
    (data / "marks").chmod(0o755)
    repair_folder(data)
    assert stat.S_IMODE(data.stat().st_mode) == stat.S_IMODE((data / "marks").stat().st_mode) == 0o700

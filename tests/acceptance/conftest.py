"""The real command, started as a person would start it: another process, in a folder of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from silkline.cli.exits import run
from silkline.model.database import Database
from silkline.model.job import Job, NewJob
from silkline.store import jobs
from silkline.store.opening import open_database

ROOT = Path(__file__).resolve().parents[2]
OURS = ("SILKLINE_", "_SILKLINE", "DATABASE_URL", "RENDERER_URL", "MAX_CONCURRENT", "NO_COLOR", "COLUMNS")
PATIENCE = 120


class Silkline:
    """Runs `silkline` in one folder, with one database."""

    def __init__(self, folder: Path, byte_code: Path, database_url: str = "") -> None:
        self.folder = folder
        self.database_url = database_url
        self._byte_code = byte_code
        self._started: list[subprocess.Popen[bytes]] = []

    def environment(self, **more: str) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        if clean.pop("PYTHONDONTWRITEBYTECODE", None):
            # Without byte code each command costs three times as much.
            clean["PYTHONPYCACHEPREFIX"] = str(self._byte_code)
        # However little space is left where the tests run.
        ours = {"PYTHONPATH": str(ROOT / "src"), "TZ": "UTC", "SILKLINE_DISK_FREE_MIN": "0"}
        ours["SILKLINE_DATA"] = str(self.folder / "data")
        if self.database_url:
            ours["SILKLINE_DATABASE_URL"] = self.database_url
        return {**clean, **ours, **more}

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "silkline", *arguments]

    def __call__(self, *arguments: str, input: str | bytes = "", **more: str) -> "Finished":
        given = input.encode() if isinstance(input, str) else input
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment(**more),
            input=given,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        return Finished(done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(self, *arguments: str, **more: str) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment(**more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._started.append(process)
        return process

    def end(self) -> None:
        """No process outlives its test, however that ended."""
        for process in self._started:
            with process:
                process.kill()


class Finished:
    """What a command said, and how it ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    def __repr__(self) -> str:
        return f"exit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def refused(self, code: int, *words: str) -> None:
        """It ended with this code, one line on stderr that has these words, and nothing on stdout."""
        assert self.code == code, self
        assert self.out == "", self
        assert len(self.err.splitlines()) == 1, self
        assert self.err.startswith("silkline: "), self
        for word in words:
            assert word in self.err, self


Run = Callable[..., Finished]


@pytest.fixture(scope="session")
def byte_code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place for byte code, where the environment wants none beside the sources."""
    return tmp_path_factory.mktemp("byte-code")


@pytest.fixture
def silkline(tmp_path: Path, byte_code: Path) -> Iterator[Silkline]:
    """On the embedded database."""
    silkline = Silkline(tmp_path, byte_code)
    yield silkline
    silkline.end()


@pytest.fixture
def on_both(tmp_path: Path, byte_code: Path, database_url: str) -> Iterator[Silkline]:
    """On each database in turn."""
    silkline = Silkline(tmp_path, byte_code, database_url)
    yield silkline
    silkline.end()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    """The database of `silkline`, to prepare what the command will find."""
    with closing(open_database(f"sqlite:///{tmp_path / 'data' / 'silkline.db'}")) as database:
        yield database


@pytest.fixture
def enqueue(store: Database) -> Callable[..., Job]:
    """Puts a job into the database of `silkline`."""

    def put(url: str = "https://example.com/", **more: Any) -> Job:
        new = NewJob(**{"kind": "page", "payload": {"url": url}, "request_url": url, **more})
        return jobs.enqueue(store, new)[0]

    return put


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in the process of the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SILKLINE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("SILKLINE_DISK_FREE_MIN", "0")
    for variable in ("SILKLINE_DATABASE_URL", "DATABASE_URL"):
        monkeypatch.delenv(variable, raising=False)

    def command(*arguments: str) -> Finished:
        capsys.readouterr()
        code = run(arguments)
        return Finished(code, *capsys.readouterr())

    return command

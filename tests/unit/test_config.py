"""Settings: command line > environment > silkline.toml > default; where each came from; what is wrong with one."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from silkline import config
from silkline.config import ALIASES, FILE, SECRET, SETTINGS, Settings, load
from silkline.errors import UsageError

HOME = {"XDG_DATA_HOME": "/somebody/data"}
DEFAULTS = Settings(data=Path("/somebody/data/silkline"))
VALID = {"log_level": "debug"}


def loaded(tmp_path: Path, toml: str = "", env: dict[str, str] | None = None, **overrides: Any) -> Any:
    if toml:
        (tmp_path / FILE).write_text(toml, encoding="utf-8")
    return load(overrides, {**HOME, **(env or {})}, tmp_path)


def test_without_anything_there_are_defaults(tmp_path: Path) -> None:
    found = loaded(tmp_path)
    assert found.settings == DEFAULTS
    assert set(found.sources.values()) == {"default"}
    assert set(found.sources) == set(SETTINGS)


def test_each_source_beats_the_one_below(tmp_path: Path) -> None:
    toml = "slots = 3\nnice = 1\nmax_retries = 7"
    found = loaded(tmp_path, toml, {"SILKLINE_SLOTS": "4", "SILKLINE_NICE": "2"}, slots=5)
    assert (found.settings.slots, found.settings.nice, found.settings.max_retries) == (5, 2, 7)
    assert found.sources["slots"] == "command line"
    assert found.sources["nice"] == "environment"
    assert found.sources["max_retries"] == str(tmp_path / FILE)
    assert found.sources["data"] == "default"


def test_what_was_not_given_on_the_command_line_overrides_nothing(tmp_path: Path) -> None:
    found = loaded(tmp_path, env={"SILKLINE_SLOTS": "4"}, slots=None)
    assert (found.settings.slots, found.sources["slots"]) == (4, "environment")


@pytest.mark.parametrize("name", ALIASES)
def test_other_tools_names_are_taken_when_ours_is_not_set(tmp_path: Path, name: str) -> None:
    theirs, ours = ALIASES[name], f"SILKLINE_{name.upper()}"
    assert str(getattr(loaded(tmp_path, env={theirs: "11"}).settings, name)) == "11"
    assert str(getattr(loaded(tmp_path, env={theirs: "11", ours: "12"}).settings, name)) == "12"
    assert str(getattr(loaded(tmp_path, env={theirs: "11", ours: ""}).settings, name)) == "11"


def test_an_empty_variable_counts_as_not_set(tmp_path: Path) -> None:
    assert loaded(tmp_path, env={"SILKLINE_SLOTS": ""}).sources["slots"] == "default"


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_can_be_set_in_the_environment_and_is_explained(tmp_path: Path, name: str) -> None:
    default = getattr(DEFAULTS, name)
    text = str(default).lower() if isinstance(default, bool) else str(default) or VALID.get(name, "x")
    assert loaded(tmp_path, env={f"SILKLINE_{name.upper()}": text}).sources[name] == "environment"
    assert SETTINGS[name].description


def test_a_wrong_value_names_the_setting_and_where_it_stands(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"setting slots \(environment, SILKLINE_SLOTS\): .*valid integer"):
        loaded(tmp_path, env={"SILKLINE_SLOTS": "many"})
    with pytest.raises(UsageError, match=r"setting nice \(command line\): .*less than or equal to 19"):
        loaded(tmp_path, nice=50)
    with pytest.raises(UsageError, match=r"setting poll_interval \(.*silkline.toml\): .*greater than 0"):
        loaded(tmp_path, "poll_interval = 0")


def test_all_wrong_values_are_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as wrong:
        loaded(tmp_path, "slots = -1", {"SILKLINE_NICE": "x"})
    assert "slots" in str(wrong.value)
    assert "nice" in str(wrong.value)


def test_a_wrong_secret_is_not_repeated(tmp_path: Path) -> None:
    assert set(SETTINGS) >= SECRET
    with pytest.raises(UsageError) as wrong:
        loaded(tmp_path, 'api_token = ["hunter2"]')
    assert "hunter2" not in str(wrong.value)


def test_a_name_nobody_knows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"unknown setting 'slot' in .*silkline.toml; `silkline config` lists them all"
    ):
        loaded(tmp_path, "slot = 3")


@pytest.mark.parametrize("content", [b"slots = ", b"\xff\xfe", b"[[["])
def test_a_broken_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(UsageError, match=r"silkline\.toml cannot be read"):
        load({}, {}, tmp_path)


def test_a_file_may_hold_any_language(tmp_path: Path) -> None:
    assert loaded(tmp_path, 'contact = "jürgen@bücher.example"').settings.contact == "jürgen@bücher.example"


def test_the_database_lies_in_the_data_directory_unless_named(tmp_path: Path) -> None:
    assert loaded(tmp_path, data=tmp_path / "d").settings.database == f"sqlite:///{tmp_path / 'd' / 'silkline.db'}"
    named = loaded(tmp_path, env={"DATABASE_URL": "postgresql://h/d"}).settings
    assert named.database == "postgresql://h/d"
    assert loaded(tmp_path, data=tmp_path / "d").settings.logs == tmp_path / "d" / "logs"


def test_the_database_of_a_relative_directory_is_absolute() -> None:
    assert (
        load({"data": "somewhere"}, {}, Path("nowhere")).settings.database
        == f"sqlite:///{Path('somewhere').absolute()}/silkline.db"
    )


def test_the_fence_must_come_before_the_rescue(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="heartbeat_interval < fence_after < stale_after"):
        load({"fence_after": 200}, {}, tmp_path)


FLOATS = [name for name, field in SETTINGS.items() if field.type == "float"]


@pytest.mark.parametrize("name", [name for name in FLOATS if not name.endswith("_days")])
def test_every_time_may_have_a_unit(name: str) -> None:
    given = {"heartbeat_interval": "1s", "fence_after": "2m", "stale_after": "1h"}
    value = {"heartbeat_interval": 1, "fence_after": 120, "stale_after": 3600}.get(name, 90)
    found = load({**given, **({} if name in given else {name: "1m30s"})}, {}, Path("/nonexistent")).settings
    assert getattr(found, name) == value


def test_days_may_have_a_unit() -> None:
    environment = {"SILKLINE_KEEP_JOBS_DAYS": "36h", "SILKLINE_KEEP_LOGS_DAYS": "7"}
    found = load({}, environment, Path("/nonexistent")).settings
    assert (found.keep_jobs_days, found.keep_logs_days) == (1.5, 7)


def test_a_wrong_time_is_named() -> None:
    with pytest.raises(
        UsageError, match=r"setting stall_after \(environment, SILKLINE_STALL_AFTER\): 'soon' is not a duration"
    ):
        load({}, {"SILKLINE_STALL_AFTER": "soon"}, Path("/nonexistent"))


def test_each_user_has_one_home_whatever_the_current_folder_is() -> None:
    def home(**environ: str) -> Path:
        return load({}, environ, Path("nowhere")).settings.data

    assert home(XDG_DATA_HOME="/data", HOME="/somebody") == Path("/data/silkline")
    assert home(HOME="/somebody") == Path("/somebody/.local/share/silkline")
    assert home(XDG_DATA_HOME="", HOME="/somebody") == Path("/somebody/.local/share/silkline")
    assert home(XDG_DATA_HOME="relative", HOME="/somebody") == Path("/somebody/.local/share/silkline")
    assert home(SILKLINE_DATA="here", HOME="/somebody") == Path("here")
    assert home().is_absolute()


def test_a_bare_database_url_is_borrowed_and_ours_is_not(tmp_path: Path) -> None:
    theirs, ours = "postgresql://theirs/x", "postgresql://ours/x"
    assert loaded(tmp_path, env={"DATABASE_URL": theirs}).database_is_borrowed
    assert not loaded(tmp_path).database_is_borrowed
    assert not loaded(tmp_path, env={"DATABASE_URL": theirs, "SILKLINE_DATABASE_URL": ours}).database_is_borrowed
    assert not loaded(tmp_path, env={"DATABASE_URL": theirs}, database_url=ours).database_is_borrowed


def test_kinds_are_told_no_secret() -> None:
    settings = Settings(data=Path("d"), database_url="postgresql://me:hunter2@h/d", api_token="hunter2")
    assert "hunter2" not in repr(settings.for_kinds())
    assert settings.for_kinds().data == str(Path("d").absolute())


def test_a_value_can_be_in_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("hunter2\n")
    found = loaded(tmp_path, 'api_token = "from the toml"', {"SILKLINE_API_TOKEN_FILE": str(secret)})
    assert found.settings.api_token == "hunter2"
    assert (found.sources["api_token"], found.variables["api_token"]) == ("environment", "SILKLINE_API_TOKEN_FILE")
    (tmp_path / "slots").write_text("7")
    assert loaded(tmp_path, env={"SILKLINE_SLOTS_FILE": str(tmp_path / "slots")}).settings.slots == 7


def test_a_database_url_in_a_file_is_ours_and_hidden(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("postgresql://me:hunter2@h/d\n")
    env = {"SILKLINE_DATABASE_URL_FILE": str(tmp_path / "url"), "DATABASE_URL": "postgresql://theirs/x"}
    found = loaded(tmp_path, env=env)
    assert found.settings.database == "postgresql://me:hunter2@h/d"
    assert not found.database_is_borrowed
    assert "postgresql://me:hunter2@h/d" in found.settings.secrets()


def test_a_file_of_a_value_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "token").write_text("hunter2")
    with pytest.raises(UsageError, match=r"the file of SILKLINE_API_TOKEN_FILE cannot be read: .*nowhere"):
        loaded(tmp_path, env={"SILKLINE_API_TOKEN_FILE": str(tmp_path / "nowhere")})
    with pytest.raises(UsageError, match=r"the file of SILKLINE_API_TOKEN_FILE is empty"):
        loaded(tmp_path, env={"SILKLINE_API_TOKEN_FILE": str(tmp_path / "empty")})
    both = {"SILKLINE_API_TOKEN_FILE": str(tmp_path / "token"), "SILKLINE_API_TOKEN": "x"}
    with pytest.raises(UsageError, match=r"SILKLINE_API_TOKEN and SILKLINE_API_TOKEN_FILE are both set"):
        loaded(tmp_path, env=both)


def test_the_file_that_was_checked_is_the_one_that_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who can write to the folder gives the name to another file after the check."""
    (tmp_path / FILE).write_text("slots = 7", encoding="utf-8")
    (tmp_path / "other").write_text("slots = 9", encoding="utf-8")

    def swapping(check: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
        def checked(*arguments: Any, **options: Any) -> os.stat_result:
            found = check(*arguments, **options)
            if arguments[0] == tmp_path / FILE or isinstance(arguments[0], int):
                (tmp_path / "other").rename(tmp_path / FILE)
                monkeypatch.undo()
            return found

        return checked

    monkeypatch.setattr(os, "stat", swapping(os.stat))
    monkeypatch.setattr(os, "fstat", swapping(os.fstat))
    assert loaded(tmp_path).settings.slots == 7
    assert (tmp_path / FILE).read_text(encoding="utf-8") == "slots = 9"


@contextmanager
def written_by(program: str, folder: Path) -> Iterator[IO[bytes]]:
    """The settings are a pipe, and this program of a shell runs beside us. Gives what it prints."""
    os.mkfifo(folder / FILE)
    with subprocess.Popen(["sh", "-c", program], cwd=folder, stdout=subprocess.PIPE) as writer:
        try:
            assert writer.stdout is not None
            yield writer.stdout
        finally:
            writer.kill()


@pytest.mark.parametrize("waits", [0.0, 0.2])
def test_a_pipe_of_a_program_that_writes_the_settings(tmp_path: Path, waits: float) -> None:
    program = f"sleep {waits}; exec > {FILE}; printf slots; sleep {waits}; echo ' = 7'; sleep {waits}"
    with written_by(program, tmp_path):
        assert loaded(tmp_path).settings.slots == 7


def test_a_long_file_from_a_pipe_is_read_whole(tmp_path: Path) -> None:
    with written_by(f"exec > {FILE}; yes '# filler' | head -n 100000; echo slots = 7", tmp_path):
        assert loaded(tmp_path).settings.slots == 7


@pytest.mark.parametrize("program", ["true", f"exec 3<> {FILE}; echo slots = 7 >&3; echo; exec sleep 60"])
def test_a_pipe_whose_writer_does_not_end_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr(config, "PIPE_SECONDS", 0.2)
    with written_by(program, tmp_path) as said:
        said.readline()
        with pytest.raises(UsageError, match=r"toml cannot be read: it is a pipe, and its writer did not end within"):
            loaded(tmp_path)

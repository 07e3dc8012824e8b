"""What cannot be is refused: one clear line on stderr, the documented exit code, nothing changed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from silkline.model.database import Database
from silkline.model.job import Job
from silkline.store import migrate
from tests.acceptance.conftest import Silkline

ADD = ("jobs", "add", "--kind", "site")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [(("jobs", "lst"), "No such command"), ((*ADD, "https://a/", "--payload", "{"), "not JSON")],
)
def test_a_wrong_command_line(silkline: Silkline, arguments: tuple[str, ...], word: str) -> None:
    """Two of the many in tests/unit/test_cli_refusals.py, as a person meets them."""
    silkline(*arguments).refused(2, word)
    assert not (silkline.folder / "data").exists(), "nothing was to be changed"


def test_a_payload_that_is_no_text(silkline: Silkline) -> None:
    silkline(*ADD, "--payload", "-", input=b'{"url": "https://a/\xff"}').refused(2, "UTF-8")


def test_a_wrong_setting(silkline: Silkline) -> None:
    silkline("jobs", SILKLINE_SLOTS="many").refused(2, "slots", "environment")
    (silkline.folder / "silkline.toml").write_text("slot = 3\n")
    silkline("jobs").refused(2, "unknown setting 'slot'", "silkline.toml")
    (silkline.folder / "silkline.toml").write_text("slots = \n")
    silkline("jobs").refused(2, "silkline.toml")


def test_an_id_that_may_be_several(silkline: Silkline, enqueue: Callable[..., Job]) -> None:
    first, second = enqueue(), enqueue()
    silkline("jobs", "cancel", first.id[:4]).refused(5, "the ids of several jobs begin with")
    assert {job["status"] for job in silkline("jobs", "--json").json} == {"queued"}
    assert silkline("jobs", "cancel", second.id.upper().replace("-", "")).code == 0


def test_a_database_that_cannot_be_reached_hides_its_password(silkline: Silkline) -> None:
    for url in ("postgresql://me:secret@127.0.0.1:1/x", "postgresql://me:secret@[bad"):
        refusal = silkline("--database-url", url, "jobs")
        refusal.refused(1, "PostgreSQL")
        assert "secret" not in refusal.err


def test_a_file_that_is_no_database(silkline: Silkline, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("these are my notes, not a database " * 50)
    silkline("jobs", "--database-url", f"sqlite:///{file}").refused(1, "not a Silkline database")
    assert file.read_text().startswith("these are my notes")
    silkline("jobs", "--data", str(file)).refused(1, "cannot open the database")


def test_a_data_directory_that_cannot_be_created(silkline: Silkline) -> None:
    refusal = silkline("crawl", "https://example.com/", "--data", "/proc/silkline")
    refusal.refused(1, "cannot open the database /proc/silkline/silkline.db: No such file or directory: /proc/silkline")


def test_a_database_of_a_newer_silkline(silkline: Silkline, store: Database) -> None:
    newer = migrate.newest(store) + 1
    with store.exclusive() as transaction:
        transaction.rows("schema.record", revision=newer, applied="2030-01-01")
    silkline("jobs").refused(1, f"revision {newer}", "upgrade Silkline")
    silkline(*ADD, "https://example.com/").refused(1, f"revision {newer}")
    silkline("db", "upgrade").refused(1, f"revision {newer}")
    doctor = silkline("doctor")
    assert doctor.code == 1
    assert "upgrade this Silkline" in doctor.out


def test_verbose_tells_where_an_error_came_from(silkline: Silkline) -> None:
    refusal = silkline("-v", "jobs", "show", "last")
    assert refusal.code == 5
    assert "silkline: there are no jobs yet: nothing is stored in " in refusal.err
    assert "Traceback" in refusal.err

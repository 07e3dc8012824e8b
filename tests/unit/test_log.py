"""What a log line contains, as text and as JSON, and what it never contains."""

import io
import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from silkline import log
from silkline.config import Settings
from silkline.model.secret_url import passwords_in

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "token-that-nobody-may-see"
PASSWORD = "pass/word-77"
DATABASE = "postgresql://me:pass%2Fword-77@db.example/silkline"


@contextmanager
def written(format: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """The lines of a log of this format."""
    root = logging.getLogger()
    before, stream = (root.handlers[:], root.level), io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(log, "_shared", log._Shared())
    log.set_up(logging.DEBUG, format)
    try:
        yield stream
    finally:
        root.handlers[:], root.level = before


def objects(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_json_line_has_the_documented_fields_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    with written("json", monkeypatch) as stream:
        log.in_every_line(worker="w1")
        about = {"job": "j1", "attempt": 2, "shard": 3, "event": "progress", "data": {"pages": 7}, "else": "no"}
        request = log.request_id.set("r1")
        try:
            raise ValueError("odd")
        except ValueError:
            logging.getLogger("silkline.api").exception("it %s", "failed", extra=about)
        log.request_id.reset(request)
    (line,) = objects(stream)
    assert list(line) == [name for name in log.FIELDS if name != "id"], "only lines from the database have a number"
    assert (line["level"], line["logger"], line["message"]) == ("error", "silkline.api", "it failed")
    assert (line["worker"], line["job"], line["attempt"], line["shard"], line["request"]) == ("w1", "j1", 2, 3, "r1")
    assert line["data"] == {"pages": 7}
    assert "ValueError: odd" in line["error"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["at"])


def test_a_json_line_without_ids_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with written("json", monkeypatch) as stream:
        logging.getLogger("silkline").info("two\nlines \x1b[2J \ud800")
    (line,) = objects(stream)
    assert set(line) == {"at", "level", "logger", "message", "pid"}
    assert "\x1b" not in stream.getvalue()


def test_a_text_line_names_the_ids_that_its_message_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    with written("text", monkeypatch) as stream:
        logging.getLogger("silkline").info("job %s ends", "j1", extra={"job": "j1", "attempt": 2})
        request = log.request_id.set("r1")
        logging.getLogger("silkline").info("no space")
        log.request_id.reset(request)
    one, other = stream.getvalue().splitlines()
    assert one.endswith(" INFO    silkline: job j1 ends [attempt=2]")
    assert other.endswith(" INFO    silkline: no space [request=r1]")


@pytest.mark.parametrize("format", ["text", "json"])
def test_no_line_contains_a_secret_of_the_settings(format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "of-postgres-9")
    settings = Settings(api_token=TOKEN, database_url=DATABASE, renderer_url="ws://127.0.0.1/?token=of-the-browser")
    with written(format, monkeypatch) as stream:
        log.hide(settings.secret_texts())
        logger = logging.getLogger("silkline")
        logger.info("the database is %s", settings.database_url)
        logger.info("password %s, %s", PASSWORD, "of-postgres-9", extra={"event": "x", "data": {"a": [TOKEN]}})
        logger.info("http://someone:hunter22@example.com/ and http://example.com/?api_key=of-the-user&x=1")
        try:
            raise ValueError(f"{TOKEN} of-the-browser")
        except ValueError:
            logger.exception("failed")
    said = stream.getvalue()
    for secret in (TOKEN, PASSWORD, "pass%2Fword-77", "of-postgres-9", "of-the-browser", "hunter22", "of-the-user"):
        assert secret not in said
    assert "postgresql://me:***@db.example/silkline" in said or "the database is ***" in said
    assert "http://someone:***@example.com/" in said
    assert "x=1" in said


def test_the_passwords_of_an_address_are_found() -> None:
    assert set(passwords_in(DATABASE)) == {"pass%2Fword-77", PASSWORD}
    assert passwords_in("postgresql://db/x?password=abc&x=1") == ["abc"]
    assert passwords_in("postgresql://me@db/x") == []


def test_the_events_of_the_code_are_those_that_are_documented() -> None:
    sources = (ROOT / "src" / "silkline").rglob("*.py")
    used = {name for path in sources for name in re.findall(r'"event": "(\w+)"', path.read_text())}
    assert used == set(log.EVENTS)

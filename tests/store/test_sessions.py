"""Sessions of the web page: they run out, end when nobody uses them, and are bounded for each token."""

from datetime import datetime, timedelta

import pytest

from silkline.model.database import Database
from silkline.store import sessions, tokens


def at(database: Database, monkeypatch: pytest.MonkeyPatch, moment: datetime) -> None:
    monkeypatch.setattr(database, "now", lambda: moment)


def test_a_session_runs_out_and_ends_when_nobody_uses_it(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    began = database.now()
    sessions.add(database, "used", "t")
    sessions.add(database, "idle", "t")
    moment = began
    while moment < began + sessions.LIFETIME - sessions.IDLE / 2:
        at(database, monkeypatch, moment)
        assert sessions.token_of(database, "used") == "t"
        moment += sessions.IDLE / 2
    assert sessions.token_of(database, "idle") is None
    at(database, monkeypatch, began + sessions.LIFETIME + timedelta(seconds=1))
    assert sessions.token_of(database, "used") is None


def test_a_check_does_not_keep_a_session_alive(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    began = database.now()
    sessions.add(database, "checked", "t")
    for part in (0.4, 0.8, 1.1):
        at(database, monkeypatch, began + part * sessions.IDLE)
        found = sessions.token_of(database, "checked", used=False)
    assert found is None


def test_a_session_ends_at_once_when_it_is_forgotten(database: Database) -> None:
    sessions.add(database, "one", "t")
    sessions.add(database, "two", "t")
    sessions.forget(database, "one")
    sessions.forget(database, "never was")
    assert (sessions.token_of(database, "one"), sessions.token_of(database, "two")) == (None, "t")


def test_the_sessions_of_a_token_end_with_it(database: Database) -> None:
    tokens.add(database, id="t", name="n", scope="worker", hash="h")
    sessions.add(database, "one", "t")
    sessions.add(database, "other", "u")
    tokens.forget(database, "t")
    assert (sessions.token_of(database, "one"), sessions.token_of(database, "other")) == (None, "u")


def test_a_token_has_a_bounded_number_of_sessions(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    began = database.now()
    for number in range(sessions.KEPT + 5):
        at(database, monkeypatch, began + timedelta(seconds=number))
        sessions.add(database, f"session {number}", "t")
    alive = [number for number in range(sessions.KEPT + 5) if sessions.token_of(database, f"session {number}")]
    assert alive == list(range(5, sessions.KEPT + 5))

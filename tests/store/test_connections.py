"""Connections: lent and given back, broken and made again, busy, full, closed; and whose clock counts."""

import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from silkline.errors import DiskFull, StoreError, Unavailable
from silkline.model.database import Database, WakeupListener
from silkline.model.job import End, NewJob, Status
from silkline.store import jobs, migrate, postgres, sqlite
from silkline.store.opening import open_database
from tests.store.given import finished, queued, running
from tests.support.postgres import PostgresServer

STORE_MANY = """
import sys
from silkline.model.job import NewJob
from silkline.store import jobs
from silkline.store.opening import open_database
database = open_database(sys.argv[1])
for number in range(int(sys.argv[2])):
    jobs.enqueue(database, NewJob("page", {"number": number}))
database.close()
"""

CUT_LISTENERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE query LIKE 'LISTEN%' AND datname = current_database()
"""


def free(database: Any) -> int:
    return len(database._free)


def test_a_connection_is_given_back_after_every_call(database: Database) -> None:
    for _ in range(5):
        queued(database)
        jobs.page(database)
    assert free(database) == 1


def test_a_file_that_was_taken_away_is_noticed_and_taken_back(tmp_path: Path) -> None:
    file, away = tmp_path / "silkline.db", tmp_path / "away.db"
    database = open_database(f"sqlite:///{file}")
    queued(database)
    file.rename(away)
    with pytest.raises(Unavailable, match="removed or replaced"):
        queued(database)
    assert not file.exists(), "no other is made in its place"
    file.write_bytes(b"")
    with pytest.raises(Unavailable, match="removed or replaced"):
        jobs.page(database)
    away.rename(file)
    queued(database)
    assert len(jobs.page(database)) == 2
    database.close()


def test_a_connection_is_given_back_after_an_error(database: Database) -> None:
    queued(database)
    with pytest.raises(StoreError):
        database.rows("schema.record", revision=1, applied="again")
    with pytest.raises(StoreError), database.transaction() as transaction:
        transaction.rows("schema.record", revision=1, applied="again")
    with pytest.raises(ZeroDivisionError), database.transaction():
        _ = 1 / 0
    assert free(database) == 1
    assert len(jobs.page(database)) == 1


def test_a_statement_that_is_not_sql_is_our_own_error(database: Database) -> None:
    with pytest.raises(StoreError), database.transaction() as transaction:
        transaction.script("SELEKT")
    queued(database)


def note_and_be_interrupted(database: Database, id: str) -> None:
    with database.transaction() as transaction:
        transaction.rows("jobs.note", id=id, metadata='{"half":true}', now=database.now())
        raise KeyboardInterrupt


def test_a_transaction_that_fails_leaves_nothing(database: Database) -> None:
    job = queued(database)
    with pytest.raises(KeyboardInterrupt):
        note_and_be_interrupted(database, job.id)
    assert jobs.get(database, job.id) == job


def test_threads_work_side_by_side(database: Database) -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(10):
                mine = running(database, threading.current_thread().name)
                finished(database, mine, End.COMPLETED)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert jobs.counts(database)[Status.COMPLETED] == 60
    assert 1 <= free(database) <= 6


def test_a_closed_database_is_unavailable(database: Database) -> None:
    queued(database)
    database.close()
    with pytest.raises(Unavailable, match="closed"):
        jobs.page(database)
    database.close()
    assert free(database) == 0


def test_closing_during_a_transaction_closes_its_connection_too(database: Database) -> None:
    with database.transaction() as transaction:
        database.close()
        transaction.rows("jobs.page", before=jobs.LAST_ID, wanted=1)
    assert free(database) == 0


def test_a_server_that_restarts_is_used_again_and_one_that_stops_is_unavailable(own_postgres: PostgresServer) -> None:
    database = open_database(own_postgres.create_database())
    job = queued(database)
    holding = [threading.Thread(target=lambda: jobs.page(database)) for _ in range(3)]
    for thread in holding:
        thread.start()
    for thread in holding:
        thread.join()
    own_postgres.restart("fast")
    assert jobs.page(database) == [job], "connections that ended while nobody used them are not used again"

    own_postgres.stop("fast")
    for _ in range(2):
        with pytest.raises(Unavailable, match="PostgreSQL cannot be used now"):
            jobs.page(database)
    before = database.now()
    assert database.now() >= before
    database.wake_supervisors()
    with pytest.raises(Unavailable):
        database.listen("w1")
    own_postgres.start()
    assert jobs.page(database) == [job]
    database.close()


def note_and_be_cut_off(database: Database, id: str) -> None:
    with database.transaction() as transaction:
        transaction.rows("jobs.note", id=id, metadata="{}", now=database.now())
        transaction.script("SELECT pg_terminate_backend(pg_backend_pid())")


def test_a_connection_cut_within_a_transaction_is_thrown_away(postgres_database: Database) -> None:
    job = queued(postgres_database)
    with pytest.raises(Unavailable):
        note_and_be_cut_off(postgres_database, job.id)
    assert free(postgres_database) <= 1
    assert jobs.get(postgres_database, job.id) == job


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="PostgreSQL cannot be used now"):
        open_database("postgresql://nobody@127.0.0.1:1/nothing")


def test_a_process_that_was_stopped_within_a_transaction_holds_nobody_up(
    postgres_database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection lives as long as its machine does. Its locks stopped whoever wanted to take over its job."""
    monkeypatch.setattr(postgres, "LONGEST_PAUSE", 0.2)
    stopped = open_database(postgres_database._url)
    job = queued(postgres_database)
    lock = f"SELECT id FROM crawl_jobs WHERE id = '{job.id}' FOR UPDATE"

    def stop_and_wake_up() -> None:
        with stopped.transaction() as transaction:
            transaction.script(lock)
            with postgres_database.transaction() as other:
                other.script(lock)  # waits until the server ends the first one
            transaction.script(lock)

    with pytest.raises(Unavailable):
        stop_and_wake_up()
    stopped.close()


def test_a_full_disk_has_its_own_error(postgres_database: Database) -> None:
    with pytest.raises(DiskFull), postgres_database.transaction() as transaction:
        transaction.script("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'disk_full'; END $$")


@pytest.mark.parametrize(
    ("condition", "error"),
    [
        pytest.param("read_only_sql_transaction", Unavailable, id="a standby"),
        pytest.param("statement_too_complex", StoreError, id="for ever too complex"),
        pytest.param("program_limit_exceeded", StoreError, id="for ever too large"),
    ],
)
def test_an_error_says_whether_it_may_pass(postgres_database: Database, condition: str, error: type[Exception]) -> None:
    with pytest.raises(error) as raised, postgres_database.transaction() as transaction:
        transaction.script(f"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{condition}'; END $$")
    assert isinstance(raised.value, Unavailable) is (error is Unavailable)


def test_a_full_sqlite_has_its_own_error_and_keeps_what_it_had(sqlite_database: Any) -> None:
    job = queued(sqlite_database)
    (connection,) = sqlite_database._free
    connection.execute("PRAGMA max_page_count = 60")
    with pytest.raises(DiskFull, match="no space left"):
        jobs.enqueue_many(sqlite_database, [NewJob("page", {"text": "x" * 10_000})] * 100)
    assert jobs.page(sqlite_database) == [job]


def test_time_is_the_servers(postgres_database: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own clock is an hour slow; what is stored and compared is the server's time all the same."""

    class SlowClock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> "SlowClock":
            return cls.fromtimestamp(datetime.now(UTC).timestamp() - 3600, tz)

    monkeypatch.setattr(postgres, "datetime", SlowClock)
    with postgres_database._connection() as connection:
        (before,) = connection.execute("SELECT clock_timestamp() AS now").fetchall()
    now = postgres_database.now()
    with postgres_database._connection() as connection:
        (after,) = connection.execute("SELECT clock_timestamp() AS now").fetchall()
    # A round trip may take long on a busy machine, but not nearly an hour.
    assert before["now"] - timedelta(minutes=10) < now < after["now"] + timedelta(minutes=10)
    job = queued(postgres_database)
    assert [each.id for each in jobs.claim(postgres_database, "w1", "h", ["page"], 1)] == [job.id]


def test_the_servers_time_is_asked_again_now_and_then(postgres_database: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    ask = postgres_database._ask_clock

    def ask_and_count() -> Any:
        asked.append(1)
        return ask()

    monkeypatch.setattr(postgres_database, "_ask_clock", ask_and_count)
    uptime = postgres._uptime()
    monkeypatch.setattr(postgres, "_uptime", lambda: uptime)
    first = postgres_database.now()
    assert postgres_database.now() == first or asked == [1]
    assert len(asked) <= 1
    before = len(asked)
    monkeypatch.setattr(postgres, "_uptime", lambda: uptime + postgres.CLOCK_EVERY + 1)
    postgres_database.now()
    postgres_database.now()
    assert len(asked) == before + 1


def test_of_several_answers_the_quickest_tells_the_time(
    postgres_database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine an answer may come late; half of that would be our clock's error."""
    for uptimes, expected in (
        ([10.0, 14.0, 14.0, 14.002, 99.0], 14.001),
        ([10.0, 14.0, 14.0, 14.5, 14.5, 17.0, 99.0], 14.25),
        ([10.0, 10.002, 99.0], 10.001),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(postgres, "_uptime", iter(uptimes).__next__)
            _, uptime = postgres_database._ask_clock()
        assert uptime == pytest.approx(expected)


def test_sqlite_is_as_it_should_be(sqlite_database: Any) -> None:
    with sqlite_database._connection() as connection:
        assert list(connection.execute("PRAGMA journal_mode")) == [("wal",)]
        assert list(connection.execute("PRAGMA synchronous")) == [(1,)]
    synced: list[tuple[int]] = []
    with sqlite_database.transaction(durable=True) as transaction:
        synced += transaction.connection.execute("PRAGMA synchronous")
    with sqlite_database._connection() as connection:
        synced += connection.execute("PRAGMA synchronous")
    assert synced == [(2,), (1,)]
    assert tuple(map(int, sqlite.version().split("."))) >= (3, 51, 3)


def test_a_writer_waits_for_its_turn(sqlite_database: Any) -> None:
    other = apsw.Connection(str(sqlite_database.path))
    other.execute("BEGIN IMMEDIATE")
    stored: list[Any] = []
    thread = threading.Thread(target=lambda: stored.append(queued(sqlite_database)))
    thread.start()
    assert jobs.page(sqlite_database) == []  # reading goes on meanwhile
    assert stored == []
    other.execute("COMMIT")
    thread.join(60)
    assert jobs.page(sqlite_database) == stored
    other.close()


def test_a_writer_that_waits_too_long_says_that_it_is_busy(
    sqlite_database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_LIMIT", 0.05)
    other = apsw.Connection(str(sqlite_database.path))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable, match="cannot be used now"):
        queued(sqlite_database)
    other.execute("ROLLBACK")
    other.close()
    queued(sqlite_database)


def test_a_lock_that_many_want_at_once_is_unavailable_and_no_damage(sqlite_database: Any) -> None:
    """What SQLite says when it lost the race for a read lock a hundred times in a row."""
    with pytest.raises(Unavailable, match="cannot be used now"), sqlite_database._connection():
        raise apsw.ProtocolError("locking protocol")
    queued(sqlite_database)


def test_many_processes_write_into_one_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'silkline.db'}"
    command = [sys.executable, "-c", STORE_MANY, url, "40"]
    programs = [subprocess.Popen(command) for _ in range(8)]
    assert [program.wait(timeout=120) for program in programs] == [0] * 8
    database = open_database(url)
    assert jobs.counts(database)[Status.QUEUED] == 320
    assert migrate.revision(database) == migrate.newest(database)
    database.close()


def drain_for_ever(listener: WakeupListener) -> None:
    while True:
        listener.drain()


def test_a_broken_connection_of_the_bell_is_unavailable(
    postgres_database: Database, migrated_postgres_url: str
) -> None:
    listener = postgres_database.listen("w1")
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute(CUT_LISTENERS)
    with pytest.raises(Unavailable):
        drain_for_ever(listener)
    listener.close()

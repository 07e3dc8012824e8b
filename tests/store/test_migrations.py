"""Every program opens an empty or older database by itself, keeps its rows, and leaves a newer one alone."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from silkline.errors import SchemaTooNew, StoreError, Unavailable, UsageError
from silkline.model.database import Database
from silkline.model.job import NewJob, Verb
from silkline.store import jobs, logs, migrate, urls, workers
from silkline.store.opening import open_database
from tests.store.given import job_of_an_older_schema, queued

FILES = Path(migrate.__file__).parent / "sql" / "migrations"
OPEN_AND_STORE = """
import sys
from silkline.model.job import NewJob
from silkline.store import jobs
from silkline.store.opening import open_database
sys.stdin.readline()
database = open_database(sys.argv[1])
jobs.enqueue(database, NewJob("page", {}))
database.close()
"""


def tables(database: Database) -> int:
    return len(database.rows("schema.exists"))


def test_an_empty_database_is_brought_up_to_date(database_url: str) -> None:
    database = open_database(database_url, upgrade=False)
    assert migrate.revision(database) == 0
    assert migrate.upgrade(database) == (0, migrate.newest(database))
    assert migrate.revision(database) == migrate.newest(database)
    assert migrate.upgrade(database) == (migrate.newest(database), migrate.newest(database))
    queued(database)
    database.close()


def test_an_older_database_keeps_its_rows(database_url: str) -> None:
    old = open_database(database_url, upgrade=False)
    assert migrate.upgrade(old, to=1) == (0, 1)
    id, now = job_of_an_older_schema(old), old.now().isoformat()
    with old.transaction() as transaction:
        transaction.script(
            "INSERT INTO workers (id, host, pid, boot_id, slots, version, started_at, last_seen) "
            f"VALUES ('w1', 'h', 1, 'b', 1, '0', '{now}', '{now}')"
        )
        transaction.script(
            "INSERT INTO job_logs (job_id, attempt, level, message, at) "
            f"VALUES ('{id}', 1, 'info', 'from revision 1', '{now}')"
        )
    old.close()

    database = open_database(database_url)
    assert migrate.revision(database) == migrate.newest(database) > 1
    job = jobs.get(database, id)
    assert (job.kind, job.payload, job.dedupe_key) == ("page", {"url": "https://example.com"}, "k")
    assert job.metadata == {"kept": True}
    assert jobs.enqueue(database, NewJob("page", {}, dedupe_key="k")) == (job, False)
    assert jobs.enqueue(database, NewJob("page", {}, dedupe_key="k", tenant="other", paused=True))[1]
    (line,) = logs.tail(database, job.id)
    assert (line.message, line.worker, line.event, line.data) == ("from revision 1", None, None, None)
    assert [(worker.id, worker.kinds) for worker in workers.everyone(database)] == [("w1", None)]
    assert jobs.claim(database, "w1", "h", ["page"], 1)[0].id == job.id
    jobs.wish(database, job.id, Verb.CANCEL)
    database.close()


def test_chains_of_redirects_move_to_a_column_of_their_own(database_url: str) -> None:
    old = open_database(database_url, upgrade=False)
    migrate.upgrade(old, to=10)
    id = "01900000-0000-7000-8000-000000000001"
    rows = [
        (1, "queued", "https://a.example/ https://b.example/", "redirect"),
        (2, "queued", "level-2", "sitemap_index"),
        (3, "failed", "no byte for 20 s", "redirect"),
        (4, "queued", None, "link"),
    ]
    with old.transaction() as transaction:
        for number, state, detail, via in rows:
            said = "NULL" if detail is None else f"'{detail}'"
            transaction.script(
                "INSERT INTO crawl_urls (job_id, id, url_key, url, host, depth, state, detail, found_via) "
                f"VALUES ('{id}', {number}, {number}, 'https://c/{number}', 'c', 0, '{state}', {said}, '{via}')"
            )
    old.close()
    database = open_database(database_url)
    assert [(row.chain, row.detail) for row in urls.page(database, id)] == [
        (rows[0][2], None),
        ("level-2", None),
        (None, "no byte for 20 s"),
        (None, None),
    ]
    database.close()


def test_jobs_with_long_payloads_get_their_short_forms(database_url: str) -> None:
    old = open_database(database_url, upgrade=False)
    migrate.upgrade(old, to=18)
    long = {"url": "https://a.example/", "urls": ["x" * 100] * 2_000, "warc": True, "headers": {"a": "b" * 9_000}}
    ids = [f"01900000-0000-7000-8000-00000000000{number}" for number in range(2)]
    with old.transaction() as transaction:
        for id, payload in zip(ids, ({"url": "https://b.example/"}, long), strict=True):
            now = old.now().isoformat()
            transaction.script(
                "INSERT INTO crawl_jobs (id, kind, status, desired, payload, run_at, created_at, updated_at) "
                f"VALUES ('{id}', 'page', 'queued', 'run', '{json.dumps(payload)}', '{now}', '{now}', '{now}')"
            )
    old.close()
    database = open_database(database_url)
    assert jobs.get(database, ids[1]).payload == long
    assert [job.payload for job in jobs.page(database)] == [{**long, "urls": None}, {"url": "https://b.example/"}]
    if database.dialect == "sqlite":
        assert [*database.rows("jobs.get", id=ids[0])[0]][-1] == "payload", "a column behind it is read through it"
    database.close()


def test_a_newer_database_is_refused_and_left_alone(database_url: str) -> None:
    database = open_database(database_url)
    job = queued(database)
    newer = migrate.newest(database) + 7
    database.rows("schema.record", revision=newer, applied="in the future")
    with pytest.raises(
        SchemaTooNew, match=rf"revision {newer}, but this Silkline knows only {newer - 7}: upgrade Silkline"
    ):
        open_database(database_url)
    assert migrate.revision(database) == newer
    assert jobs.get(database, job.id) == job
    database.close()


def test_a_migration_that_fails_leaves_nothing(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    good = migrate.migrations("sqlite" if database_url.startswith("sqlite") else "postgres")
    monkeypatch.setattr(
        migrate, "migrations", lambda dialect: {**good, 3: "CREATE TABLE half (id int); SELECT nonsense"}
    )
    with pytest.raises(StoreError):
        open_database(database_url)
    monkeypatch.undo()
    database = open_database(database_url, upgrade=False)
    assert migrate.revision(database) == 0
    assert migrate.upgrade(database) == (0, max(good))
    database.close()


def test_programs_that_start_at_the_same_moment_all_find_their_tables(database_url: str) -> None:
    programs = [
        subprocess.Popen([sys.executable, "-c", OPEN_AND_STORE, database_url], stdin=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for program in programs:
        assert program.stdin
        program.stdin.write("\n")
        program.stdin.flush()
    for program in programs:
        program.communicate(timeout=120)
    assert [program.returncode for program in programs] == [0, 0, 0, 0]
    database = open_database(database_url)
    assert len(jobs.page(database)) == 4
    database.close()


def test_both_databases_have_the_same_revisions_without_a_gap() -> None:
    sqlite, postgres = migrate.migrations("sqlite"), migrate.migrations("postgres")
    assert list(sqlite) == list(postgres) == list(range(1, len(sqlite) + 1))
    assert len(list(FILES.iterdir())) == 2 * len(sqlite)


def test_both_databases_have_the_same_columns(sqlite_database: Database, postgres_database: Database) -> None:
    job_sqlite, job_postgres = queued(sqlite_database), queued(postgres_database)
    (left,) = sqlite_database.rows("jobs.get", id=job_sqlite.id)
    (right,) = postgres_database.rows("jobs.get", id=job_postgres.id)
    assert sorted(left) == sorted(right)
    assert {name: type(value) for name, value in left.items()} == {name: type(value) for name, value in right.items()}


@pytest.mark.parametrize("url", ["", "silkline.db", "mysql://x/y", "sqlite://", "sqlite:///", "http://u:secret@h/d"])
def test_a_url_of_no_database_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(UsageError, match="the database URL must be sqlite:///PATH or postgresql://") as refused:
        open_database(url)
    assert "secret" not in str(refused.value)


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("these are my notes, and they are long enough to be looked at " * 20)
    before = file.read_bytes()
    with pytest.raises(StoreError, match="is not a Silkline database"):
        open_database(f"sqlite:///{file}")
    assert file.read_bytes() == before


def test_a_place_where_no_file_can_be_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="cannot open the database"):
        open_database(f"sqlite:///{tmp_path / 'file' / 'silkline.db'}")
    with pytest.raises(Unavailable):
        open_database(f"sqlite:///{tmp_path}")

"""A migrated, empty database of each kind for every test.

The file of SQLite is a copy of one that was migrated: 1 ms instead of 60, most of them for the disk. The PostgreSQL one
is emptied and used again: making a new one costs a checkpoint of the server, up to a second on a busy disk. Tests that
leave much behind, or break things, ask for `postgres_url` and migrate it themselves.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from silkline.model.database import Database
from silkline.store.opening import open_database
from tests.support.postgres import PostgresDatabases

EMPTY = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid();
DELETE FROM crawl_jobs; DELETE FROM crawl_ledger; DELETE FROM crawl_url_keys; DELETE FROM crawl_states;
DELETE FROM crawl_results; DELETE FROM crawl_links; DELETE FROM job_logs; DELETE FROM workers; DELETE FROM deleted_jobs;
DELETE FROM blamed_inputs; DELETE FROM checkpoint_counts; DELETE FROM crawl_html; DELETE FROM crawl_html_dictionaries;
DELETE FROM sharded_crawls; DELETE FROM crawl_shards; DELETE FROM shard_links; DELETE FROM shard_cursors;
DELETE FROM host_bookings; DELETE FROM address_bookings;
"""


@pytest.fixture(scope="session")
def shared_postgres_url(postgres: PostgresDatabases) -> Iterator[str]:
    url = postgres.create_database()
    open_database(url).close()
    yield url
    postgres.drop_database(url)


@pytest.fixture
def migrated_postgres_url(shared_postgres_url: str) -> str:
    with psycopg.connect(shared_postgres_url, autocommit=True) as connection:
        connection.execute(EMPTY)
    return shared_postgres_url


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("migrated") / "silkline.db"
    open_database(f"sqlite:///{file}").close()
    return file


@pytest.fixture
def migrated_sqlite_url(migrated_file: Path, tmp_path: Path) -> str:
    shutil.copy(migrated_file, tmp_path / "silkline.db")
    return f"sqlite:///{tmp_path / 'silkline.db'}"


@pytest.fixture(params=["sqlite", "postgres"])
def migrated_url(request: pytest.FixtureRequest) -> str:
    """The URL of a database with all its tables, of each kind."""
    if request.param == "sqlite":
        made: str = request.getfixturevalue("migrated_sqlite_url")
        return made
    copy: str = request.getfixturevalue("migrated_postgres_url")
    return copy


@pytest.fixture
def database(migrated_url: str) -> Iterator[Database]:
    opened = open_database(migrated_url)
    yield opened
    opened.close()


@pytest.fixture
def postgres_database(migrated_postgres_url: str) -> Iterator[Database]:
    opened = open_database(migrated_postgres_url)
    yield opened
    opened.close()


@pytest.fixture
def fresh_postgres(postgres_url: str) -> Iterator[Database]:
    """A database whose pages and statistics no other test has touched."""
    opened = open_database(postgres_url)
    yield opened
    opened.close()


@pytest.fixture
def sqlite_database(migrated_sqlite_url: str) -> Iterator[Database]:
    opened = open_database(migrated_sqlite_url)
    yield opened
    opened.close()

"""What every test may ask for: real servers, a real browser, both databases; and the rule that CI skips nothing."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import programs
from tests.support.postgres import PostgresDatabases, PostgresServer
from tests.support.redis import RedisDatabase, RedisServer

ROOT = Path(__file__).resolve().parents[1]
NEED_PROGRAMS = {"postgres", "own_postgres", "redis", "own_redis", "chromium"}
skipped: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fast", action="store_true", help="leave out the tests that need PostgreSQL, Redis or Chromium")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--fast"):
        slow = [item for item in items if _needs_programs(item)]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]


def _needs_programs(item: pytest.Item) -> bool:
    on_postgres = isinstance(item, pytest.Function) and "postgres" in getattr(
        getattr(item, "callspec", None), "id", ""
    ).split("-")
    return on_postgres or not NEED_PROGRAMS.isdisjoint(getattr(item, "fixturenames", ()))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        skipped.append(report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.skipped:
        skipped.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if skipped and os.environ.get("CI") == "true" and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if skipped and os.environ.get("CI") == "true":
        terminalreporter.section("skipped tests fail this run, because CI=true", red=True, bold=True)
        for nodeid in skipped:
            terminalreporter.write_line(nodeid)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresDatabases]:
    """The PostgreSQL of the whole session. Tests that stop or restart a server ask for `own_postgres`."""
    url = os.environ.get("SILKLINE_TEST_POSTGRES_URL")
    if url:
        yield PostgresDatabases(url)
        return
    server = PostgresServer()
    yield server
    server.remove()


@pytest.fixture
def postgres_url(postgres: PostgresDatabases) -> Iterator[str]:
    """A new, empty database on the session's server."""
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new, empty database of each kind: a test that asks for this runs twice."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'silkline.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A server of this test alone, which it may stop, start and restart."""
    server = PostgresServer()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def redis() -> Iterator[RedisDatabase]:
    url = os.environ.get("SILKLINE_TEST_REDIS_URL")
    if url:
        yield RedisDatabase(url)
        return
    server = RedisServer()
    yield server
    server.remove()


@pytest.fixture
def redis_url(redis: RedisDatabase) -> str:
    """The session's Redis, emptied."""
    redis.empty()
    return redis.url


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    """A Redis of this test alone, which it may stop, start and restart."""
    server = RedisServer()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def chromium() -> Path:
    """The browser's program. As root it needs `--no-sandbox`."""
    return programs.chromium()


@pytest.fixture(scope="session")
def wrong_clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library for `LD_PRELOAD` that gives a process a wrong wall clock (`WRONG_CLOCK=3600`)."""
    library = tmp_path_factory.mktemp("clock") / "wrong_clock.so"
    source = ROOT / "tests" / "support" / "wrong_clock.c"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


@pytest.fixture(scope="session")
def long_chaos() -> bool:
    """True under `make chaos`: take minutes instead of seconds."""
    return os.environ.get("SILKLINE_CHAOS") == "long"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The test data beside the repository: URL cases, broken answers, compression bombs, pages and their content."""
    folder = Path(os.environ.get("SILKLINE_TEST_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.fail(f"the test data is not at {folder}: put it there, or name its folder in SILKLINE_TEST_DATA")
    return folder

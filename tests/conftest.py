"""What every test may ask for: real servers, a real browser, both databases; and the rule that CI skips nothing."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import hypothesis
import pytest

from tests.support import programs
from tests.support.effort import LONG
from tests.support.pgbouncer import PgBouncer
from tests.support.postgres import PostgresDatabases, PostgresServer

ROOT = Path(__file__).resolve().parents[1]
DATABASES = ["sqlite", "postgres"]
NEED_PROGRAMS = {"postgres", "own_postgres", "chromium", "pgbouncer"}
# With several workers the files go out in this order: the long ones first, so that none is left over at the end.
ORDER = ["chaos", "service", "web", "acceptance", "crawl", "api", "store", "unit"]
ON_ONE_DATABASE = {"acceptance", "api", "service"}
skipped: dict[str, str] = {}  # the tests that were left out, each with the reason
figures: list[tuple[str, str]] = []

# A loaded machine is no reason for a property to fail. Everything else is Hypothesis's own default, here or under CI.
hypothesis.settings.register_profile(
    "silkline",
    parent=hypothesis.settings.get_profile(hypothesis.settings.get_current_profile_name()),
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("silkline")


def pytest_configure(config: pytest.Config) -> None:
    """No test may touch the data of the person who runs it: a command without --data finds an empty home."""
    home = tempfile.mkdtemp(prefix="silkline-home-")
    os.environ["XDG_DATA_HOME"] = home
    config.add_cleanup(lambda: shutil.rmtree(home, ignore_errors=True))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fast", action="store_true", help="leave out the tests that need PostgreSQL or Chromium")
    parser.addoption("--both-databases", action="store_true", help="run every test of two databases on both")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = set[pytest.Item]()
    if config.getoption("--fast"):
        left_out = {item for item in items if _needs_programs(item)}
    elif not (config.getoption("--both-databases") or LONG):
        left_out = _on_the_other_database(items)
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]
    items.sort(key=_turn)


def _on_the_other_database(items: list[pytest.Item]) -> set[pytest.Item]:
    """The second form of each test that can run on both databases, in the folders whose subject is another one: what
    the databases do differently is tried in `store` and `chaos`, always on both. The name of a test decides where it
    runs. A test with the mark `both_databases` runs on both."""
    forms: dict[tuple[str, str], dict[str, pytest.Item]] = {}
    for item in items:
        case = getattr(getattr(item, "callspec", None), "id", "").split("-")
        for database in DATABASES:
            if database in case and item.path.parent.name in ON_ONE_DATABASE:
                others = "-".join(part for part in case if part != database)
                forms.setdefault((item.nodeid.partition("[")[0], others), {})[database] = item
    return {
        form[DATABASES[crc32("".join(test).encode()) % 2]]
        for test, form in forms.items()
        if len(form) == len(DATABASES) and not form["sqlite"].get_closest_marker("both_databases")
    }


def _turn(item: pytest.Item) -> int:
    folder = item.path.parent.name
    return ORDER.index(folder) if folder in ORDER else len(ORDER)


def _needs_programs(item: pytest.Item) -> bool:
    on_postgres = isinstance(item, pytest.Function) and "postgres" in getattr(
        getattr(item, "callspec", None), "id", ""
    ).split("-")
    return on_postgres or not NEED_PROGRAMS.isdisjoint(getattr(item, "fixturenames", ()))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        skipped[report.nodeid] = reason_of(report)
    if report.when == "teardown":
        name = report.nodeid.rpartition("::")[2]
        figures.extend((name, str(said)) for label, said in report.user_properties if label == "figure")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.skipped:
        skipped[report.nodeid] = reason_of(report)


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return said.removeprefix("Skipped: ")


def pytest_sessionfinish(session: pytest.Session) -> None:
    if skipped and os.environ.get("CI") == "true" and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if skipped and os.environ.get("CI") == "true":
        terminalreporter.section("skipped tests fail this run, because CI=true", red=True, bold=True)
        for nodeid in skipped:
            terminalreporter.write_line(nodeid)
    if figures:
        terminalreporter.section("faults, and what was seen")
        width = max(len(name) for name, _ in figures)
        for name, said in sorted(figures):
            terminalreporter.write_line(f"{name:{width}}  {said}")


def pytest_unconfigure(config: pytest.Config) -> None:
    """The last line of a run names what was left out; a person who looks at the end of the output must see it."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if skipped and reporter is not None and not hasattr(config, "workerinput"):
        names = ", ".join(f"{nodeid} ({reason})" for nodeid, reason in skipped.items())
        reporter.write_line(f"{len(skipped)} left out: {names}")


@pytest.fixture(scope="session", autouse=True)
def _signals_arrive() -> None:
    """Started by nohup or in the background of a script, we ignore signals, and so would all that the tests start."""
    for number in (signal.SIGHUP, signal.SIGINT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


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


@pytest.fixture(params=DATABASES)
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


@pytest.fixture
def pgbouncer(postgres_url: str) -> Iterator[PgBouncer]:
    """A PgBouncer in transaction mode, in front of a new, empty database."""
    try:
        pooler = PgBouncer(postgres_url)
    except programs.Missing as missing:
        pytest.skip(f"this machine lacks {missing}")
    yield pooler
    pooler.remove()


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
    return LONG

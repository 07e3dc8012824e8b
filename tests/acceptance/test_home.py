"""Where data lies: one home for each user, nothing made by commands that only look, nothing put elsewhere."""

import os
import re
import signal
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from silkline.sample.server import SampleServer
from silkline.store import jobs
from silkline.store.opening import open_database
from tests.acceptance.conftest import PATIENCE, Finished, Silkline

LISTING = [("jobs",), ("jobs", "ls"), ("jobs", "ls", "--status", "pending"), ("workers",), ("tokens", "ls")]
FINDING = [
    *(("jobs", verb, "last") for verb in ("show", "pause", "resume", "stop", "cancel", "retry", "rm")),
    *((verb, "last") for verb in ("results", "urls", "errors", "logs", "resume")),
    ("results", "last", "-o", "out.jsonl"),
    ("explain", "last", "example.com"),
]
ADD = ("jobs", "add", "--kind", "page", "https://example.com/")


class AtHome:
    """Runs `silkline` as a user who has named no data directory."""

    def __init__(self, silkline: Silkline, folder: Path) -> None:
        self.silkline = silkline
        self.home = folder / "home"
        self.home.mkdir()
        self.data = self.home / ".local" / "share" / "silkline"
        self.variables = {"SILKLINE_DATA": "", "XDG_DATA_HOME": "", "HOME": str(self.home)}

    def __call__(self, *arguments: str, **more: str) -> Finished:
        return self.silkline(*arguments, **{**self.variables, **more})

    def made(self) -> list[Path]:
        """Everything in the home and in the current folder."""
        return sorted(path for path in self.silkline.folder.rglob("*") if path != self.home)


@pytest.fixture
def at_home(silkline: Silkline, tmp_path: Path) -> AtHome:
    return AtHome(silkline, tmp_path)


@pytest.mark.parametrize(
    "arguments", [*LISTING, *FINDING, ("tokens", "rm", "x"), ("config",), ("doctor",)], ids=" ".join
)
def test_a_command_that_only_looks_makes_nothing(at_home: AtHome, arguments: tuple[str, ...]) -> None:
    ended = at_home(*arguments)
    assert at_home.made() == [], ended
    assert ended.code == (5 if arguments in FINDING or "rm" in arguments else 0), ended
    if arguments in FINDING or arguments in LISTING[:3]:
        assert "here are no jobs yet" in ended.err, ended
        assert str(at_home.data) in ended.err, ended
    if arguments in LISTING:
        assert at_home(*arguments, "--json").json == []


def test_a_command_that_only_looks_makes_no_tables(at_home: AtHome, postgres_url: str) -> None:
    looking = [("jobs",), ("workers",), ("tokens", "ls"), ("errors", "last"), ("jobs", "rm", "last"), ("doctor",)]
    for arguments in looking:
        ended = at_home(*arguments, SILKLINE_DATABASE_URL=postgres_url)
        assert ended.code == (5 if "last" in arguments else 0), ended
        assert tables(postgres_url) == [], arguments
    assert at_home.made() == []


def test_jobs_are_found_from_every_folder(at_home: AtHome) -> None:
    assert at_home(*ADD).code == 0
    at_home.silkline.folder = at_home.silkline.folder / "elsewhere"
    at_home.silkline.folder.mkdir()
    assert len(at_home("jobs", "ls", "--json").json) == 1
    assert at_home.made() == []
    assert (at_home.data / "silkline.db").exists()
    other = at_home.home / "xdg"
    assert at_home("jobs", "ls", "--json", XDG_DATA_HOME=str(other)).json == []
    assert at_home(*ADD, XDG_DATA_HOME=str(other)).code == 0
    assert (other / "silkline" / "silkline.db").exists()


@pytest.mark.parametrize("by", ["option", "variable"])
def test_another_directory_can_be_named(at_home: AtHome, by: str) -> None:
    ended = at_home(*ADD, "--data", "mine") if by == "option" else at_home(*ADD, SILKLINE_DATA="mine")
    assert ended.code == 0, ended
    assert (at_home.silkline.folder / "mine" / "silkline.db").exists()
    assert not at_home.data.exists()


def test_only_the_owner_can_read_what_is_made(at_home: AtHome, tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with SampleServer() as site:
            assert at_home("crawl", site.url, "--limit", "3", "--speed", "max", "--warc").code == 0
            assert at_home("jobs", "ls", SILKLINE_DATABASE_URL=f"sqlite:///{tmp_path}/a/b/c.db").code == 0
            assert at_home(*ADD, SILKLINE_DATABASE_URL=f"sqlite:///{tmp_path}/a/b/c.db").code == 0
    finally:
        os.umask(before)
    made = [*at_home.data.rglob("*"), at_home.data, *(tmp_path / "a").rglob("*"), tmp_path / "a"]
    assert {path.name for path in made} >= {"silkline.db", "logs", "warc", "workers", "c.db"}
    assert [path for path in made if path.is_dir() and stat.S_IMODE(path.stat().st_mode) & 0o077] == []
    databases = [path for path in made if path.suffix in (".db", ".log")]
    assert [path for path in databases if stat.S_IMODE(path.stat().st_mode) & 0o077] == []


def test_the_folder_of_older_versions_is_mentioned(at_home: AtHome) -> None:
    old = at_home.silkline.folder / "silkline-data"
    assert at_home(*ADD, "--data", str(old)).code == 0
    told = at_home("jobs", "ls")
    assert told.err.count("--data ./silkline-data") == 1, told
    assert str(at_home.data) in told.err
    assert not at_home.data.exists()
    assert len(at_home("jobs", "ls", "--json", "--data", "./silkline-data").json) == 1
    for quiet in (("-q",), ("--data", "./silkline-data")):
        assert "silkline-data" not in at_home("jobs", "ls", *quiet).err


@pytest.mark.parametrize("named", [False, True])
def test_serve_says_where_the_data_lies(at_home: AtHome, named: bool) -> None:
    url = f"sqlite:///{at_home.home / 'named.db'}"
    more = {"SILKLINE_DATABASE_URL": url} if named else {}
    server = at_home.silkline.start("serve", "--port", "0", **{**at_home.variables, **more})
    assert server.stderr is not None
    said = ""
    for line in server.stderr:
        said += line.decode()
        if "data is in" in said:
            break
    server.send_signal(signal.SIGTERM)
    server.communicate(timeout=PATIENCE)
    assert str(at_home.data) in said, said
    assert (url in said) is named


# A database that was named for another program.


def tables(url: str) -> list[str]:
    import psycopg

    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
        return [row[0] for row in found]


def make_foreign_postgres(url: str) -> None:
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE shop_orders (id integer)")


COMMANDS = [("jobs",), ADD, ("db", "upgrade"), ("doctor",), ("config",), ("tokens", "ls")]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_the_database_of_another_program_is_left_alone(
    at_home: AtHome, postgres_url: str, arguments: tuple[str, ...]
) -> None:
    make_foreign_postgres(postgres_url)
    ended = at_home(*arguments, DATABASE_URL=postgres_url)
    assert ended.code == 0, ended
    assert tables(postgres_url) == ["shop_orders"]
    if arguments != ("config",):
        (sentence,) = (line for line in ended.err.splitlines() if "DATABASE_URL" in line)
        assert "SILKLINE_DATABASE_URL" in sentence
        assert "silkline db upgrade" in sentence


def test_the_file_of_another_program_is_not_even_touched(at_home: AtHome) -> None:
    file = at_home.silkline.folder / "shop.sqlite3"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE shop_orders (id integer)")
    connection.close()
    before = file.read_bytes()
    with SampleServer() as site:
        assert at_home("fetch", site.url, DATABASE_URL=f"sqlite:///{file}").code == 0
    assert file.read_bytes() == before
    assert sorted(path.name for path in file.parent.glob("shop*")) == ["shop.sqlite3"]
    assert len(at_home("jobs", "ls", "--json").json) == 1, "it was stored at home"


@pytest.mark.parametrize(
    "url",
    ["mysql://root@db/shop", "postgresql+asyncpg://db/shop", "postgresql://h/d?schema=public", "sqlite:///none.db"],
)
def test_a_database_that_cannot_be_ours_does_not_stand_in_the_way(at_home: AtHome, url: str) -> None:
    ended = at_home("jobs", DATABASE_URL=url)
    assert ended.code == 0, ended
    assert "SILKLINE_DATABASE_URL" in ended.err
    assert at_home.made() == []


def test_a_bare_database_url_counts_where_our_tables_are(at_home: AtHome, database_url: str) -> None:
    assert at_home("db", "upgrade", SILKLINE_DATABASE_URL=database_url).code == 0
    added = at_home(*ADD, DATABASE_URL=database_url)
    assert (added.code, "SILKLINE_DATABASE_URL" in added.err) == (0, False), added
    database = open_database(database_url)
    assert jobs.find(database, "last").id == added.out.strip()
    database.close()
    assert not at_home.data.exists()


def test_a_database_that_does_not_answer_is_not_exchanged_for_another(at_home: AtHome) -> None:
    ended = at_home("jobs", DATABASE_URL="postgresql://me:secret@127.0.0.1:1/x")
    ended.refused(1, "DATABASE_URL does not answer", "SILKLINE_DATABASE_URL", "silkline db upgrade")
    assert "secret" not in ended.err


# Settings travel as values.


@pytest.fixture
def site() -> Iterator[SampleServer]:
    with SampleServer() as server:
        yield server


@pytest.mark.parametrize("command", ["fetch", "crawl"])
def test_what_the_command_line_names_reaches_the_job(at_home: AtHome, site: SampleServer, command: str) -> None:
    place = at_home.silkline.folder / "named"
    more = ("--limit", "3") if command == "crawl" else ()
    assert at_home(command, site.url, "--data", str(place), "--warc", "--speed", "max", *more).code == 0
    assert list((place / "warc").rglob("*.warc.gz"))
    assert not at_home.data.exists()
    assert sorted(path.name for path in at_home.silkline.folder.iterdir()) == ["home", "named"]


def test_settings_say_how_many_processes_a_crawl_gets(at_home: AtHome, site: SampleServer) -> None:
    sizes = {"SILKLINE_FETCHERS": "2", "SILKLINE_PARSERS": "1", "SILKLINE_MAX_CONCURRENT_HTTP": "9"}
    assert at_home("crawl", site.url, "--limit", "5", "--speed", "max", **sizes).code == 0
    assert "crawling with 2 fetchers and 1 parser" in at_home("logs", "last").out
    assert at_home("crawl", site.url, "--limit", "5", "--speed", "max", "--fetchers", "1", **sizes).code == 0
    assert "crawling with 1 fetcher and 1 parser" in at_home("logs", "last").out


LINE = re.compile(r"^\S+Z (\w+) +silkline\.", re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "variables", "levels"),
    [
        ((), {}, set()),
        (("--log-level", "info"), {}, {"INFO"}),
        ((), {"SILKLINE_LOG_LEVEL": "info"}, {"INFO"}),
        (("-q",), {"SILKLINE_LOG_LEVEL": "info"}, set()),
        (("--log-level", "error"), {"SILKLINE_LOG_LEVEL": "info"}, set()),
        (("-q", "--log-level", "info"), {}, {"INFO"}),
    ],
)
@pytest.mark.parametrize("command", ["fetch", "crawl"])
def test_the_level_of_the_log(
    at_home: AtHome,
    site: SampleServer,
    command: str,
    arguments: tuple[str, ...],
    variables: dict[str, str],
    levels: set[str],
) -> None:
    ended = at_home(command, site.url, "--speed", "max", *arguments, **variables)
    assert ended.code == 0, ended
    assert set(LINE.findall(ended.err)) == levels, ended


def test_a_level_that_is_none_is_refused(at_home: AtHome) -> None:
    at_home("jobs", "--log-level", "loud").refused(2, "--log-level", "debug")
    at_home("jobs", SILKLINE_LOG_LEVEL="loud").refused(2, "log_level", "debug")

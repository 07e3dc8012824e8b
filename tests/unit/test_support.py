"""The servers that the other tests stand on."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import psycopg
import pytest

from tests.support import daemon
from tests.support.postgres import PostgresDatabases, PostgresServer

SESSION_THAT_WILL_BE_KILLED = """
from tests.support.postgres import PostgresServer
servers = [PostgresServer(), PostgresServer()]
print(*(server._daemon.directory for server in servers), flush=True)
input()
"""


def test_a_port_is_given_to_one_server_only(monkeypatch: pytest.MonkeyPatch) -> None:
    port = daemon.free_port()
    monkeypatch.setattr(daemon, "PORTS", range(port, port + 1))
    command = [sys.executable, "-c", f"from tests.support import daemon; print(daemon._reserve({port}))"]
    other = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    assert other.stdout == "False\n"
    with pytest.raises(RuntimeError, match="no free port"):
        daemon.free_port()


def test_each_database_is_new_and_empty(postgres: PostgresDatabases) -> None:
    first, second = postgres.create_database(), postgres.create_database()
    assert first != second
    for url in (first, second):
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE only_here (id int)")
        postgres.drop_database(url)
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(first)


def test_a_database_is_copied_from_a_template(postgres: PostgresDatabases) -> None:
    template = postgres.create_database()
    with psycopg.connect(template) as connection:
        connection.execute("CREATE TABLE copied (id int)")
    copy = postgres.create_database(template.rsplit("/", 1)[1])
    with psycopg.connect(copy) as connection:
        assert connection.execute("SELECT count(*) FROM copied").fetchone() == (0,)
    postgres.drop_database(copy)
    postgres.drop_database(template)


def test_postgres_keeps_what_was_committed_when_it_restarts(own_postgres: PostgresServer) -> None:
    url = own_postgres.create_database()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kept (id int)")
    own_postgres.restart()
    own_postgres.stop("immediate")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)
    own_postgres.start()
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)


@pytest.mark.usefixtures("postgres")
def test_servers_die_with_a_session_that_is_killed() -> None:
    command = [sys.executable, "-c", SESSION_THAT_WILL_BE_KILLED]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as session:
        assert session.stdout is not None
        directories = [Path(word) for word in session.stdout.readline().split()]
        guards = psutil.Process(session.pid).children()
        servers = psutil.Process(session.pid).children(recursive=True)
        assert len(directories) == len(guards) == 2
        assert len(servers) > len(guards)
        os.kill(session.pid, signal.SIGKILL)
    _, alive = psutil.wait_procs(servers, timeout=60)
    assert alive == []
    assert not any(directory.exists() for directory in directories)

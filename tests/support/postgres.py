"""A real PostgreSQL for the tests: a temporary cluster of our own, or a running server that was named to us."""

import itertools
import os
import shutil
import signal
import subprocess
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from tests.support import programs
from tests.support.daemon import Daemon

STOP_SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}


class PostgresDatabases:
    """A running server named by a URL, whose account may create databases."""

    def __init__(self, url: str) -> None:
        self._url = urlsplit(url)
        self._numbers = itertools.count(1)

    def url(self, database: str = "postgres") -> str:
        return urlunsplit(self._url._replace(path=f"/{database}"))

    def create_database(self, template: str = "template0") -> str:
        """The URL of a new, empty database (or of a copy of `template`, which nobody may be using)."""
        name = f"silkline_{os.getpid()}_{next(self._numbers)}"
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
        with self._connect() as connection:
            # Measured, PostgreSQL 15 without fsync: 16 ms by copying files, 133 ms through the write-ahead log.
            by_file = sql.SQL(" STRATEGY file_copy" if connection.info.server_version >= 150_000 else "")
            connection.execute(statement + by_file)
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Drops it at once, even if a test left connections or processes behind."""
        name = urlsplit(url).path.lstrip("/")
        with self._connect() as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(urlunsplit(self._url), autocommit=True)


class PostgresServer(PostgresDatabases):
    """A temporary cluster that can be stopped and started again on the same port, data kept."""

    def __init__(self, *, fsync: bool = False, **settings: str) -> None:
        self._bin = programs.postgres_bin()
        self._daemon = Daemon("postgres", user=programs.account_for_servers())
        self._data = self._daemon.directory / "data"
        super().__init__(f"postgresql://silkline@127.0.0.1:{self._daemon.port}/postgres")
        self._settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self._daemon.port),
            "unix_socket_directories": str(self._daemon.directory),
            "max_connections": "300",
            "log_min_messages": "warning",
            **({} if fsync else {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}),
            **settings,
        }
        try:
            self._initialise()
            self.start()
        except BaseException:
            self._daemon.remove()
            raise

    @property
    def log(self) -> str:
        return self._daemon.log

    def socket_url(self, url: str) -> str:
        """The same database through a socket in the file system, which has no network."""
        place = f"host={self._daemon.directory}&port={self._daemon.port}"
        return f"postgresql://silkline@/{urlsplit(url).path.lstrip('/')}?{place}"

    @property
    def pid(self) -> int:
        """The postmaster, for tests that kill it."""
        return int((self._data / "postmaster.pid").read_text().split()[0])

    def start(self) -> None:
        options = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        self._daemon.start([self._bin / "postgres", "-D", self._data, *options], self._answers)

    def stop(self, mode: str = "immediate") -> None:
        """`immediate` is what a crash looks like, `fast` cuts the clients off, `smart` waits for them to go."""
        self._daemon.stop(STOP_SIGNALS[mode])

    def restart(self, mode: str = "fast") -> None:
        self.stop(mode)
        self.start()

    def remove(self) -> None:
        self._daemon.remove()

    def _initialise(self) -> None:
        user = self._daemon.user
        if user and not _may_run(self._bin / "initdb", user):
            self._bin = _copy(self._bin.parent, self._daemon.directory / "install", user) / "bin"
        options = ("--username=silkline", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
        done = subprocess.run(
            [self._bin / "initdb", "--pgdata", self._data, *options],
            user=user or None,
            extra_groups=[] if user else None,
            cwd=self._daemon.directory,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"initdb failed with status {done.returncode}:\n{done.stdout}{done.stderr}")

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url(), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True


def _may_run(program: Path, user: str) -> bool:
    try:
        subprocess.run([program, "--version"], user=user, extra_groups=[], cwd="/", check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def _copy(install: Path, target: Path, user: str) -> Path:
    """The wheel's PostgreSQL lies in root's own folder: the other account gets a copy that it may read."""
    shutil.copytree(install, target / install.name, symlinks=True)
    libraries = install.parents[0].with_name(f"{install.parents[0].name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, target.parent / libraries.name)
    for path in (target, *target.rglob("*")):
        shutil.chown(path, user)
    return target / install.name

"""PostgreSQL through psycopg 3.

Single statements run in autocommit, one round trip each; transactions are short. A connection that breaks is thrown
away and the caller gets `Unavailable`: the next call connects again.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import select
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
from psycopg import errors as pg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from psycopg.types.string import TextLoader

from silkline.errors import DiskFull, StoreError, Unavailable
from silkline.model.secret_url import HOW_TO_ENCODE, is_ambiguous
from silkline.store.statement_time import timed
from silkline.store.statements import statement

CHANNEL = "silkline"
MIGRATION_LOCK = 7_337_001
CONNECT_TIMEOUT = 5
# A dead connection is noticed within about 15 seconds, long before a lease expires.
KEEPALIVE = {"keepalives_idle": 5, "keepalives_interval": 3, "keepalives_count": 3, "tcp_user_timeout": 15_000}
# The same for a process that is stopped within a transaction: its connection lives, and its locks would stop everybody
# who wants to take over its job.
LONGEST_PAUSE = 15.0
CLOCK_EVERY = 300.0
# The time of the server is only as exact as the round trip, so a slow answer is requested again.
CLOCK_ASKS = 3
CLOCK_SOON = 0.005
# Errors of the driver when it cannot connect, and our message for each.
_SIGNS = (
    ("password authentication failed", "the user or the password is wrong"),
    ("authentication failed", "it does not accept this user"),
    ("no password supplied", "it wants a password"),
    ("no pg_hba.conf entry", "it does not accept this user from this machine"),
    ("role", "it does not know this user"),
    ("starting up", "it is starting up"),
    ("shutting down", "it is shutting down"),
    ("recovery mode", "it is recovering"),
    ("too many clients", "it has too many connections"),
    ("connection slots", "it has too many connections"),
    ("connection refused", "the connection is refused"),
    ("timeout", "it does not answer in time"),
    ("timed out", "it does not answer in time"),
    ("name or service not known", "the name of its host is not known"),
    ("resolve", "the name of its host is not known"),
    ("host name", "the name of its host is not known"),
    ("no such file", "there is no socket in this folder"),
    ("unreachable", "its host cannot be reached"),
    ("no route", "its host cannot be reached"),
    ("invalid integer value", "the port is not a number"),
    ("invalid port", "the port is not a number"),
    ("ssl", "no encrypted connection could be made"),
    ("closed the connection", "it closed the connection"),
    ("does not exist", "there is no such database"),
)

_WAIT_FOR_DISK = "SET LOCAL synchronous_commit = on"

Connection = psycopg.Connection[dict[str, Any]]


class PostgresDatabase:
    """One PostgreSQL database. It keeps a pool of connections, one for each active thread."""

    dialect = "postgres"

    def __init__(self, url: str) -> None:
        _check_address(url)
        self._url = url
        self._free: list[Connection] = []
        self._lock = threading.Lock()
        self._closed = False
        self._pooled: bool | None = None
        self._lax = False
        """`synchronous_commit = off`: commits are confirmed before they are on the disk."""
        self._clock: tuple[datetime, float] | None = None  # the server's time, and the machine's uptime at it

    def now(self) -> datetime:
        """The time of the server. Between two requests for it, the uptime of this machine is added: nothing sets it."""
        if self._clock is None or _uptime() - self._clock[1] > CLOCK_EVERY:
            with contextlib.suppress(Unavailable):
                self._clock = self._ask_clock()
        if self._clock is None:
            return datetime.now(UTC)
        asked, uptime = self._clock
        return asked + timedelta(seconds=_uptime() - uptime)

    def _ask_clock(self) -> tuple[datetime, float]:
        answers: list[tuple[float, datetime, float]] = []
        with self._connection() as connection:
            while len(answers) < CLOCK_ASKS and not (answers and answers[-1][0] < CLOCK_SOON):
                before = _uptime()
                rows = connection.execute("SELECT clock_timestamp() AS now").fetchall()
                took = _uptime() - before
                answers.append((took, rows[0]["now"], before + took / 2))
        _, asked, uptime = min(answers)
        return asked, uptime

    def rows(self, name: str, *, durable: bool = False, **parameters: Any) -> list[dict[str, Any]]:
        with self._connection() as connection, self._kept(connection, durable):
            return PostgresTransaction(connection).rows(name, **parameters)

    def many(
        self, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, durable: bool = False, **shared: Any
    ) -> int:
        with self._connection() as connection, self._kept(connection, durable):
            return PostgresTransaction(connection).many(name, columns, rows, **shared)

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[PostgresTransaction]:
        with self._connection() as connection, connection.transaction():
            if durable and self._lax:
                connection.execute(_WAIT_FOR_DISK)
            yield PostgresTransaction(connection)

    @contextmanager
    def _kept(self, connection: Connection, durable: bool) -> Iterator[None]:
        """For a statement that is a transaction of its own."""
        if not (durable and self._lax):
            yield
            return
        with connection.transaction():
            connection.execute(_WAIT_FOR_DISK)
            yield

    @contextmanager
    def exclusive(self) -> Iterator[PostgresTransaction]:
        with self.transaction(durable=True) as transaction:
            transaction.script(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")
            yield transaction

    def wake_supervisors(self) -> None:
        with contextlib.suppress(Unavailable):
            self.rows("jobs.wake_supervisors")

    def listen(self, name: str) -> NotifyListener:
        if self._pooled is None:
            with self._connection():
                pass
        if self._pooled:
            raise OSError("PostgreSQL is behind a connection pooler")
        with _translated():
            return NotifyListener(self._open())

    def close(self) -> None:
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
        for connection in free:
            connection.close()

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        with self._lock:
            if self._closed:
                raise Unavailable("the database has been closed")
        connection = self._idle_connection()
        with _translated():
            if connection is None:
                connection = self._open()
            try:
                yield connection
            finally:
                self._give_back(connection)

    def _idle_connection(self) -> Connection | None:
        """A connection that is not in use. If the server sent something without a request, the connection has ended."""
        while True:
            with self._lock:
                connection = self._free.pop() if self._free else None
            if connection is None or not _has_news(connection):
                return connection
            connection.close()

    def _give_back(self, connection: Connection) -> None:
        healthy = not connection.closed and connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        with self._lock:
            if healthy and not self._closed:
                self._free.append(connection)
                return
            # The same outage has probably broken the other connections too.
            stale, self._free = self._free, []
        for each in (connection, *stale):
            each.close()

    def _open(self) -> Connection:
        try:
            connection = psycopg.connect(
                self._url,
                autocommit=True,
                row_factory=dict_row,
                connect_timeout=CONNECT_TIMEOUT,
                application_name="silkline",
                **KEEPALIVE,  # type: ignore[arg-type]
            )
        except psycopg.Error as error:
            # Without the message of the driver, here and in tracebacks: it contains the address.
            raise Unavailable(f"PostgreSQL cannot be used now: {_why_not_connected(error)}") from None
        # Ids and JSON stay text, as with SQLite; callers decode JSON.
        for name in ("uuid", "json", "jsonb"):
            connection.adapters.register_loader(name, TextLoader)
        self._pooled, self._lax = _pooled_and_lax(connection)
        if self._pooled:
            # Each transaction may get another server connection: nothing may be prepared or set for a session. Poolers
            # keep the time zone for each client.
            connection.prepare_threshold = None
            connection.execute("SET TimeZone = 'UTC'")
            return connection
        # Our statements are short and always the same: compiling one, or planning it anew (1.3 ms for a claim), costs
        # more than running it. Lists end after a page: to read a whole job in another order and sort it never pays.
        connection.execute(
            "SET TimeZone = 'UTC'; SET jit = off; "
            "SET plan_cache_mode = force_generic_plan; SET enable_incremental_sort = off; "
            f"SET idle_in_transaction_session_timeout = {1000 * LONGEST_PAUSE:.0f}"
        )
        return connection


class PostgresTransaction:
    """Statements on one connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def rows(self, name: str, **parameters: Any) -> list[dict[str, Any]]:
        with timed(name):
            cursor = self.connection.execute(statement(name, "postgres").encode(), parameters)
            return cursor.fetchall() if cursor.description else []

    def many(self, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], **shared: Any) -> int:
        return self.columns(name, dict(zip(columns, zip(*rows, strict=True), strict=False)), **shared)

    def columns(self, name: str, columns: Mapping[str, Sequence[Any]], **shared: Any) -> int:
        if not any(columns.values()):
            return 0
        sql = statement(name, "postgres").encode()
        if sql.startswith(b"COPY "):
            return self._copy(name, sql, list(shared.values()), list(columns.values()))
        parameters = {column: _array(values) for column, values in columns.items()}
        with timed(name):
            return self.connection.execute(sql, {**parameters, **shared}).rowcount

    def _copy(self, name: str, sql: bytes, shared: Sequence[Any], columns: Sequence[Sequence[Any]]) -> int:
        """COPY in binary: a third less CPU of the server than an INSERT from arrays, and a sixth less of its log."""
        with timed(name), self.connection.cursor() as cursor:
            types = self._types(sql)
            same = [UUID(value) if type == _UUID else value for type, value in zip(types, shared, strict=False)]
            with cursor.copy(sql) as copy:
                copy.set_types(types)
                for row in zip(*map(itertools.repeat, same), *columns, strict=False):
                    copy.write_row(row)
            return cursor.rowcount

    def _types(self, sql: bytes) -> list[int]:
        """The types of the columns of a COPY. They never change while a program runs."""
        if sql not in _COPIED_TYPES:
            table, names = re.findall(rb"COPY (\w+) \(([^)]+)\)", sql)[0]
            query = "SELECT attname, atttypid::int FROM pg_attribute WHERE attrelid = %s::regclass"
            rows = self.connection.execute(query, [table.decode()]).fetchall()
            found = {row["attname"]: row["atttypid"] for row in rows}
            _COPIED_TYPES[sql] = [found[name] for name in names.decode().split(", ")]
        return _COPIED_TYPES[sql]

    def script(self, sql: str) -> None:
        self.connection.execute(sql.encode())


_COPIED_TYPES: dict[bytes, list[int]] = {}
_UUID = psycopg.adapters.types["uuid"].oid


def _array(values: Sequence[Any]) -> str:
    """An array in PostgreSQL's text format. psycopg needs six times as long as one element after the other does, and
    that takes 2.5 times as long as plain text or numbers at once."""
    kinds = set(map(type, values))
    if kinds == {str}:
        joined = '","'.join(values)
        if "\\" not in joined and joined.count('"') == 2 * (len(values) - 1):
            return '{"' + joined + '"}'
    elif kinds == {int}:
        return "{" + ",".join(map(str, values)) + "}"
    elif kinds == {type(None)}:
        return "{" + ",".join(["NULL"] * len(values)) + "}"
    return "{" + ",".join(map(_element, values)) + "}"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, bytes):
        return f'"\\\\x{value.hex()}"'
    return f'"{value}"'


class NotifyListener:
    """The listening end, on its own connection. A broken connection rings at once, so that it is replaced."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        try:
            connection.execute(f"LISTEN {CHANNEL}".encode())
        except BaseException:
            connection.close()
            raise

    def fileno(self) -> int:
        return self._connection.fileno()

    def drain(self) -> list[str]:
        with _translated():
            return [notification.payload for notification in self._connection.notifies(timeout=0)]

    def close(self) -> None:
        self._connection.close()


@contextmanager
def _translated() -> Iterator[None]:
    """Translates errors of the driver into ours. Only this function does so."""
    try:
        yield
    except (pg.DiskFull, pg.ConfigurationLimitExceeded) as error:
        raise DiskFull(f"PostgreSQL has no space left: {error}") from error
    except (pg.StatementTooComplex, pg.ProgramLimitExceeded) as error:
        # The same statement would fail for ever.
        raise StoreError(f"PostgreSQL reported an error: {_first_line(error)}") from error
    except (
        psycopg.OperationalError,
        psycopg.InterfaceError,
        pg.IdleInTransactionSessionTimeout,
        pg.ReadOnlySqlTransaction,  # it is a standby now
    ) as error:
        raise Unavailable(f"PostgreSQL cannot be used now: {_first_line(error)}") from error
    except psycopg.Error as error:
        raise StoreError(f"PostgreSQL reported an error: {_first_line(error)}") from error


def _check_address(url: str) -> None:
    """Refuse an address that the driver would misread. The message of the driver would contain the address."""
    readable = not is_ambiguous(url)
    if readable:
        try:
            conninfo_to_dict(url)
        except psycopg.Error:
            readable = False
    if not readable:
        raise StoreError(f"the database URL of PostgreSQL is not valid: {HOW_TO_ENCODE}")


def _why_not_connected(error: psycopg.Error) -> str:
    said = str(error).lower()
    return next((words for sign, words in _SIGNS if sign in said), "the connection failed")


def _pooled_and_lax(connection: Connection) -> tuple[bool, bool]:
    """Whether a pooler such as PgBouncer is in between: it tells its clients process ids of its own. And whether the
    server confirms commits before they are on the disk."""
    asked = "SELECT pg_backend_pid() AS pid, current_setting('synchronous_commit') = 'off' AS lax"
    row = connection.execute(asked).fetchall()[0]
    return bool(row["pid"] != connection.info.backend_pid), bool(row["lax"])


def _has_news(connection: Connection) -> bool:
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN | select.POLLPRI)
    return bool(waiting.poll(0))


def _uptime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)  # unlike the monotonic clock it also runs while a laptop sleeps


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]

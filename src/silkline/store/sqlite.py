"""SQLite through apsw, whose wheel contains a current SQLite.

Any number of threads and processes may use one file: WAL lets readers and one writer work side by side, and writers
queue by short constant retries, because with SQLite's own busy timeout the pauses grow, so the
writer that has waited longest waits even longer.
"""

from __future__ import annotations

import functools
import itertools
import operator
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw

from silkline.errors import DatabaseRemoved, DiskFull, StoreError, Unavailable
from silkline.private_files import make_private_file, repair_database
from silkline.store.statement_time import timed
from silkline.store.statements import parameters_of, statement
from silkline.store.wakeup import PipeListener, write_to_pipes

BUSY_LIMIT = 60.0  # seconds that a writer waits for the lock
BUSY_STEP = 0.002
SEVERAL = 128
"""Rows of one INSERT, where many are given by columns."""


class SqliteDatabase:
    """One SQLite file. It keeps a pool of connections, one for each active thread."""

    dialect = "sqlite"

    def __init__(self, path: str) -> None:
        self.path = Path(path).absolute()
        self._free: list[apsw.Connection] = []
        self._lock = threading.Lock()
        self._closed = False
        self._file: tuple[int, int] | None = None
        try:
            make_private_file(self.path)
            repair_database(self.path)
            with self._connection():
                self._file = self._file_there()
        except OSError as error:
            raise Unavailable(f"cannot open the database {self.path}: {_reason(error)}") from error

    def now(self) -> datetime:
        return datetime.now(UTC)

    def rows(self, name: str, *, durable: bool = False, **parameters: Any) -> list[dict[str, Any]]:
        with self._connection() as connection, _durability(connection, durable):
            return SqliteTransaction(connection).rows(name, **parameters)

    def many(
        self, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, durable: bool = False, **shared: Any
    ) -> int:
        with self.transaction(durable=durable) as transaction:
            return transaction.many(name, columns, rows, **shared)

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[SqliteTransaction]:
        with self._connection() as connection, _durability(connection, durable):
            _retry_busy(lambda: connection.execute("BEGIN IMMEDIATE"))
            try:
                yield SqliteTransaction(connection)
                _retry_busy(lambda: connection.execute("COMMIT"))
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def exclusive(self) -> Iterator[SqliteTransaction]:
        with self.transaction(durable=True) as transaction:
            yield transaction

    def wake_supervisors(self) -> None:
        write_to_pipes(self._pipes)

    def listen(self, name: str) -> PipeListener:
        return PipeListener(self._pipes, name)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
        for connection in free:
            connection.close()

    def _file_there(self) -> tuple[int, int] | None:
        """The file at the path now. Rows in a file that was removed would be lost. This check takes 2 to 4 µs."""
        try:
            found = os.stat(self.path)  # noqa: PTH116
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    @property
    def _pipes(self) -> Path:
        return self.path.with_name(self.path.name + "-wakeup")

    @contextmanager
    def _connection(self) -> Iterator[apsw.Connection]:
        with self._lock:
            if self._closed:
                raise Unavailable("the database has been closed")
            if self._file is not None and self._file_there() != self._file:
                raise DatabaseRemoved(
                    f"the database file {self.path} was removed or replaced while Silkline used it: "
                    "restore the file, or restart Silkline to use another one"
                )
            connection = self._free.pop() if self._free else None
        with _translated(self.path):
            try:
                connection = connection or self._open()
                yield connection
            finally:
                if connection is not None:
                    self._give_back(connection)

    def _give_back(self, connection: apsw.Connection) -> None:
        with self._lock:
            if not self._closed and not connection.in_transaction:
                self._free.append(connection)
                return
        connection.close()

    def _open(self) -> apsw.Connection:
        connection = apsw.Connection(str(self.path), statementcachesize=200)
        try:
            # A read of a WAL database waits only while another process opens or recovers it.
            connection.set_busy_handler(_wait_our_turn)
            # For a file that is being made. A page with 43 KB of Markdown costs a quarter less to store than with 4096.
            connection.execute("PRAGMA page_size = 8192")
            _retry_busy(lambda: connection.execute("PRAGMA journal_mode = WAL"))
            connection.execute("PRAGMA synchronous = NORMAL; PRAGMA cache_size = -16000; PRAGMA temp_store = MEMORY;")
        except BaseException:
            connection.close()
            raise
        return connection


class SqliteTransaction:
    """Statements on one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection

    def rows(self, name: str, **parameters: Any) -> list[dict[str, Any]]:
        with timed(name):
            return self._rows(name, parameters)

    def _rows(self, name: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        for key, value in parameters.items():
            if isinstance(value, datetime):
                parameters[key] = text_of(value)
        cursor = self.connection.execute(statement(name, "sqlite"), parameters)
        try:
            names = [column[0] for column in cursor.get_description()]
        except apsw.ExecutionCompleteError:
            return []
        found = [dict(zip(names, row, strict=True)) for row in cursor]
        for key in names:
            if _is_time(key):
                for row in found:
                    if row[key] is not None:
                        row[key] = datetime.fromisoformat(row[key])
        return found

    def many(self, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], **shared: Any) -> int:
        first = tuple(text_of(value) if isinstance(value, datetime) else value for value in shared.values())
        given = (*shared, *columns)
        order = [given.index(parameter) for parameter in parameters_of(name)]
        times = [place for place, column in enumerate(columns) if _is_time(column)]
        if times:
            rows = (_with_text_times(row, times) for row in rows)
        bindings = ((*first, *row) for row in rows)
        if order != list(range(len(given))):
            bindings = map(operator.itemgetter(*order), bindings)  # type: ignore[assignment]
        before = self.connection.total_changes()
        with timed(name):
            self.connection.executemany(statement(name, "sqlite"), bindings)
        return self.connection.total_changes() - before

    def columns(self, name: str, columns: Mapping[str, Sequence[Any]], **shared: Any) -> int:
        """Insert `SEVERAL` rows with each statement, and bind a value once if all rows have it: that takes little more
        than half the CPU of a statement for each row."""
        rows = len(next(iter(columns.values())))
        once = {**shared, **{column: values[0] for column, values in columns.items() if rows and _all_equal(values)}}
        if (*shared, *columns) != parameters_of(name):
            raise ValueError(f"{name} takes {parameters_of(name)}, not {(*shared, *columns)}")
        each = [values for column, values in columns.items() if column not in once]
        width, first, start = len(each), list(once.values()), 0
        flat: list[Any] = [None] * (rows * width)
        for place, values in enumerate(each):
            flat[place::width] = values
        before = self.connection.total_changes()
        with timed(name):
            for several in (SEVERAL, 1):
                end = rows - rows % several
                self.connection.executemany(
                    _inserting(name, tuple(once), several),
                    (first + flat[row * width : (row + several) * width] for row in range(start, end, several)),
                )
                start = end
        return self.connection.total_changes() - before

    def script(self, sql: str) -> None:
        self.connection.execute(sql)


@functools.cache
def _inserting(name: str, once: tuple[str, ...], several: int) -> str:
    """An INSERT of one row, for several rows. The parameters in `once` are bound first, for all of them."""
    sql, _, values = statement(name, "sqlite").partition("VALUES ")
    parameters = parameters_of(name)
    if values.count(":") != len(parameters) or not values.endswith(")"):
        raise ValueError(f"{name} is not an INSERT of one row of parameters")
    numbers = itertools.count(len(once) + 1)
    shared = {parameter: number for number, parameter in enumerate(once, 1)}
    rows = ([f"?{shared.get(each) or next(numbers)}" for each in parameters] for _ in range(several))
    return f"{sql}VALUES " + ", ".join(f"({', '.join(row)})" for row in rows)


def _all_equal(values: Sequence[Any]) -> bool:
    return bool(values[0] == values[-1]) and values.count(values[0]) == len(values)


def _reason(error: OSError) -> str:
    """An error of the file system without its number."""
    return f"{error.strerror}: {error.filename}" if error.filename else error.strerror or str(error)


def has_tables(path: Path) -> bool:
    """Whether a file contains the tables of Silkline. Only reads it, and never creates it."""
    path = path.absolute()
    try:
        nearest = next(place for place in (path, *path.parents) if place.exists())
    except OSError as error:
        raise Unavailable(f"cannot open the database {path}: {_reason(error)}") from error
    if nearest != path and not nearest.is_dir():
        raise Unavailable(f"cannot open the database {path}: {nearest} is not a directory")
    if nearest != path:
        return False
    with _translated(path):
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            connection.set_busy_handler(_wait_our_turn)
            return bool(list(connection.execute(statement("schema.exists", "sqlite"))))
        finally:
            connection.close()


def text_of(moment: datetime) -> str:
    """A time in the format of the tables."""
    return moment.isoformat(timespec="microseconds")


def version() -> str:
    return apsw.sqlite_lib_version()


def _is_time(column: str) -> bool:
    return column.endswith("_at") or column in ("last_heartbeat", "last_seen", "at")


def _with_text_times(row: Sequence[Any], times: list[int]) -> list[Any]:
    values = list(row)
    for place in times:
        if values[place] is not None:
            values[place] = text_of(values[place])
    return values


def _wait_our_turn(tries: int) -> bool:
    time.sleep(BUSY_STEP)
    return tries * BUSY_STEP < BUSY_LIMIT


def _retry_busy(action: Any) -> None:
    """Retry when SQLite reports that it is busy without a call of the busy handler."""
    give_up = time.monotonic() + BUSY_LIMIT
    while True:
        try:
            action()
            return
        except apsw.BusyError:
            if time.monotonic() > give_up:
                raise
            time.sleep(BUSY_STEP)


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Translates errors of the driver into ours. Only this function does so."""
    try:
        yield
    except apsw.FullError as error:
        raise DiskFull(f"no space left for the database {path}") from error
    except apsw.IOError as error:
        raise _input_output_error(error, path) from error
    except (apsw.BusyError, apsw.LockedError, apsw.ProtocolError, apsw.CantOpenError, apsw.ReadOnlyError) as error:
        raise Unavailable(f"the database {path} cannot be used now: {error}") from error
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise StoreError(f"{path} is not a Silkline database, or it is damaged: {error}") from error
    except apsw.ConstraintError as error:
        raise StoreError(f"the database refused a row: {error}") from error
    except apsw.Error as error:
        raise StoreError(f"SQLite reported an error: {error}") from error


@contextmanager
def _durability(connection: apsw.Connection, durable: bool) -> Iterator[None]:
    """FULL sync for data that must survive a power failure, NORMAL for data that a crawl can fetch again."""
    if not durable:
        yield
        return
    connection.execute("PRAGMA synchronous = FULL")
    try:
        yield
    finally:
        connection.execute("PRAGMA synchronous = NORMAL")


def _input_output_error(error: apsw.IOError, path: Path) -> StoreError:
    """The cause of a failed write: mostly a full disk or quota, which SQLite reports as an I/O error in the WAL."""
    writing = (apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_TRUNCATE)
    if getattr(error, "extendedresult", None) in writing:
        return DiskFull(f"no space left for the database {path}: {error}")
    return Unavailable(f"the database {path} cannot be read or written: {error}")

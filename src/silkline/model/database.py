"""The interface of a database, for the functions of `store/`. Other layers only pass a `Database` to them.

A `Database` may be used from any thread. Reads and single statements stand alone; `transaction` groups several. Time
comes from `now`, which on PostgreSQL follows the server's clock, so that machines whose clocks differ agree on times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Protocol

Row = Mapping[str, Any]


class Transaction(Protocol):
    """Statements of one transaction."""

    def rows(self, name: str, **parameters: Any) -> list[dict[str, Any]]:
        """Run a statement. Returns its rows, each as a dictionary."""
        ...

    def many(self, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], **shared: Any) -> int:
        """Run a statement for many rows, each a sequence of `columns`. Returns how many rows of the table changed."""
        ...

    def columns(self, name: str, columns: Mapping[str, Sequence[Any]], **shared: Any) -> int:
        """The same for many rows that are given by columns."""
        ...

    def script(self, sql: str) -> None:
        """Run the statements of a migration."""
        ...


class WakeupListener(Protocol):
    """Becomes readable when there may be work. A lost wakeup costs one poll interval, but never a job."""

    def fileno(self) -> int: ...

    def drain(self) -> list[str]:
        """Read all notifications. Returns for each the id of the shard that links may wait for. Empty: any work."""
        ...

    def close(self) -> None: ...


class Database(Protocol):
    dialect: str

    def now(self) -> datetime: ...

    def rows(self, name: str, *, durable: bool = False, **parameters: Any) -> list[dict[str, Any]]:
        """Run one statement in its own transaction."""
        ...

    def many(
        self, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, durable: bool = False, **shared: Any
    ) -> int:
        """`Transaction.many` in its own transaction."""
        ...

    def transaction(self, *, durable: bool = False) -> AbstractContextManager[Transaction]:
        """A transaction that may write. `durable`: after the commit it survives a power failure."""
        ...

    def exclusive(self) -> AbstractContextManager[Transaction]:
        """A durable transaction for migrations. Only one of them runs at a time."""
        ...

    def wake_supervisors(self) -> None:
        """Tell supervisors that there may be work."""
        ...

    def listen(self, name: str) -> WakeupListener:
        """A listener for this caller, with this name."""
        ...

    def close(self) -> None: ...

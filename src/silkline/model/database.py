"""The interface of a database, as the store and the code of a kind use it. store/database.py opens one.

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
    """Statements that happen together or not at all."""

    def rows(self, name: str, **parameters: Any) -> list[dict[str, Any]]:
        """Run a statement; the rows it gives, each as a dictionary."""
        ...

    def many(self, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], **shared: Any) -> int:
        """Run a statement for many rows, each a sequence of `columns`; how many rows of the table changed."""
        ...

    def script(self, sql: str) -> None:
        """Run the statements of a migration."""
        ...


class Bell(Protocol):
    """Rings when there may be work. Losing a ring costs one poll interval, never a job."""

    def fileno(self) -> int: ...
    def drain(self) -> None: ...
    def close(self) -> None: ...


class Database(Protocol):
    dialect: str

    def now(self) -> datetime: ...

    def rows(self, name: str, *, durable: bool = False, **parameters: Any) -> list[dict[str, Any]]:
        """One statement in a transaction of its own."""
        ...

    def many(
        self, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, durable: bool = False, **shared: Any
    ) -> int:
        """`Transaction.many` in a transaction of its own."""
        ...

    def transaction(self, *, durable: bool = False) -> AbstractContextManager[Transaction]:
        """A transaction that may write. `durable`: survives a loss of power once it has returned."""
        ...

    def exclusive(self) -> AbstractContextManager[Transaction]:
        """A durable transaction that no other `exclusive` one runs beside: for migrations."""
        ...

    def ring(self) -> None:
        """Tell supervisors that there may be work."""
        ...

    def listen(self, name: str) -> Bell:
        """A bell of one's own, called `name`."""
        ...

    def close(self) -> None: ...

"""The time of hosts, booked by jobs: all jobs of a fleet share the clock of a host.

A booking says from when to when one process of a job may send requests to a host. Bookings of a host form a queue: a
new one starts when the last one has ended and the delay is over. So no process waits for a message, and the booking
of a dead process ends without help. All times here are seconds after the call, by the clock of the database.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from silkline.model.database import Database

FORGET_AFTER = 60.0
"""Seconds after its end for which a booking is remembered."""


class Asked(NamedTuple):
    """One process (`owner`, a random number) wants to use a host for `length` seconds."""

    host: str
    owner: int
    delay: float
    length: float


class Booked(NamedTuple):
    """Requests may be sent from `starts` to `ends`. `behind`: the job whose time comes before, if there is one.

    `idle`: for how many seconds the host was not booked.
    """

    host: str
    starts: float
    ends: float
    behind: str | None
    idle: float


def book(
    database: Database, job_id: str, asked: Sequence[Asked], addresses: Mapping[str, float]
) -> tuple[list[Booked], dict[str, float]]:
    """Book the time of hosts, each at most once, and seconds of the time of addresses, in one transaction.

    The second value says for how many seconds each address is booked now.
    """
    hosts = json.dumps(sorted(asked))
    if not addresses:
        return _booked(database.rows("bookings.book", job_id=job_id, asked=hosts)), {}
    with database.transaction() as transaction:
        shared = transaction.rows("bookings.share", asked=json.dumps(sorted(addresses.items())))
        rows = transaction.rows("bookings.book", job_id=job_id, asked=hosts)
    return _booked(rows), {row["address"]: row["ends"] for row in shared}


def release(database: Database, held: Sequence[tuple[str, int]]) -> None:
    """Give back the rest of the bookings of these hosts by these owners. Bookings of others behind them stay."""
    if held:
        database.rows("bookings.release", asked=json.dumps(sorted(held)))


def sweep(database: Database) -> None:
    """Remove the bookings that ended some time ago."""
    database.rows("bookings.sweep", seconds=FORGET_AFTER)
    database.rows("bookings.sweep_addresses", seconds=FORGET_AFTER)


def _booked(rows: Sequence[Mapping[str, object]]) -> list[Booked]:
    return [Booked(**row) for row in rows]  # type: ignore[arg-type]

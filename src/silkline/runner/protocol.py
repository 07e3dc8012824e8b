"""What a supervisor and its runners say to each other: JSON messages over a socket that keeps their boundaries.

Supervisor to runner: `Start`, then `Order`. Runner to supervisor: `Event`. A runner never blocks on this socket.
"""

from __future__ import annotations

import socket

import msgspec

from silkline.model.job import End
from silkline.model.kind import KindSettings

MAX_MESSAGE = 128 * 1024
MAX_TEXT = 16 * 1024

EXIT_DONE, EXIT_TEMPORARY, EXIT_PERMANENT = 0, 75, 65
EXIT_LEASE_LOST = 76
EXIT_UNTOLD = 77  # it ended as it was ordered to, and could not say so
MARK_WORKER = "SILKLINE_WORKER_MARK"  # in the environment of every process below a supervisor: its worker id
MARK_JOB = "SILKLINE_JOB_MARK"  # in the environment of every program a runner starts: job id and lease


class Launch(msgspec.Struct, kw_only=True):
    """To the fork server, with three descriptors: stdout, stderr and the socket of the attempt."""

    job_id: str
    run_lease: int
    supervisor_pid: int
    nice: int
    open_files: int


NO_PROCESS = -1  # instead of a pid: none could be made


class Launched(msgspec.Struct):
    """From the fork server."""

    pid: int


class StartAttempt(msgspec.Struct, kw_only=True):
    """The first message to a runner; it does nothing before it."""

    job_id: str
    run_lease: int
    worker_id: str
    database: str
    environment: dict[str, str]
    """Variables that only the runner itself may have: what its children see is chosen anew."""
    test_kinds: bool
    settings: KindSettings
    marks: str = ""
    """The path of the file in which the attempt marks what it reads."""


class Order(msgspec.Struct):
    """How the attempt should end now."""

    end: End


class RunnerEvent(msgspec.Struct, omit_defaults=True):
    """A sign of life, with whatever there is to say: a log line, or how the attempt ended."""

    level: str = ""
    message: str = ""
    end: End | None = None
    reason: str = ""
    wait: float = 0.0


def pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(channel: socket.socket, message: msgspec.Struct) -> None:
    channel.send(msgspec.json.encode(message))


def receive(channel: socket.socket, kind: type[msgspec.Struct]) -> msgspec.Struct | None:
    """The next message, or None when the other side is gone."""
    data = channel.recv(MAX_MESSAGE)
    return msgspec.json.decode(data, type=kind) if data else None

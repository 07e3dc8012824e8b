"""The messages between a supervisor and its runners: JSON over a socket that keeps message boundaries.

Supervisor to runner: `StartAttempt`, then `Order` and `LinksArrived`. Runner to supervisor: `RunnerEvent`. A runner
never blocks on this socket.
"""

from __future__ import annotations

import socket
from typing import Any

import msgspec

from silkline.model.job import End
from silkline.model.kind import KindSettings

MAX_MESSAGE = 128 * 1024
MAX_TEXT = 16 * 1024

EXIT_DONE, EXIT_TEMPORARY, EXIT_PERMANENT = 0, 75, 65
EXIT_LEASE_LOST = 76
EXIT_UNTOLD = 77  # the runner ended as ordered but could not report it
# Tags: variables in the environment of processes. Their names stay, because a supervisor also kills the processes that
# an older version left.
SUPERVISOR_TAG = "SILKLINE_WORKER_MARK"  # of every process below a supervisor: its worker id
JOB_TAG = "SILKLINE_JOB_MARK"  # of every program that a runner starts: job id and lease


class Launch(msgspec.Struct, kw_only=True):
    """A request to the fork server. `DESCRIPTORS` descriptors come with it: stdout, stderr, the socket of the attempt,
    and the file in which the attempt marks what it reads (reading_marks.py). That file may be only in memory, and a
    runner may not look into its supervisor, so a path would not do."""

    job_id: str
    run_lease: int
    supervisor_pid: int
    nice: int
    open_files: int


DESCRIPTORS = 4
NO_PROCESS = -1  # instead of a pid: the fork failed


class Launched(msgspec.Struct):
    """The answer of the fork server."""

    pid: int


class StartAttempt(msgspec.Struct, kw_only=True):
    """The first message to a runner. The runner does nothing before it arrives."""

    job_id: str
    run_lease: int
    worker_id: str
    database: str
    environment: dict[str, str]
    """Environment variables for the runner only. Its children get a smaller environment."""
    test_kinds: bool
    settings: KindSettings


class Order(msgspec.Struct, tag=True):
    """Tells the runner how the attempt must end now."""

    end: End


class LinksArrived(msgspec.Struct, tag=True):
    """Tells the runner of a shard that links of other shards may wait in the database."""


class RunnerEvent(msgspec.Struct, omit_defaults=True):
    """A sign of life. It may carry a log line, or how the attempt ended."""

    level: str = ""
    message: str = ""
    end: End | None = None
    reason: str = ""
    wait: float = 0.0
    event: str = ""
    data: dict[str, Any] | None = None
    """With `event`: the numbers in the line, for programs that read the log."""


def pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(channel: socket.socket, message: msgspec.Struct) -> None:
    channel.send(msgspec.json.encode(message))


def receive(channel: socket.socket, kind: Any) -> msgspec.Struct | None:
    """The next message, or None when the other side closed the socket."""
    data = channel.recv(MAX_MESSAGE)
    message: msgspec.Struct | None = msgspec.json.decode(data, type=kind) if data else None
    return message

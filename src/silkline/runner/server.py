"""The fork server: a process that has loaded all imports and forks a runner in milliseconds.

It has no threads, opens no database and runs no job, so a fork of it is as clean as a new interpreter. It forks twice
for each runner: so the runner becomes a child of the supervisor, which waits for it, and the runner dies with the
supervisor. When the supervisor dies, even by `kill -9`, the fork server kills the programs that its runners started,
and then ends.
"""

from __future__ import annotations

import array
import contextlib
import gc
import importlib
import os
import signal
import socket
import sys
from pathlib import Path
from typing import NoReturn

import msgspec

from silkline.confine.roles import confine_fork_server, confine_runner
from silkline.metrics.instruments import tell_cpu
from silkline.metrics.process import attach
from silkline.model.spec import DiagnosticSpec, MapSpec, PageSpec, SiteSpec
from silkline.reading_marks import path_of
from silkline.runner import protocol
from silkline.runner.process import Orphaned, die_with_parent, name_process, settle

# The modules that most runners need. A module that is not listed here only makes a start slower.
PRELOAD = (
    "silkline.runner.attempt",
    "silkline.store.sqlite",
    "silkline.store.migrate",
    "silkline.store.urls",
    "silkline.kinds.registry",
)
PRELOAD_IF_THERE = ("silkline.kinds.page", "silkline.kinds.site", "silkline.kinds.diagnostic")


def serve(channel: socket.socket, *, postgres: bool) -> None:
    for name in (*PRELOAD, *(("silkline.store.postgres",) if postgres else ())):
        importlib.import_module(name)
    for name in PRELOAD_IF_THERE:
        # A broken module makes only the jobs of its own kind fail, with the reason.
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    for spec in (PageSpec, SiteSpec, MapSpec, DiagnosticSpec):  # or each runner would build the validator of its own
        spec.model_rebuild()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor handles Ctrl-C
    confine_fork_server()
    gc.collect()
    gc.freeze()
    protocol.send(channel, protocol.Launched(0))
    while True:
        data, descriptors = _receive(channel)
        if not data:
            break
        launch = msgspec.json.decode(data, type=protocol.Launch)
        try:
            pid = _fork_runner(channel, launch, descriptors)
        except (OSError, ValueError):  # the machine has no free process or descriptor now
            pid = protocol.NO_PROCESS
        protocol.send(channel, protocol.Launched(pid))
        tell_cpu()
        for descriptor in descriptors:
            os.close(descriptor)


def _receive(channel: socket.socket) -> tuple[bytes, list[int]]:
    try:
        data, ancillary, _, _ = channel.recvmsg(protocol.MAX_MESSAGE, socket.CMSG_SPACE(protocol.DESCRIPTORS * 4))
    except ConnectionError:
        return b"", []
    descriptors = array.array("i")
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(payload)
    return data, list(descriptors)


def _fork_runner(channel: socket.socket, launch: protocol.Launch, descriptors: list[int]) -> int:
    """Fork twice. Returns the pid of the grandchild, which runs the attempt."""
    reading, writing = os.pipe()
    try:
        middle = os.fork()
        if middle == 0:
            _fork_from_middle(channel, launch, descriptors, reading, writing)
        os.waitpid(middle, 0)
        os.set_blocking(reading, False)  # the middle process has ended: its answer is there, or will never come
        return int(os.read(reading, 32))
    finally:
        os.close(writing)
        os.close(reading)


def _fork_from_middle(
    channel: socket.socket, launch: protocol.Launch, descriptors: list[int], reading: int, writing: int
) -> NoReturn:
    """Fork the runner from the middle process. This must never return into the loop of the fork server."""
    try:
        runner = os.fork()
        if runner == 0:
            os.close(reading)
            os.close(writing)
            channel.close()
            run_runner(launch, descriptors)
        os.write(writing, str(runner).encode())
    finally:
        os._exit(0)


def run_runner(launch: protocol.Launch, descriptors: list[int]) -> None:
    """Run one attempt in this process, from the setup to the exit."""
    code = 1
    try:
        stdout, stderr, channel, marks = descriptors
        os.set_inheritable(marks, False)
        die_with_parent(launch.supervisor_pid)
        settle(stdout, stderr, nice=launch.nice, open_files=launch.open_files)
        name_process(launch.job_id, launch.run_lease)
        confine_runner()
        os.environ[protocol.JOB_TAG] = f"{launch.job_id}:{launch.run_lease}"
        from silkline.runner.attempt import run_attempt

        code = run_attempt(socket.socket(fileno=channel), path_of(marks))
    except Orphaned:
        code = protocol.EXIT_LEASE_LOST
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # the code of the job may have closed or replaced it
                stream.flush()
        os._exit(code)


def main() -> None:
    """`python -m silkline.runner.server DESCRIPTOR DATABASE-KIND [DATA]`, started by service/launcher.py."""
    from silkline.runner.leftovers import kill_tagged

    for data in sys.argv[3:]:
        attach(Path(data), "fork_server")
    channel = socket.socket(fileno=int(sys.argv[1]))
    try:
        serve(channel, postgres=sys.argv[2] == "postgres")
    finally:  # the supervisor is dead, or this process failed: leave no runner
        kill_tagged(os.environ[protocol.SUPERVISOR_TAG], spare=os.getpid())


if __name__ == "__main__":
    main()

"""Runs one server for the tests and makes sure that it ends with them.

    python guard.py PARENT_PID DIRECTORY USER COMMAND...

A test session that is killed with -9 cannot clean up, so this small process does: when PARENT_PID is gone it kills the
server and removes DIRECTORY. SIGTERM, SIGINT and SIGQUIT are passed on to the server, whose exit status becomes ours.
USER is the account that the server runs under, or empty for our own. Standard library only.
"""

import os
import select
import shutil
import signal
import subprocess
import sys

SECONDS_TO_END = 30


def main(parent: str, directory: str, user: str, *command: str) -> int:
    try:
        watched = os.pidfd_open(int(parent))
    except ProcessLookupError:
        shutil.rmtree(directory, ignore_errors=True)
        return 1
    server = _start(command, directory, user)
    ended = os.pidfd_open(server.pid)
    ready, _, _ = select.select([watched, ended], [], [])
    if ended not in ready:
        _end(server)
        shutil.rmtree(directory, ignore_errors=True)
    return server.wait()


def _start(command: tuple[str, ...], directory: str, user: str) -> subprocess.Popen[bytes]:
    servers: list[subprocess.Popen[bytes]] = []

    def pass_on(signum: int, frame: object) -> None:
        for server in servers:
            server.send_signal(signum)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, pass_on)
    servers.append(
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            cwd=directory,
            user=user or None,
            extra_groups=[] if user else None,
            start_new_session=True,
        )
    )
    return servers[0]


def _end(server: subprocess.Popen[bytes]) -> None:
    """SIGQUIT first: PostgreSQL then ends its own children, which are no part of its process group."""
    server.send_signal(signal.SIGQUIT)
    try:
        server.wait(SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        server.kill()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

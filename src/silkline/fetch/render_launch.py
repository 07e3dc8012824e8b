"""Executes the browser: `python -I -S render_launch.py PARENT SOCKET LOCK PROGRAM ARGUMENT…`, for render_browser.py.

Asks the kernel to kill this process when its parent dies, duplicates the socket to the descriptors where the browser
expects its debugging pipe, and executes the program. It imports none of our packages, so that it starts quickly.
"""

import ctypes
import fcntl
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
READING, WRITING = 3, 4  # the descriptors that `--remote-debugging-pipe` uses
OUT_OF_THE_WAY = 10


def main(parent: int, line: int, lock: int, program: list[str]) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    spare = fcntl.fcntl(line, fcntl.F_DUPFD_CLOEXEC, OUT_OF_THE_WAY)
    fcntl.fcntl(lock, fcntl.F_DUPFD, OUT_OF_THE_WAY)  # the browser holds the lock of its folder too
    for wanted in (READING, WRITING):
        os.dup2(spare, wanted)
    os.execv(program[0], program)  # noqa: S606


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])

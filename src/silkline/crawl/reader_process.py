"""The process that reads one risky input at a time, and the small server that starts such processes.

A reader has a memory limit and does nothing but read: its owner sends a task, waits for the answer, and kills it at the
time limit. `python -m silkline.crawl.reader_process CONTROL MARKS SLOT MEMORY PARENT` is the server: it has the parser
modules loaded, never reads an input itself, and forks a reader in milliseconds when the owner requests one.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import signal
import socket
import sys
from pathlib import Path
from typing import Any, Final

import msgspec

from silkline.confine.roles import confine_reader
from silkline.crawl.confinement import load_everything, load_usual
from silkline.crawl.plan import Plan
from silkline.crawl.process_end import die_with
from silkline.crawl.reading import Body, PageReader, Reading, timed_reading
from silkline.crawl.reading_memory import MemorySize, limit_memory
from silkline.fetch import robots
from silkline.fetch.robots import Robots
from silkline.parse.charsets import is_utf8
from silkline.reading_marks import PAGE, ROBOTS, SITEMAP, MarkSlot, ReadingMarks

EXIT_MEMORY: Final = 71
"""The exit code of a reader that reached its memory limit."""
HEAD: Final = 5
"""Four bytes of length, and one byte that says whether the reader stays or exits."""
STAYS, LEAVES = 0, 1
_CONTROL_BYTES: Final = 1 << 20


class ReadPage(msgspec.Struct, array_like=True, tag=True):
    """The answer is a `Reading`."""

    body: Body


class ReadRobots(msgspec.Struct, array_like=True, tag=True):
    """The answer is a `Robots`."""

    url: str
    body: bytes
    now: float
    product: str


ReadingTask = ReadPage | ReadRobots
ANSWERS: Final[dict[type[Any], Any]] = {
    ReadPage: Reading,
    ReadRobots: Robots,
}


class TaskReader:
    """Carries out a task."""

    def __init__(self, plan: Plan, slot: MarkSlot) -> None:
        self._pages = PageReader(plan)
        self._slot = slot

    def read(self, task: ReadingTask) -> Any:
        match task:
            case ReadPage(body):
                self._slot.begin(SITEMAP if body.sitemap else PAGE, body.url)
                answer: Any = timed_reading(self._pages, body)
            case ReadRobots(url, body, now, product):
                self._slot.begin(ROBOTS, url)
                answer = robots.read(body, now, product)
        self._slot.end()
        return answer


def needs_more(task: ReadingTask) -> bool:
    """Whether the task may need modules that are not loaded yet: those for PDF, and for unusual codecs."""
    if isinstance(task, ReadRobots):
        return False
    page = task.body
    head, charset = page.body[:4096], page.charset
    if not charset and not is_utf8(page.body):  # its charset will be guessed
        return True
    named = _NAMED_CHARSET.findall(head)
    return head.startswith(b"%PDF-") or not {charset.encode("ascii", "replace"), *named} <= _LOADED_CHARSETS


_NAMED_CHARSET: Final = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?([^\s;"'>]+)""")
_LOADED_CHARSETS: Final = frozenset({b"", b"utf-8", b"UTF-8", b"utf8", b"us-ascii", b"ascii", b"iso-8859-1"})


def serve(end: socket.socket, plan: Plan, slot: MarkSlot, memory: int, *, loaded: bool) -> None:
    """The main loop of a reader: receives tasks and sends answers until the owner closes the socket.

    If not everything is `loaded`, the first task decides whether that is necessary: it takes 20 to 100 ms.
    """
    code = 1
    try:
        decode, encode = msgspec.msgpack.Decoder(ReadingTask).decode, msgspec.msgpack.encode
        frame = _receive(end)
        if frame and not loaded:
            load_everything(plan) if needs_more(decode(frame)) else load_usual(plan)
        _give_way()
        memory_size = MemorySize()
        now = memory_size.now()
        limit_memory(memory, now)
        most = now + (memory // 2 or 1 << 62)  # above it, a reader exits after its task
        confine_reader()
        reader = TaskReader(plan, slot)
        while frame:
            answer = encode(reader.read(decode(frame)))
            leaves = memory_size.now() > most
            end.sendall(len(answer).to_bytes(HEAD - 1, "big") + bytes([LEAVES if leaves else STAYS]) + answer)
            if leaves:
                break
            frame = _receive(end)
        code = 0
    except MemoryError:
        code = EXIT_MEMORY
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)


def _receive(end: socket.socket) -> bytes:
    head = end.recv(HEAD, socket.MSG_WAITALL)
    if len(head) < HEAD:
        return b""
    return end.recv(int.from_bytes(head[: HEAD - 1], "big"), socket.MSG_WAITALL)


def _give_way() -> None:
    """If the kernel must kill a process because memory is short, it should choose this one."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("800")


def fork_reader(end: socket.socket, plan: Plan, marks: ReadingMarks, slot: int, memory: int, *, loaded: bool) -> int:
    """Fork a reader as a copy of this process, at the other end of a socket. Returns its pid.

    It has the marks mapped, and no descriptor of their file: it could cut the file, which would end its owner.
    """
    pid = _fork_with(end.fileno())
    if pid:
        return pid
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        end.setblocking(True)
    except BaseException:
        os._exit(1)
    serve(end, plan, marks.slot(slot), memory, loaded=loaded)
    os._exit(1)


def _fork_with(*kept: int) -> int:
    """Fork a copy of this process that dies with it and has only these descriptors. Returns the pid; 0 in the copy."""
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            die_with(parent)
            _forget_descriptors(*kept)
        except BaseException:
            os._exit(1)
    return pid


def _forget_descriptors(*kept: int) -> None:
    """Close the descriptors of the parent: connections, the database, locks. There may be no limit on their number."""
    for descriptor in [int(name) for name in os.listdir("/proc/self/fd")]:  # noqa: PTH208
        if descriptor > 2 and descriptor not in kept:
            with contextlib.suppress(OSError):  # the descriptor of the listing itself is already closed
                os.close(descriptor)


def fork_server(control: socket.socket, marks: ReadingMarks, slot: int, memory: int) -> int:
    """Fork the server as a copy of this process, which must not have any secret yet. Returns its pid."""
    pid = _fork_with(control.fileno())
    if pid:
        return pid
    try:
        run_server(control, marks, slot, memory)
    finally:
        os._exit(0)


def run_server(control: socket.socket, marks: ReadingMarks, slot: int, memory: int) -> None:
    """Run one reader at a time. Sends the pid of each and, when it has exited, its wait status."""
    control.setblocking(True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    plan = msgspec.msgpack.decode(control.recv(_CONTROL_BYTES), type=Plan)
    loaded = False
    while True:
        try:
            data, descriptors, _, _ = socket.recv_fds(control, 16, 1)
        except ConnectionError:
            return
        if not data or not descriptors:
            return
        if not loaded:
            loaded = True
            load_everything(plan)
            gc.collect()
            gc.freeze()
        end = socket.socket(fileno=descriptors[0])
        pid = fork_reader(end, plan, marks, slot, memory, loaded=True)
        end.close()
        control.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        control.send(str(status).encode())


def main(control: str, marks: str, slot: str, memory: str, parent: str) -> None:
    die_with(int(parent))
    run_server(socket.socket(fileno=int(control)), ReadingMarks(int(marks)), int(slot), int(memory))


if __name__ == "__main__":
    main(*sys.argv[1:])

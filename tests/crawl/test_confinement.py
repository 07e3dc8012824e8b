"""An attacker who runs code in a parser or a fetcher meets walls; what these processes are for still works."""

from __future__ import annotations

import asyncio
import io
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
import uvloop

from silkline.confine import landlock
from silkline.crawl.messages import StartFetcher, encoder
from silkline.crawl.parser import ParserPool
from silkline.crawl.plan import PACES, Plan
from silkline.crawl.reading import Body, Reading
from silkline.metrics.meter import claim
from silkline.reading_marks import ReadingMarks
from tests.crawl.harness import ENVIRONMENT, HERE

PLAN = Plan(fetchers=1, parsers=1, concurrency=1, pace=PACES["max"], user_agent="t", scope="host", content="markdown")


def send(end: socket.socket, message: object) -> None:
    frame = encoder().encode(message)
    end.sendall(len(frame).to_bytes(4, "big") + frame)


def receive(end: socket.socket) -> bytes:
    wanted, data = 4, b""
    while len(data) < wanted:
        more = end.recv(1 << 20)
        assert more, "the process ended"
        data += more
        if len(data) >= 4:
            wanted = 4 + int.from_bytes(data[:4], "big")
    return data[4:wanted]


class CapturedProcess:
    """A process of a crawl, started as the leader starts it, with an attacker inside."""

    def __init__(self, role: str, plan: Plan, until_the_end: ExitStack, **environment: str) -> None:
        self._until_the_end = until_the_end
        self._wire, theirs = socket.socketpair()
        self._door, their_door = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._marks = ReadingMarks.open("")
        until_the_end.callback(self._marks.close)
        meter = claim(Path(until_the_end.enter_context(TemporaryDirectory())), role)
        until_the_end.callback(meter.close)
        assert meter.descriptor is not None
        fds = (theirs.fileno(), their_door.fileno(), self._marks.descriptor)
        numbers = (*fds, os.getpid(), meter.descriptor)
        fds = (*fds, meter.descriptor)
        program = [sys.executable, "-P", str(HERE / "captured_parser.py"), role, *map(str, numbers), meter.name]
        self.process = subprocess.Popen(
            program,
            pass_fds=fds,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            env={**ENVIRONMENT, **environment},
        )
        for end in (self._wire, self._door):
            until_the_end.callback(end.close)
        until_the_end.callback(self.process.communicate)
        until_the_end.callback(self.process.kill)
        theirs.close()
        their_door.close()
        send(self._wire, StartFetcher(0, plan, 2))

    def fetcher_end(self) -> socket.socket:
        """A socket to the parser, handed over as the leader does it: after the parser was confined."""
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._door, [(0).to_bytes(4, "big")], [theirs.fileno()])
        ours.settimeout(60)
        self._until_the_end.callback(ours.close)
        return ours


@pytest.fixture(scope="module")
def until_the_end() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="module")
def parser_end(until_the_end: ExitStack) -> socket.socket:
    return CapturedProcess("parser", PLAN, until_the_end).fetcher_end()


def read(end: socket.socket, body: bytes, kind: str, charset: str = "") -> Reading:
    send(end, Body(1, "http://a.test/", body, kind, charset, ""))
    return msgspec.msgpack.decode(receive(end), type=Reading)


def attack_parser(end: socket.socket, code: str) -> str:
    reading = read(end, code.encode(), "text/x-attack")
    assert reading.reason == "attack"
    return reading.detail or ""


ATTACKS = {
    "read a file": "open('/etc/passwd').read()",
    "list a folder": "import os; os.listdir('/')",
    "look at a path": "import os; os.stat('/etc/passwd')",
    "make a file": "open('/tmp/silkline-attack', 'w')",
    "remove a file": "import os; os.unlink('/tmp/silkline-attack')",
    "read the memory of its parent": "import os; os.open(f'/proc/{os.getppid()}/mem', os.O_RDONLY)",
    "read its own environment": "open('/proc/self/environ')",
    "open a TCP socket": "import socket; socket.socket()",
    "open a Unix socket": "import socket; socket.socket(socket.AF_UNIX)",
    "open a raw socket": "import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "run a program": "import os; os.execv('/bin/true', ['true'])",
    "start a program": "import os; os.posix_spawn('/bin/true', ['true'], {})",
    "fork": "import os; os.fork()",
    "kill its parent": "import os; os.kill(os.getppid(), 15)",
    "kill everybody": "import os; os.kill(-1, 0)",
    "limit its parent": "import os, resource; resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE)",
    "cut its meter": "import os, sys; os.ftruncate(int(sys.argv[6]), 0)",
    "lengthen its meter": "import os, sys; os.posix_fallocate(int(sys.argv[6]), 0, 1 << 19)",
    "give itself more open files": "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 21, 1 << 21))",
}


@pytest.mark.parametrize("code", ATTACKS.values(), ids=ATTACKS)
def test_a_parser_that_is_taken_over_can_do_nothing_outside(parser_end: socket.socket, code: str) -> None:
    said = attack_parser(parser_end, code)
    assert said.startswith(("PermissionError", "OSError: [Errno 1]", "ValueError: not allowed")), said


# The file of the marks is known by its size. The leader has it mapped, and would end if it were shorter.
FIND_MARKS = """
import os
found = []
for number in range(256):
    try:
        found += [number] if os.fstat(number).st_size == 256 * 1024 else []
    except OSError:
        pass
print(found)
"""
# Python ignores SIGXFSZ, so the process goes on.
WRITE_A_LOT = "import os, sys; os.pwrite(int(sys.argv[6]), b'x', 1 << 30)"


def test_a_parser_can_neither_cut_the_marks_nor_fill_the_disk(parser_end: socket.socket) -> None:
    assert attack_parser(parser_end, FIND_MARKS) == "[]"
    assert attack_parser(parser_end, WRITE_A_LOT) == "OSError: [Errno 27] File too large"


RAW_CALLS = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
for name, arguments in {calls}:
    result = getattr(libc, name)(*arguments)
    print(name, result, errno.errorcode.get(ctypes.get_errno(), 0))
"""


def test_a_parser_cannot_trace_or_change_its_own_walls(parser_end: socket.socket) -> None:
    """The calls that Python has no function for: ptrace of the parent, another death signal, namespaces, new code."""
    calls = [
        ("ptrace", (16, os.getpid(), 0, 0)),
        ("prctl", (1, 0, 0, 0, 0)),
        ("unshare", (0x10000000,)),
        ("chroot", (b"/",)),
        ("mmap", (0, 4096, 5, 0x22, -1, 0)),
    ]
    said = attack_parser(parser_end, RAW_CALLS.format(calls=calls))
    assert said.splitlines() == [f"{name} -1 EPERM" for name, _ in calls]


def test_landlock_alone_holds_where_this_kernel_has_it() -> None:
    """Each wall stands by itself: here without the filter of system calls."""
    assert landlock.version() > 0
    code = "from silkline.confine import landlock, roles; roles._no_new_privileges(); landlock.restrict(network=False)"
    tries = (
        "open('/etc/passwd')",
        "import socket; socket.create_connection(('127.0.0.1', 9))",
        "import os; os.listdir('/')",
    )
    for attempt in tries:
        done = subprocess.run(
            [sys.executable, "-c", f"{code}\n{attempt}"], capture_output=True, text=True, env=ENVIRONMENT
        )
        assert "PermissionError" in done.stderr, done.stderr


def test_a_confined_parser_reads_pages_of_every_kind(parser_end: socket.socket) -> None:
    from pypdf import PdfWriter

    writer, pdf = PdfWriter(), io.BytesIO()
    writer.add_blank_page(100, 100)
    writer.add_metadata({"/Title": "Sheets"})
    writer.encrypt("", algorithm="AES-256")
    writer.write(pdf)
    for kind, charset, body, wanted in (
        ("text/html", "shift_jis", "<title>本</title><p>日本語".encode("shift_jis"), "本"),
        ("text/plain", "gb18030", "中文".encode("gb18030"), "中文"),
        ("text/plain", "koi8-r", "Москва".encode("koi8-r"), "Москва"),
        ("text/plain", "no-such-charset", b"plain", "plain"),
        ("application/pdf", "", pdf.getvalue(), "Sheets"),
    ):
        reading = read(parser_end, body, kind, charset)
        assert reading.reason is None, reading
        assert wanted in reading.data


FETCHER_ATTACKS = {
    "read a home": ("open({secret!r}).read()", "PermissionError"),
    "write outside its archive": ("open({secret!r} + '.new', 'w')", "PermissionError"),
    "write to /tmp": ("open('/tmp/silkline-attack', 'w')", "PermissionError"),
    "run a program": ("import os; os.execv('/bin/true', ['true'])", "PermissionError"),
    "fork": ("import os; os.fork()", "PermissionError"),
    "read the memory of its parent": (
        "import os; os.open(f'/proc/{{os.getppid()}}/mem', os.O_RDONLY)",
        "PermissionError",
    ),
    "read the environment of its parent": (
        "import os; open(f'/proc/{{os.getppid()}}/environ').read()",
        "PermissionError",
    ),
    "find the marks": (FIND_MARKS, "[]"),
    "connect (its trade)": (
        "import socket; socket.create_connection(('127.0.0.1', {port})); print('through')",
        "through",
    ),
    "resolve (its trade)": ("import socket; socket.getaddrinfo('localhost', 80); print('through')", "through"),
    "write its archive": ("import glob; open({archive!r} + '/x', 'w').write('1'); print('through')", "through"),
    "start a thread": (
        "import threading; t = threading.Thread(target=lambda: print('through')); t.start(); t.join()",
        "through",
    ),
}


@pytest.fixture(scope="module")
def fetcher_said(until_the_end: ExitStack, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each attack came to, in one fetcher."""
    home = tmp_path_factory.mktemp("home")
    secret = home / "silkline.db"
    secret.write_text("cookies")
    plan = msgspec.structs.replace(PLAN, parsers=0, archive=(str(home), "job", 1))
    listener = until_the_end.enter_context(socket.create_server(("127.0.0.1", 0)))
    facts = {"secret": str(secret), "port": listener.getsockname()[1], "archive": str(home / "warc" / "job")}
    codes = [code.format(**facts) for code, _ in FETCHER_ATTACKS.values()]
    captured = CapturedProcess("fetcher", plan, until_the_end, CAPTURED_CODE=json.dumps(codes))
    assert captured.process.stdout is not None
    return dict(zip(FETCHER_ATTACKS, json.loads(captured.process.stdout.readline()), strict=True))


@pytest.mark.parametrize("attack", FETCHER_ATTACKS)
def test_a_fetcher_that_is_taken_over_has_the_web_and_its_archive(fetcher_said: dict[str, str], attack: str) -> None:
    assert fetcher_said[attack].startswith(FETCHER_ATTACKS[attack][1]), fetcher_said[attack]


def test_a_fetcher_without_an_archive_cannot_fill_the_disk(until_the_end: ExitStack) -> None:
    plan = msgspec.structs.replace(PLAN, parsers=0)
    captured = CapturedProcess("fetcher", plan, until_the_end, CAPTURED_CODE=json.dumps([WRITE_A_LOT]))
    assert captured.process.stdout is not None
    assert json.loads(captured.process.stdout.readline()) == ["OSError: [Errno 27] File too large"]


def framed(frame: bytes) -> bytes:
    return len(frame).to_bytes(4, "big") + frame


LIES = {
    "endless frame": b"\xff\xff\xff\xff" + b"x" * 100,
    "no msgpack": framed(b"\xc1\xc1\xc1"),
    "answer to nothing": framed(encoder().encode(Reading(77))),
    "wrong type": framed(encoder().encode(["not", "a", "reading"])),
    "no text": framed(b"\x92\x01\xa1\xff"),
    # One element more than a reading has. The decoder only skips it.
    "lists in lists": framed(b"\x9d" + encoder().encode(Reading(1))[1:] + b"\x91" * 100_000 + b"\xc0"),
    "no JSON": framed(encoder().encode(Reading(1, data='{"title": "x", "broken'))),
    "a time that is text": framed(encoder().encode([*msgspec.structs.astuple(Reading(1))[:-1], "long"])),
    "a time that is no number": framed(encoder().encode(Reading(1, seconds=float("nan")))),
    "no object": framed(encoder().encode(Reading(1, data="[1,2]"))),
    "a good answer after a lie": framed(encoder().encode(Reading(77))) + framed(encoder().encode(Reading(1))),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_parser_that_lies_loses_its_pages_to_another_and_harms_no_fetcher(lie: bytes) -> None:
    async def crawl() -> Reading:
        failures: list[dict[str, object]] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: failures.append(context))
        marks = ReadingMarks.open("")
        pool, answer, lost = ParserPool(marks), loop.create_future(), list[int]()
        pool.on_lost = lost.append
        liar, honest = socket.socketpair(), socket.socketpair()
        pool.adopt(0, liar[0])
        pool.read(Body(1, "http://a.test/", b"<p>x", "text/html", "", ""), answer.set_result)
        liar[1].setblocking(False)
        await loop.sock_recv(liar[1], 1 << 16)
        await loop.sock_sendall(liar[1], lie)
        assert await loop.sock_recv(liar[1], 1 << 16) == b""  # it was cut off
        pool.adopt(1, honest[0])
        honest[1].setblocking(False)
        await loop.sock_recv(honest[1], 1 << 16)
        frame = encoder().encode(Reading(1, data='{"title": "x"}'))
        await loop.sock_sendall(honest[1], len(frame).to_bytes(4, "big") + frame)
        reading: Reading = await answer
        pool.close()
        for end in (*liar, *honest, marks):
            end.close()
        assert failures == []
        assert lost == [0]
        return reading

    assert uvloop.run(crawl()).data == '{"title": "x"}'


ISOLATED = """
import os, socket, sys
import msgspec
from silkline.crawl import reader_process
from silkline.crawl.reading import Body, Reading
from silkline.reading_marks import ReadingMarks
from tests.crawl.captured_parser import run
from tests.crawl.test_confinement import PLAN

def read(self, task):
    return Reading(1, "attack", run(task.body.body.decode()))

marks = ReadingMarks.open("")
ours, theirs = socket.socketpair()
reader_process.TaskReader.read = read
reader_process.fork_reader(theirs, PLAN, marks, 3, 1 << 30, loaded=False)
theirs.close()
for code in sys.argv[1:]:
    body = Body(1, "http://a.test/", code.encode(), "text/html", "", "")
    frame = msgspec.msgpack.encode(reader_process.ReadPage(body))
    ours.sendall(len(frame).to_bytes(4, "big") + bytes(1) + frame)
    head = ours.recv(reader_process.HEAD, socket.MSG_WAITALL)
    answer = ours.recv(int.from_bytes(head[:4], "big"), socket.MSG_WAITALL)
    print(msgspec.msgpack.decode(answer, type=Reading).detail)
"""


def test_a_reader_in_isolation_that_is_taken_over_can_do_nothing_outside() -> None:
    codes = [ATTACKS[name] for name in ("read a file", "open a TCP socket", "run a program", "fork", "kill its parent")]
    codes.append(FIND_MARKS)
    done = subprocess.run(
        [sys.executable, "-c", ISOLATED, *codes], env=ENVIRONMENT, capture_output=True, text=True, timeout=120
    )
    said = done.stdout.splitlines()
    assert len(said) == len(codes), done
    assert said.pop() == "[]", "it has the marks mapped, and no descriptor of their file"
    assert all(line.startswith("PermissionError") for line in said), said

"""Reads what the processes of jobs print and report, in one thread, so that no child ever blocks.

The output goes to the log file of the job (rotated, limited) and, line by line, to a bounded queue. `LogWriter` stores
the lines of the queue in `job_logs`, in batches. A job that prints too much loses its own lines and disturbs no other.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from silkline import log
from silkline.errors import StoreError
from silkline.model.database import Database
from silkline.model.redaction import cleaned, without_secrets
from silkline.runner import protocol
from silkline.runner.log_file import LogFile, printable
from silkline.service.background_thread import BackgroundThread
from silkline.store.logs import NewLine, append

LINE = 4_096
TAIL_LINES = 20
QUEUE = 20_000
BATCH = 1_000
PAUSE = 0.3  # seconds between two batches
LAST_READS = 1_000  # a socket to a child holds some 280 messages, a pipe 64 KiB


class Output:
    """The output of one attempt: splits its streams into lines, writes the log file, keeps the last lines of stderr."""

    def __init__(
        self,
        job_id: str,
        attempt: int,
        file: LogFile,
        lines: LogQueue,
        most_lines: int,
        *,
        worker: str = "",
        shard: int | None = None,
        secrets: Sequence[str] = (),
    ) -> None:
        self._job_id = job_id
        self._attempt = attempt
        self._worker = worker
        self._shard = shard
        self._secrets = list(secrets)
        self._file = file
        self._lines = lines
        self._left = most_lines
        self._partial: dict[str, bytes] = {}
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)

    def feed(self, level: str, data: bytes) -> None:
        """Add bytes of a stream. Very long lines are split."""
        *lines, rest = (self._partial.get(level, b"") + data).split(b"\n")
        while len(rest) >= LINE:
            lines.append(rest[:LINE])
            rest = rest[LINE:]
        self._partial[level] = rest
        for line in lines:
            for start in range(0, max(len(line), 1), LINE):
                self.say(level, line[start : start + LINE].decode(errors="replace").rstrip("\r"))

    def say(self, level: str, text: str, event: str = "", data: Mapping[str, Any] | None = None) -> None:
        """Write a line without the secrets of the job. `event` and `data` are for programs that read the log."""
        text, now = printable(self.clean(text)), datetime.now(UTC)
        data = cleaned(data, self.clean) if data else None
        more = {"job": self._job_id, "worker": self._worker, "shard": self._shard, "event": event, "data": data}
        self._file.write_line(now, level, self._attempt, text, **more)
        if level in ("warning", "error", "critical"):
            self.tail.append(text)
        if self._left > 0:
            self._left -= 1
            if self._left == 0:
                text = "this attempt logs too much: the following lines are in the log file only"
                level, event, data = "warning", "", None
            self._lines.put(NewLine(self._job_id, self._attempt, level, text, now, self._worker, event, data))

    def clean(self, text: str) -> str:
        """The text without the secrets of the job and of this process."""
        return without_secrets(log.clean(text), self._secrets)

    def close(self) -> None:
        for level, rest in self._partial.items():
            if rest:
                self.say(level, rest.decode(errors="replace"))
        self._partial.clear()
        self._file.close()


class LogQueue:
    """Lines that wait to be stored in the database. In a long outage the oldest lines are dropped."""

    def __init__(self) -> None:
        self._lines: deque[NewLine] = deque(maxlen=QUEUE)
        self._some = threading.Event()

    def put(self, line: NewLine) -> None:
        self._lines.append(line)
        self._some.set()

    def wait(self, seconds: float) -> None:
        self._some.wait(seconds)

    def take(self) -> list[NewLine]:
        self._some.clear()
        taken: list[NewLine] = []
        with contextlib.suppress(IndexError):
            while len(taken) < BATCH:
                taken.append(self._lines.popleft())
        if self._lines:
            self._some.set()
        return taken

    def put_back(self, lines: list[NewLine]) -> None:
        room = QUEUE - len(self._lines)
        self._lines.extendleft(reversed(lines[-room:] if room else []))


class LogWriter(BackgroundThread):
    """Stores lines in `job_logs`, in batches, in its own thread."""

    def __init__(self, database: Database, lines: LogQueue) -> None:
        super().__init__("job-logs")
        self._database = database
        self._lines = lines

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._lines.wait(1.0)
            self._flush()
            self._stopping.wait(PAUSE)
        self._flush()

    def _flush(self) -> None:
        while lines := self._lines.take():
            try:
                append(self._database, lines)
            except StoreError:
                self._lines.put_back(lines)
                self._stopping.wait(1.0)
                return


class OutputPipe:
    """Our end of a pipe or socket to a child. It is read until the other end is closed. Owns its descriptor."""

    def __init__(self, descriptor: int, take: Callable[[bytes], None], ended: Callable[[], None]) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self.take = take
        self._ended = ended
        self.open = True

    def fileno(self) -> int:
        return self._descriptor

    def read(self) -> bytes:
        return os.read(self._descriptor, protocol.MAX_MESSAGE)

    def end(self) -> None:
        self.open = False
        os.close(self._descriptor)
        self._ended()


class OutputThread:
    """One thread that reads all streams and sockets of all children."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._waker, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(self._waker, selectors.EVENT_READ, self._woken)
        self._jobs: deque[Callable[[], None]] = deque()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="output", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._call(lambda: None)
        self._thread.join(timeout=10)
        self._selector.close()
        os.close(self._waker)
        os.close(self._wake)

    def watch(self, source: OutputPipe) -> None:
        def register() -> None:
            self._selector.register(source, selectors.EVENT_READ, lambda: self._read(source))

        self._call(register)

    def abandon(self, source: OutputPipe) -> None:
        """Stop reading a stream that an escaped process still holds open.

        Data that is already there is read first: it may contain the message how the attempt ended.
        """
        self._call(lambda: self._read_last(source))

    def _read_last(self, source: OutputPipe) -> None:
        for _ in range(LAST_READS):
            if not self._read(source):
                break
        self._end(source)

    def _read(self, source: OutputPipe) -> bool:
        """Read once. Returns whether there was data."""
        if not source.open:  # it was closed in this turn, and its descriptor may have been reused
            return False
        try:
            data = source.read()
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if data:
            source.take(data)
        else:
            self._end(source)
        return bool(data)

    def _end(self, source: OutputPipe) -> None:
        if source.open:
            self._selector.unregister(source)
            source.end()

    def _call(self, action: Callable[[], None]) -> None:
        self._jobs.append(action)
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake, b"!")

    def _woken(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._waker, 4096)
        while self._jobs:
            self._jobs.popleft()()

    def _run(self) -> None:
        while not self._stopping:
            for key, _ in self._selector.select():
                key.data()

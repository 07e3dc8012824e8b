"""Runs readers on inputs in a child process, with a limit on CPU time and memory for each input.

The limits grow with the size of the input, and with nothing else. CPU time is counted, not the time of day, so a busy
machine changes no verdict. An input that never ends is ended by the kernel (`RLIMIT_CPU`), one that takes all memory by
`RLIMIT_AS`; the child is then started again.
"""

import os
import pickle
import resource
import signal
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

Reader = Callable[[bytes], int]
"""Reads an input and returns the size of what it made of it."""

MIB = 1 << 20
# An honest page of 1 MB takes 0.1-0.3 s and 60 MB; a sitemap of 1 MB 0.2 s. All of it with room to spare.
SECONDS = 2.0
SECONDS_PER_MIB = 4.0
MEMORY = 192 * MIB
MEMORY_PER_BYTE = 40
OUTPUT = 2 * MIB
OUTPUT_PER_BYTE = 20


@dataclass(frozen=True)
class Measured:
    """What one input cost. `ended` names how the reader failed; empty: it did not."""

    seconds: float
    memory: int
    output: int
    ended: str = ""

    def faults(self, size: int) -> list[str]:
        """Which limits it broke."""
        found = [self.ended] if self.ended else []
        if self.seconds > seconds_for(size):
            found.append(f"{self.seconds:.1f} s of CPU for {size} bytes")
        if self.memory > memory_for(size):
            found.append(f"{self.memory // MIB} MiB for {size} bytes")
        if self.output > OUTPUT + OUTPUT_PER_BYTE * size:
            found.append(f"{self.output} characters of output for {size} bytes")
        return found


def seconds_for(size: int) -> float:
    return SECONDS + SECONDS_PER_MIB * size / MIB


def memory_for(size: int) -> int:
    return MEMORY + MEMORY_PER_BYTE * size


class LimitedChild:
    """A child that reads one input after the other."""

    def __init__(self, readers: dict[str, Reader]) -> None:
        self._readers = readers
        self._pid = 0
        self._ask: BinaryIO
        self._answer: BinaryIO

    def __enter__(self) -> "LimitedChild":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def measure(self, reader: str, body: bytes) -> Measured:
        if not self._pid:
            self._start()
        asked = pickle.dumps((reader, body))
        try:
            self._ask.write(struct.pack("<Q", len(asked)) + asked)
            self._ask.flush()
            answer = pickle.load(self._answer)
        except (EOFError, OSError, pickle.UnpicklingError):
            return self._died(len(body))
        assert isinstance(answer, Measured)
        return answer

    def close(self) -> None:
        if self._pid:
            self._ask.close()
            self._answer.close()
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._pid = 0

    def _died(self, size: int) -> Measured:
        self._ask.close()
        self._answer.close()
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        code = os.waitstatus_to_exitcode(status)
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return Measured(seconds_for(size) if name == "SIGXCPU" else 0.0, 0, 0, f"the reader died: {name}")

    def _start(self) -> None:
        asked, ask = os.pipe()
        answered, answer = os.pipe()
        self._pid = os.fork()
        if self._pid:
            os.close(asked)
            os.close(answer)
            self._ask, self._answer = os.fdopen(ask, "wb"), os.fdopen(answered, "rb")
            return
        os.close(ask)
        os.close(answered)
        try:
            self._serve(os.fdopen(asked, "rb"), os.fdopen(answer, "wb"))
        finally:
            os._exit(0)

    def _serve(self, asked: BinaryIO, answer: BinaryIO) -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
        while head := asked.read(8):
            name, body = pickle.loads(asked.read(struct.unpack("<Q", head)[0]))
            pickle.dump(_measured(self._readers[name], body), answer)
            answer.flush()


def _measured(reader: Reader, body: bytes) -> Measured:
    size = len(body)
    used = time.process_time()
    # The kernel counts whole seconds, and ends the process one second later at the latest.
    resource.setrlimit(resource.RLIMIT_CPU, (int(used + seconds_for(size)) + 2, resource.RLIM_INFINITY))
    before, mapped = _memory()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + 2 * memory_for(size), resource.RLIM_INFINITY))
    Path("/proc/self/clear_refs").write_text("5")
    output, ended = 0, ""
    try:
        output = reader(body)
    except BaseException as error:
        ended = f"{type(error).__name__}: {error}"[:300]
    seconds = time.process_time() - used
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return Measured(seconds, max(0, _peak() - before), output, ended)


def _memory() -> tuple[int, int]:
    """Bytes in memory, and bytes of address space."""
    mapped, resident = Path("/proc/self/statm").read_text().split()[:2]
    page = resource.getpagesize()
    return int(resident) * page, int(mapped) * page


def _peak() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0

"""Prints. Control characters of crawled and logged text are escaped, so that a terminal does not interpret them."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, TextIO

# C0, DEL and C1 controls, line and paragraph separators, marks that reverse the direction of text, lone surrogates, and
# characters that nobody sees, such as tags. Not the joiners U+200C and U+200D: scripts and emoji need them.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ud800-\udfff\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_COLOURS = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "grey": 90}
_STATUS_COLOURS = {
    **dict.fromkeys(("failed", "fail", "silent"), "red"),
    **dict.fromkeys(("completed", "ok", "alive"), "green"),
    **dict.fromkeys(("paused", "pausing", "stopping", "cancelling", "pending", "warn"), "yellow"),
    **dict.fromkeys(("running",), "blue"),
    **dict.fromkeys(("stopped", "cancelled"), "grey"),
}


class OutputLost(Exception):
    """Stdout cannot be written, for example a file on a full disk."""


def prepare() -> None:
    """Set up the streams: escape characters that the locale lacks, and buffer stdout so that no output is lost."""
    raw = getattr(sys.stdout, "buffer", None)
    if isinstance(raw, io.RawIOBase):
        # PYTHONUNBUFFERED removes the buffer; without a buffer, the rest of a partial write is lost without an error.
        encoding, terminal = sys.stdout.encoding, sys.stdout.isatty()
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(raw), encoding=encoding, line_buffering=terminal)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def line(text: str = "") -> None:
    """One line of data, on stdout."""
    with noticed():
        sys.stdout.write(text + "\n")


def flush() -> None:
    with noticed():
        sys.stdout.flush()


@contextmanager
def noticed() -> Iterator[None]:
    """Turn an error of writing to stdout into `OutputLost`."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputLost(f"the output cannot be written: {error.strerror}") from error


def forget_output() -> None:
    """Discard what is still buffered, so that the interpreter reports no error when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def message(text: str) -> None:
    """Print a message to stderr."""
    flush()
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def complain(text: str) -> None:
    """Print an error in one line, after everything that was printed before."""
    message(f"silkline: {safe(' '.join(text.split()))}")


def print_json(value: Any, *, indent: int | None = 2) -> None:
    line(as_json(value, indent=indent))


def as_json(value: Any, *, indent: int | None = None) -> str:
    """JSON with readable letters, and with control characters escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=_plain)
    # Line breaks in `text` are the indentation; those of the values are escaped already.
    return "\n".join(_UNSAFE.sub(_json_escape, part) for part in text.split("\n"))


def _json_escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD7C0 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"  # JSON knows only pairs of surrogates


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def safe(text: str) -> str:
    """Text on one line, with control characters made visible."""
    return _UNSAFE.sub(_visible, text)


def safe_lines(text: str, indent: str = "") -> str:
    """Text of several lines; all but the first are indented, so that none looks like a line of Silkline."""
    return ("\n" + indent).join(safe(part) for part in text.rstrip("\n").replace("\t", "    ").split("\n"))


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return {9: "\\t", 10: "\\n", 13: "\\r"}.get(code) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")


def coloured(text: str, status: str, stream: TextIO | None = None) -> str:
    """Text in the colour of a status, if the stream shows colours."""
    colour = _STATUS_COLOURS.get(status)
    if not colour or not colours_wanted(stream or sys.stdout):
        return text
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"


def colours_wanted(stream: TextIO) -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, status: int | None = None) -> None:
    """Print columns. The last one is cut to the width of the terminal; `status` is the coloured column."""
    cells = [[safe(cell) for cell in row] for row in rows]
    widths = [max(len(row[place]) for row in [list(head), *cells]) for place in range(len(head) - 1)]
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    for number, row in enumerate([list(head), *cells]):
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        last = _cut(row[-1], room - sum(widths) - 2 * len(widths)) if room else row[-1]
        if status is not None and number:
            padded[status] = coloured(padded[status], row[status])
        line("  ".join([*padded, last]).rstrip())


def _cut(text: str, room: int) -> str:
    return text if len(text) <= max(room, 20) else text[: max(room, 20) - 1] + "…"


def pairs(rows: Iterable[tuple[str, str]]) -> None:
    """Print names with values, one per line. The caller has escaped the values."""
    found = [(name, value) for name, value in rows if value]
    width = max(len(name) for name, _ in found)
    for name, value in found:
        line(f"{name.ljust(width)}  {value.replace(chr(10), chr(10) + ' ' * (width + 2))}")


def duration(time: timedelta) -> str:
    """A duration as a short text: 12s, 5m, 3h, 2d."""
    return duration_of(time.total_seconds())


def duration_of(time: float) -> str:
    seconds = max(0, int(time))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= 2 * size or (unit != "d" and seconds >= size):
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def size(count: float) -> str:
    """A size in decimal units: 12 kB, 3.1 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.95 or (unit == "B" and count < 1000):
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def wrapped(text: str, room: int) -> list[str]:
    """Break a text between words into lines of at most `room` characters. Nothing is cut off."""
    lines = textwrap.wrap(text, max(room, 20), break_on_hyphens=False)
    return lines or [""]


def moment(time: datetime | None) -> str:
    """A time as text, in the local time zone."""
    return time.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z") if time else ""

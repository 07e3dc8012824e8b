"""Files that get their name only when they are complete.

The unfinished file, the part, is beside its target, so that a rename suffices. Other users may be able to write to that
folder. So the name of a part is random, and a part is always a new file: neither a file that somebody created before,
nor the target of a link, is ever opened.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

PART: Final = ".part"
USUAL_MODE: Final = 0o666  # less the umask
_LONGEST: Final = 50  # characters of the target in the name of its part; a character may take four bytes of 255


def new_part(path: Path, *, label: str = "", mode: int = USUAL_MODE) -> BinaryIO:
    """A new file beside `path`, open for reading and writing; its `name` is its path. `label` begins its name."""
    part = path.with_name(f".{label}{path.name[:_LONGEST]}.{secrets.token_hex(8)}{PART}")
    return new_file(part, mode=mode)


def new_file(path: Path, *, mode: int = USUAL_MODE) -> BinaryIO:
    """The file `path`, which must not exist, not even as a link."""
    return open(path, "x+b", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, mode))


@contextmanager
def whole_file(path: Path, *, label: str = "", mode: int = USUAL_MODE, durable: bool = False) -> Iterator[BinaryIO]:
    """A part that gets the name `path` when it is complete, and is removed after an error.

    An existing file or link with that name is replaced, not written to. `durable`: it is on the disk before that.
    """
    with new_part(path, label=label, mode=mode) as stream:
        part = Path(stream.name)
        try:
            yield stream
            if not stream.closed:  # a user with many parts closes each when it is written
                stream.flush()
            if durable:
                os.fsync(stream.fileno())
            part.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            raise

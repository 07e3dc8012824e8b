"""Writes a zip file to a stream. Unlike `zipfile`, it keeps the list of the files on the disk until the end.

`zipfile` takes about 600 bytes of memory for each file. Each file must have less than 4 GB; the archive may be larger.
Format: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
"""

from __future__ import annotations

import io
import struct
import tempfile
import zlib
from collections.abc import Iterator
from datetime import datetime
from typing import BinaryIO, Final

STORED, DEFLATED = 0, 8
_HEADER: Final = struct.Struct("<4s5H3L2H")
_ENTRY: Final = struct.Struct("<4s6H3L5H2L")
_LARGE_OFFSET: Final = struct.Struct("<2HQ")
_LARGE_END: Final = struct.Struct("<4sQ2H2L4Q")
_LARGE_END_PLACE: Final = struct.Struct("<4sLQL")
_END: Final = struct.Struct("<4s4H2LH")
_PLAIN, _LARGE = 20, 45  # versions of the format
_UNIX: Final = 3 << 8
_UTF8: Final = 1 << 11
_READABLE: Final = 0o644 << 16
_MOST_FILES: Final = 0xFFFF
_LARGEST: Final = 0xFFFFFFFF
_IN_MEMORY: Final = 1 << 20
_PART: Final = 64 << 10


class ZipStream:
    def __init__(self, stream: BinaryIO | io.RawIOBase) -> None:
        self._stream = stream
        self._list = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - closed in `close`
        self._number = 0

    def add(self, name: str, moment: datetime, content: bytes, method: int) -> None:
        """Write a file. `moment`: when it was changed; years before 1980 have no place in the format."""
        packed, path, offset = _packed(content, method), name.encode(), self._stream.tell()
        day = (max(moment.year, 1980) - 1980) << 9 | moment.month << 5 | moment.day
        time = moment.hour << 11 | moment.minute << 5 | moment.second // 2
        about = (_UTF8, method, time, day, zlib.crc32(content), len(packed), len(content), len(path))
        self._stream.write(_HEADER.pack(b"PK\3\4", _PLAIN, *about, 0) + path)
        self._stream.write(packed)
        large = _LARGE_OFFSET.pack(1, 8, offset) if offset >= _LARGEST else b""
        needed = _LARGE if large else _PLAIN
        rest = (len(large), 0, 0, 0, _READABLE, min(offset, _LARGEST))
        self._list.write(_ENTRY.pack(b"PK\1\2", _UNIX | _LARGE, needed, *about, *rest) + path + large)
        self._number += 1

    def ending(self) -> Iterator[None]:
        """Write the list of the files, a part at a time."""
        start = self._stream.tell()
        self._list.seek(0)
        while part := self._list.read(_PART):
            self._stream.write(part)
            yield
        end = self._stream.tell()
        size, number = end - start, self._number
        if number >= _MOST_FILES or max(size, start) >= _LARGEST:
            versions = (_UNIX | _LARGE, _LARGE)
            self._stream.write(_LARGE_END.pack(b"PK\6\6", 44, *versions, 0, 0, number, number, size, start))
            self._stream.write(_LARGE_END_PLACE.pack(b"PK\6\7", 0, end, 1))
        few = min(number, _MOST_FILES)
        self._stream.write(_END.pack(b"PK\5\6", 0, 0, few, few, min(size, _LARGEST), min(start, _LARGEST), 0))

    def close(self) -> None:
        """Free the list of the files."""
        self._list.close()


def _packed(content: bytes, method: int) -> bytes:
    if method == STORED:
        return content
    deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return deflate.compress(content) + deflate.flush()

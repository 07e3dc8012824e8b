"""JSON lines: each result with all its columns."""

from __future__ import annotations

from typing import BinaryIO

import msgspec

from silkline.store.results import Result


class JsonLines:
    """One result per line."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._encode = msgspec.json.Encoder().encode

    def write(self, result: Result) -> bool:
        self._stream.write(self._encode(result) + b"\n")
        return True

    def close(self) -> None:
        self._stream.flush()

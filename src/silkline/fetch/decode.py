"""Decodes `Content-Encoding` and never decompresses beyond a limit of bytes and of CPU time. Failures are values.

isal costs half as much as the zlib of libcurl, and the limit is exact.

Some data takes a hundred times longer than its size says, such as empty blocks that have tables. So the input is given
in pieces, and the time is checked after each one. With several layers, all but the innermost are compressed data, which
does not shrink much: a layer that grows is a cheap way to send a lot of slow data.
"""

from collections.abc import Callable, Generator, Iterator
from time import perf_counter, thread_time
from typing import Any, Final, cast

import brotli  # type: ignore[import-untyped]
import zstandard
from isal import igzip_lib, isal_zlib

from silkline.model.fetched import BAD_ENCODING, BODY_TOO_LARGE

ACCEPT_ENCODING: Final = "gzip, deflate, br, zstd"
MAX_LAYERS: Final = 3
# Each member copies the rest of the input, so many empty members would take quadratic time.
MAX_MEMBERS: Final = 64
# Most pages fit in one piece. Decompression stops at most one piece above the limit.
_PIECE: Final = 2 * 1024 * 1024
_INPUT: Final = 128 * 1024
_BROTLI_INPUT: Final = 64 * 1024
# CPU seconds for one body, and for each byte of it in either form. Ordinary data takes a tenth of this.
_SECONDS: Final = 0.1
_SECONDS_PER_BYTE: Final = 25e-9
# Bytes that an inner layer may have more than twice the bytes on the wire.
_LAYER_FREE: Final = 64 * 1024
# Compressed data is rarely larger than the decoded data. Beyond this many bytes, it must not be twice as large.
_BROTLI_FREE: Final = 256 * 1024
# RFC 9659: no zstd window above 8 MB on the web.
_ZSTD_WINDOW: Final = 8 * 1024 * 1024
_ZSTD_END: Final = b"\0end of body\0"
_ZSTD_END_FRAME: Final = zstandard.ZstdCompressor().compress(_ZSTD_END)
# Values that servers send in Content-Encoding although the body is not encoded.
_MEANINGLESS: Final = frozenset({"", "identity", "none", "null", "utf-8", "utf8", "binary", "8bit", "text"})


# The type stubs of isal do not declare it as a class.
_InflateError = cast(type[Exception], igzip_lib.IsalError)


class _Undecodable(Exception):
    """The bytes do not have the encoding that the header names."""


class _TooLarge(Exception):
    """The decoded body is larger than the limit."""


def decode(
    body: bytes, content_encoding: str, limit: int, *, cut: bool = False, partial: bool = False
) -> tuple[bytes, str | None]:
    """The decoded body, or the reason why there is none.

    With `cut`, a body above the limit is truncated instead of refused. `partial` means that the input was truncated.
    """
    words = (part.strip() for part in content_encoding.lower().split(","))
    layers = [word for word in words if word not in _MEANINGLESS]
    if len(layers) > MAX_LAYERS or not _DECODERS.keys() >= set(layers):
        return b"", BAD_ENCODING
    clock = _Clock(len(body))
    for depth, layer in enumerate(reversed(layers), 1):
        if not body:
            break
        most = limit if depth == len(layers) else min(limit, 2 * len(body) + _LAYER_FREE)
        try:
            body, is_whole = _gather(_DECODERS[layer](body, partial), most, cut, clock)
        except _Undecodable:
            return b"", BAD_ENCODING
        except _TooLarge:
            return b"", BODY_TOO_LARGE if most == limit else BAD_ENCODING
        partial = partial or not is_whole
    if len(body) > limit:
        return (body[:limit], None) if cut else (b"", BODY_TOO_LARGE)
    return body, None


class _Clock:
    """Ends a decoding that takes much longer than its size says.

    Nothing uses more CPU time than wall time. So the CPU time, which costs ten times as much to ask for, is measured
    only from the moment when the limit of wall time has passed.
    """

    def __init__(self, size: int) -> None:
        self._began = perf_counter()
        self._used: float | None = None
        self._size = size

    def check(self, more: int) -> None:
        self._size += more
        limit = _SECONDS + _SECONDS_PER_BYTE * self._size
        if perf_counter() - self._began <= limit:
            return
        if self._used is None:
            self._used = thread_time()
        elif thread_time() - self._used > limit:
            raise _Undecodable


def _gather(pieces: Iterator[bytes], limit: int, cut: bool, clock: _Clock) -> tuple[bytes, bool]:
    """The joined pieces, and whether they are complete. A refused body is dropped before the pieces are joined."""
    parts: list[bytes] = []
    size = 0
    for piece in pieces:
        parts.append(piece)
        size += len(piece)
        clock.check(len(piece))
        if size > limit:
            if not cut:
                raise _TooLarge
            break
    body = parts[0] if len(parts) == 1 else b"".join(parts)
    return (body, True) if size <= limit else (body[:limit], False)


def _gzip(body: bytes, partial: bool) -> Iterator[bytes]:
    for _ in range(MAX_MEMBERS):
        # Not IgzipDecompressor: with a limit, it takes twice as long (117 against 59 us for 46 KB).
        inflater = isal_zlib.decompressobj(wbits=31)
        body = yield from _inflate(inflater, body, partial)
        # Padding and extra bytes after the last member are ignored, as gzip does.
        if not body.startswith(b"\x1f\x8b"):
            return
    raise _Undecodable


def _deflate(body: bytes, partial: bool) -> Iterator[bytes]:
    """The standard means the zlib format, but many servers send raw deflate."""
    has_zlib_header = len(body) >= 2 and body[0] & 0x0F == 8 and (body[0] << 8 | body[1]) % 31 == 0
    return _inflate(isal_zlib.decompressobj(wbits=15 if has_zlib_header else -15), body, partial)


def _inflate(inflater: Any, body: bytes, partial: bool) -> Generator[bytes, None, bytes]:
    """Returns the bytes after the end."""
    taken, data = 0, b""
    while not inflater.eof:
        if not data:
            data = body[taken : taken + _INPUT]
            taken += len(data)
        try:
            piece = inflater.decompress(data, _PIECE)
        except _InflateError as error:
            raise _Undecodable from error
        yield piece
        data = inflater.unconsumed_tail
        if taken == len(body) and len(piece) < _PIECE and not inflater.eof:
            if partial:
                return b""
            raise _Undecodable
    return cast(bytes, inflater.unused_data) + body[taken:]


def _brotli(body: bytes, partial: bool) -> Iterator[bytes]:
    """The input is also split into pieces: empty blocks produce no output, but can take seconds."""
    inflater = brotli.Decompressor()
    taken = given = 0
    while not inflater.is_finished():
        data = body[taken : taken + _BROTLI_INPUT] if inflater.can_accept_more_data() else b""
        taken += len(data)
        try:
            piece = inflater.process(data, output_buffer_limit=_PIECE)
        except brotli.error as error:
            raise _Undecodable from error
        yield piece
        given += len(piece)
        if not (piece or data or inflater.is_finished()):
            if partial:
                return
            raise _Undecodable
        if taken > _BROTLI_FREE + 2 * given:
            raise _Undecodable


def _zstd(body: bytes, partial: bool) -> Iterator[bytes]:
    """The reader does not report a truncated stream. So we append our own frame and check that it was decoded."""
    source = body if partial else body + _ZSTD_END_FRAME
    reader = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).stream_reader(source, read_across_frames=True)
    most = min(_PIECE, max(65_536, 8 * len(body)))
    held = b""
    try:
        while piece := reader.read(most):
            held += piece
            yield held[: -len(_ZSTD_END)]
            held = held[-len(_ZSTD_END) :]
    except zstandard.ZstdError as error:
        if not partial:
            raise _Undecodable from error
    if partial:
        yield held
    elif held != _ZSTD_END:
        raise _Undecodable


_DECODERS: Final[dict[str, Callable[[bytes, bool], Iterator[bytes]]]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}

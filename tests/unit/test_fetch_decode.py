"""Content encodings: exact limits, and a reason for everything that is not what it claims."""

import gzip
import random
import zlib
from collections.abc import Callable
from functools import partial

import brotli  # type: ignore[import-untyped]
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from silkline.fetch.decode import MAX_MEMBERS, decode
from silkline.model.fetched import BAD_ENCODING, BODY_TOO_LARGE
from tests.support.empty_blocks import deflated_with_empty_blocks, gzipped_thrice, gzipped_with_empty_blocks


def raw_deflate(data: bytes) -> bytes:
    squeeze = zlib.compressobj(wbits=-15)
    return squeeze.compress(data) + squeeze.flush()


def unsized_zstd(data: bytes) -> bytes:
    squeeze = zstandard.ZstdCompressor().compressobj()
    return squeeze.compress(data) + squeeze.flush()


WAYS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("x-gzip", gzip.compress),
    ("deflate", zlib.compress),
    ("deflate", raw_deflate),
    ("br", partial(brotli.compress, quality=5)),
    ("zstd", zstandard.ZstdCompressor().compress),
    ("zstd", unsized_zstd),
]
EACH_WAY = pytest.mark.parametrize(("encoding", "encode"), WAYS)


@EACH_WAY
@pytest.mark.parametrize("size", [1, 99, 100, 101, 70_000])
def test_the_limit_is_exact(encoding: str, encode: Callable[[bytes], bytes], size: int) -> None:
    body = bytes(range(250)) * 300
    coded = encode(body[:size])
    assert decode(coded, encoding, size) == (body[:size], None)
    assert decode(coded, encoding, size - 1) == (b"", BODY_TOO_LARGE)
    assert decode(coded, encoding, size - 1, cut=True) == (body[: size - 1], None)


@EACH_WAY
def test_a_body_that_stops_early(encoding: str, encode: Callable[[bytes], bytes]) -> None:
    body = bytes(range(250)) * 300
    coded = encode(body)
    assert decode(coded[:-1], encoding, 10**6) == (b"", BAD_ENCODING)
    assert decode(coded[: len(coded) // 2], encoding, 10**6) == (b"", BAD_ENCODING)
    assert decode(coded[:-1], encoding, 10**6, cut=True) == (b"", BAD_ENCODING)
    kept, reason = decode(coded[:-1], encoding, 10**6, cut=True, partial=True)
    assert reason is None
    assert body.startswith(kept)


@EACH_WAY
@given(junk=st.binary(min_size=1, max_size=200))
def test_junk_is_never_an_exception(encoding: str, encode: Callable[[bytes], bytes], junk: bytes) -> None:
    for cut in (False, True):
        for body in (junk, encode(b"x" * 100)[:10] + junk):
            decoded, reason = decode(body, encoding, 1000, cut=cut, partial=cut)
            assert len(decoded) <= 1000
            assert reason in (None, BAD_ENCODING, BODY_TOO_LARGE)


@pytest.mark.parametrize("header", ["", "identity", "none", " UTF-8 ", "binary", ",,"])
def test_words_that_mean_nothing(header: str) -> None:
    assert decode(b"plain", header, 100) == (b"plain", None)
    assert decode(b"plain", header, 4) == (b"", BODY_TOO_LARGE)


@pytest.mark.parametrize("header", ["compress", "aes128gcm", "gzip;q=1", "gzip, what", "gzip, gzip, gzip, gzip"])
def test_encodings_nobody_asked_for(header: str) -> None:
    assert decode(gzip.compress(b"x"), header, 100) == (b"", BAD_ENCODING)


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd", "deflate"])
def test_nothing_at_all_is_an_empty_body(encoding: str) -> None:
    assert decode(b"", encoding, 100) == (b"", None)


def test_layers_are_undone_from_the_last_to_the_first() -> None:
    body = brotli.compress(zlib.compress(gzip.compress(b"page")))
    assert decode(body, "GZIP, identity , deflate,br", 100) == (b"page", None)


def test_gzip_members_and_what_comes_behind_them() -> None:
    assert decode(gzip.compress(b"one") + gzip.compress(b"two") + b"\0\0", "gzip", 100) == (b"onetwo", None)
    assert decode(gzip.compress(b"") * (MAX_MEMBERS + 1), "gzip", 100) == (b"", BAD_ENCODING)
    assert decode(gzip.compress(b"12345") * 3, "gzip", 14) == (b"", BODY_TOO_LARGE)


def test_a_zstd_window_larger_than_the_web_allows() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27)
    squeeze = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    assert decode(squeeze.compress(b"x" * 100) + squeeze.flush(), "zstd", 1000) == (b"", BAD_ENCODING)


@pytest.mark.parametrize("block", [b"\x06" * 1_000_000, b""])
def test_brotli_of_blocks_that_stand_for_next_to_nothing_is_given_up(block: bytes) -> None:
    squeeze = brotli.Compressor(quality=1)
    body = squeeze.process(b"a") + squeeze.flush()
    body += block or b"".join(squeeze.process(b"a") + squeeze.flush() for _ in range(300_000))
    body += squeeze.finish()
    assert decode(body, "br", 20_000_000) == (b"", BAD_ENCODING)


def test_brotli_of_what_cannot_be_compressed_comes_whole() -> None:
    page = random.Random(1).randbytes(3_000_000)
    assert decode(brotli.compress(page, quality=1), "br", 20_000_000) == (page, None)


@pytest.mark.parametrize(
    ("encoding", "pack"), [("gzip", gzipped_with_empty_blocks), ("deflate", deflated_with_empty_blocks)]
)
def test_blocks_that_take_long_and_stand_for_nothing_are_given_up(
    encoding: str, pack: Callable[[bytes, int], bytes]
) -> None:
    assert decode(pack(b"page", 1_000), encoding, 20_000_000) == (b"page", None)
    assert decode(pack(b"page", 5_000_000), encoding, 20_000_000) == (b"", BAD_ENCODING)


def test_layers_cannot_make_a_small_body_a_large_one_to_decode() -> None:
    body = gzipped_thrice(b"page", 3_000_000)
    assert len(body) < 30_000
    assert decode(body, "gzip, gzip, gzip", 20_000_000) == (b"", BAD_ENCODING)
    page = random.Random(1).randbytes(1_000_000)
    packed = gzip.compress(brotli.compress(gzip.compress(page), quality=1))
    assert decode(packed, "gzip, br, gzip", 20_000_000) == (page, None)


@EACH_WAY
def test_a_large_body_comes_whole(encoding: str, encode: Callable[[bytes], bytes]) -> None:
    words = random.Random(1).choices([b"%d" % number for number in range(3_000)], k=600_000)
    page = b" ".join(words)
    assert decode(encode(page), encoding, 20_000_000) == (page, None)


def test_large_members_of_gzip_come_whole() -> None:
    pages = [random.Random(number).randbytes(700_000) for number in range(3)]
    packed = b"".join(map(gzip.compress, pages))
    assert decode(packed + b"\0" * 300_000, "gzip", 20_000_000) == (b"".join(pages), None)

"""Bodies in encodings that are unusual but correct, and bodies whose encoding is broken."""

import gzip
import zlib

import brotli  # type: ignore[import-untyped]
import zstandard

HTML = b"<!doctype html><html><title>A page</title><p>" + b"".join(b"Sentence %d. " % number for number in range(3_000))


def _raw_deflate(body: bytes) -> bytes:
    """Without the header of zlib, as many servers send it."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


def _zstd_stream(body: bytes) -> bytes:
    """Without the size of the content, as a server that streams sends it."""
    packer = zstandard.ZstdCompressor().compressobj()
    return packer.compress(body) + packer.flush()


def _wrong_checksum(packed: bytes) -> bytes:
    return packed[:-8] + bytes(4) + packed[-4:]


CORRECT = {
    "brotli": ("br", brotli.compress(HTML)),
    "gzip": ("gzip", gzip.compress(HTML)),
    "gzip-deflate": ("gzip, deflate", zlib.compress(gzip.compress(HTML))),
    "gzip-deflate-gzip": ("gzip, deflate, gzip", gzip.compress(zlib.compress(gzip.compress(HTML)))),
    "raw-deflate": ("deflate", _raw_deflate(HTML)),
    "zlib-deflate": ("deflate", zlib.compress(HTML)),
    "zstd-with-size": ("zstd", zstandard.ZstdCompressor().compress(HTML)),
    "zstd-without-size": ("zstd", _zstd_stream(HTML)),
}
BROKEN = {
    "gzip-cut-in-the-middle": ("gzip", gzip.compress(HTML)[:-2_000]),
    "gzip-without-its-end": ("gzip", gzip.compress(HTML)[:-8]),
    "gzip-wrong-checksum": ("gzip", _wrong_checksum(gzip.compress(HTML))),
}

"""Compressed data that stands for nothing and takes long to decode: empty blocks of deflate, each with its tables."""

import gzip
import zlib

# Eight blocks, which end at a byte. Each one has 15 codes of four bits, which no byte of the content uses.
_BLOCKS = bytes.fromhex(
    "04c007010000040030ffd33fae3d01f0410000000100ccfff48f6b4f007c100000400000f33ffde3da13001f0400001000c0fc4fffb8f6"
    "04c007010000040030ffd33fae3d01f0410000000100ccfff48f6b4f007c100000400000f33ffde3da13001f0400001000c0fc4fffb8f6"
)


def deflated_with_empty_blocks(content: bytes, size: int) -> bytes:
    """Raw deflate of `content` behind `size` bytes of empty blocks."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    return _BLOCKS * (size // len(_BLOCKS)) + squeeze.compress(content) + squeeze.flush()


def gzipped_with_empty_blocks(content: bytes, size: int) -> bytes:
    checksum = zlib.crc32(content).to_bytes(4, "little") + len(content).to_bytes(4, "little")
    return gzip.compress(b"", mtime=0)[:10] + deflated_with_empty_blocks(content, size) + checksum


def gzipped_thrice(content: bytes, size: int) -> bytes:
    """A few kilobytes, whose inner layers have `size` bytes of empty blocks each."""
    inner = gzipped_with_empty_blocks(content, size)
    return gzip.compress(gzipped_with_empty_blocks(inner, size), mtime=0)

"""Honest inputs of our own for each reader, and ways to change them, with a random seed."""

import gzip
import zlib
from random import Random

import brotli
import zstandard

from silkline.sample.drawn import handbook
from silkline.sample.site import PAGES, answer
from tests.fuzz.html_bombs import FRAGMENTS, TAGS, random_bomb
from tests.fuzz.other_bombs import OTHER_BOMBS
from tests.fuzz.pdf_bombs import one_page, packed

ORIGIN = "https://a.example"
LONGEST = 2 << 20
_SITE = [answer(path, ORIGIN).body for path in PAGES]
_SITEMAPS = [answer(path, ORIGIN).body for path in ("/sitemap.xml", "/sitemap-pages.xml", "/feed.xml")]
_ROBOTS = [
    answer("/robots.txt", ORIGIN).body,
    b"User-agent: *\nDisallow: /a*b$\nAllow: /a/c\nCrawl-delay: 2\n\n"
    b"User-agent: silkline\nDisallow: /x\nSitemap: /s.xml\n",
]
_TEXTS = [
    *(b"utf-8\nSome text.\n", b"shift_jis\n\x93\xfa\x96\x7b\n"),
    *(b"\nNo label: \xe4\xf6\xfc\n", b"gb18030\n\x81\x30\x81\x30"),
]
_HEADERS = [
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nSet-Cookie: a=b\r\nLink: </x>; rel=next\r\n\r\n",
    b"HTTP/1.1 503 Busy\r\nRetry-After: Wed, 21 Oct 2026 07:28:00 GMT\r\n folded\r\n\r\n",
]
_URLS = [
    b"https://user:pw@B\xc3\xbccher.example:443/a/../b/%7e?utm_source=x&y=1#z",
    *(b"//[::1]:80/x", b"../x;jsessionid=1?q"),
]
_SNIFFED = [
    b"text/html; charset=utf-8\n<!-- c --><html>",
    b"application/xml\n<?xml version='1.0'?><rss>",
    b"\n%PDF-1.4",
]
_PDFS = [handbook(), one_page(packed(b"BT /F1 12 Tf 72 720 Td (Hello) Tj ET"))]
_WORDS: list[bytes] = [
    *(fragment.encode() for fragment in FRAGMENTS),
    *(f"<{tag}>".encode() for tag in TAGS),
    *(b"\x00", b"\xff", b"\xed\xa0\x80", b"%", b"%2e", b"../", b"*", b"$", b"\r", b"\n", b"\x1f\x8b", b"&#0;"),
    *(b"/Filter/FlateDecode", b"/Length 99999999", b"endstream", b"1 0 R", b"/Kids[1 0 R]", b"/Prev 1", b"/N 999999"),
    *(b"99999999999999999999", b"-1", b"0", b"1e999", b"<!DOCTYPE x [", b"encoding='punycode'", b"user-agent: *\n"),
]


def corpus_for(reader: str) -> list[bytes]:
    """Honest inputs for a reader."""
    if reader.startswith("page-"):
        return _SITE
    plain = {
        "robots": _ROBOTS,
        "sitemap": [*_SITEMAPS, *(gzip.compress(each, mtime=0) for each in _SITEMAPS)],
        "text": _TEXTS,
        "crawled-text": _TEXTS,
        "headers": _HEADERS,
        "url": _URLS,
        "sniff": _SNIFFED,
        "pdf": _PDFS,
        "gzip": [gzip.compress(each, mtime=0) for each in _SITE[:3]],
        "deflate": [zlib.compress(each) for each in _SITE[:3]],
        "br": [brotli.compress(each, quality=3) for each in _SITE[:3]],
        "zstd": [zstandard.ZstdCompressor().compress(each) for each in _SITE[:3]],
        "layers": [gzip.compress(brotli.compress(gzip.compress(each)), mtime=0) for each in _SITE[:3]],
    }
    return plain[reader]


def mutated(reader: str, random: Random) -> bytes:
    """An input for a reader: an honest one after some mutations, a bomb, or a part of one in an honest input."""
    corpus = corpus_for(reader)
    kind = random.random()
    if kind < 0.25 and reader.startswith("page-"):
        return random_bomb(random)(_size(random))
    if kind < 0.35 and reader in OTHER_BOMBS:
        body = random.choice(list(OTHER_BOMBS[reader].values()))(_size(random) // (40 if reader == "pdf" else 1))
        return _mutate(body, corpus, random) if random.random() < 0.5 else body
    body = random.choice(corpus)
    for _ in range(random.choice((1, 2, 4, 8, 30))):
        body = _mutate(body, corpus, random)
    return body[:LONGEST]


def _size(random: Random) -> int:
    return int(2 ** random.uniform(10, 19))


def _mutate(body: bytes, corpus: list[bytes], random: Random) -> bytes:
    at = random.randrange(len(body) + 1)
    end = min(len(body), at + int(2 ** random.uniform(0, 8)))
    which = random.randrange(8)
    if which == 0:
        flipped = bytes(byte ^ random.choice((0, 0, 1 << random.randrange(8))) for byte in body[at:end])
        return body[:at] + flipped + body[end:]
    if which == 1:
        return body[:at] + body[end:]
    if which == 2:  # the same piece again and again
        times = int(2 ** random.uniform(1, 14))
        return (body[:end] + body[at:end] * min(times, LONGEST // max(1, end - at)) + body[end:])[:LONGEST]
    if which == 3:
        other = random.choice(corpus)
        start = random.randrange(len(other) + 1)
        return body[:at] + other[start:]
    if which in (4, 5):
        return body[:at] + random.choice(_WORDS) * random.choice((1, 1, 1, 10, 1000)) + body[at:]
    if which == 6:
        return body[:at] + random.randbytes(end - at) + body[end:]
    return body[:at]

"""Compresses the pages that a job keeps, and opens them again: zstd, with a dictionary made from the first pages.

Pages of one site are alike, so a dictionary makes them much smaller than zstd alone, and each page can still be read on
its own. Every fetcher makes its own dictionary after `SAMPLES` pages; the pages before that have none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
import xxhash
import zstandard

from silkline.crawl.messages import UNREADABLE, PageOutcome
from silkline.crawl.outcomes import as_seen, public_headers
from silkline.crawl.url_queue import FrontierUrl
from silkline.model.fetched import Fetched
from silkline.model.kept_html import NewDictionary, NewHtml

LEVEL: Final = 3
SAMPLES: Final = 24
LONGEST_SAMPLE: Final = 100_000
DICTIONARY_BYTES: Final = 64 << 10
LARGEST: Final = 10_000_000
"""A larger page is not kept: readers use only so much of it."""
_MOST_OPENED: Final = 64 << 20
_encode = msgspec.msgpack.Encoder().encode


class KeptPage(msgspec.Struct, array_like=True, gc=False):
    """What a reader needs to read a page again."""

    content_type: str
    charset: str
    robots_tag: str
    base: str
    headers: dict[str, str]
    body: bytes


_decode = msgspec.msgpack.Decoder(KeptPage).decode


def page_to_keep(entry: FrontierUrl, fetched: Fetched) -> KeptPage | None:
    """The page in the form in which it is kept. None: it is no HTML, or too large."""
    base, body, charset = as_seen(entry.url, fetched)
    if len(body) > LARGEST or body.startswith(b"%PDF-"):
        return None
    tag = fetched.headers.get("x-robots-tag", "")
    return KeptPage(fetched.content_type, charset, tag, base, public_headers(fetched.headers), body)


class PageKeeper:
    """Compresses the pages of one fetcher."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=LEVEL)
        self._samples: list[bytes | bytearray | memoryview[int]] | None = []
        self._dictionary = 0

    def keep(self, url_id: int, page: KeptPage) -> tuple[NewHtml, NewDictionary | None]:
        """The compressed page, and a new dictionary that later pages need, if there is one."""
        data = _encode(page)
        kept = NewHtml(url_id, self._dictionary, len(page.body), self._compressor.compress(data))
        return kept, self._learn(data) if self._samples is not None else None

    def _learn(self, data: bytes) -> NewDictionary | None:
        samples = self._samples or []
        samples.append(data[:LONGEST_SAMPLE])
        self._samples = samples
        if len(samples) < SAMPLES:
            return None
        self._samples = None
        try:
            made = zstandard.train_dictionary(DICTIONARY_BYTES, samples)
        except zstandard.ZstdError:  # the pages have too little in common, or are too small
            return None
        content = made.as_bytes()
        self._dictionary = xxhash.xxh3_64_intdigest(content) >> 1 or 1
        self._compressor = zstandard.ZstdCompressor(level=LEVEL, dict_data=made)
        return NewDictionary(self._dictionary, content)


def with_html(ended: PageOutcome, keeper: PageKeeper, entry: FrontierUrl, fetched: Fetched) -> PageOutcome:
    """The end of a page together with its HTML."""
    page = page_to_keep(entry, fetched)
    if page is None:
        return ended
    html, dictionary = keeper.keep(entry.id, page)
    return ended._replace(html=html, dictionary=dictionary)


class PageOpener:
    """Opens kept pages. `dictionary` returns the bytes of a dictionary by its id."""

    def __init__(self, dictionary: Callable[[int], bytes | None]) -> None:
        self._dictionary = dictionary
        self._openers: dict[int, zstandard.ZstdDecompressor] = {0: zstandard.ZstdDecompressor()}

    def open(self, kept: NewHtml) -> KeptPage:
        """The page. `ValueError`: its dictionary is missing, or it is damaged."""
        opener = self._openers.get(kept.dictionary)
        if opener is None:
            content = self._dictionary(kept.dictionary)
            if content is None:
                raise ValueError("the dictionary of this page is missing")
            opener = zstandard.ZstdDecompressor(dict_data=zstandard.ZstdCompressionDict(content))
            self._openers[kept.dictionary] = opener
        try:
            return _decode(opener.decompress(kept.html, max_output_size=_MOST_OPENED))
        except (zstandard.ZstdError, *UNREADABLE) as error:
            raise ValueError(f"the page is damaged: {error}") from error

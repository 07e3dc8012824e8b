"""The text of a PDF as simple Markdown: paragraphs, one page after the other, within limits on pages, size and time.

PDF files are often broken. Then the text before the error is returned, and `problem` says what is wrong.

A small file can unpack to much data, and can use it many times. So `_LIMITS` bounds the unpacked size of one stream,
the tokens of one page, the forms drawn in it and the nodes of the page tree. The time limit interrupts pypdf at any
place, also while it opens the file: the table of objects of a file of 3 KB took 15 s. Outside of the main thread of a
process, nothing can be interrupted, and the time is only checked before each operation of a page. A single call that is
not Python code is not interrupted. It is bounded by the limits of the process that runs the parser.
"""

import io
import logging
import re
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from silkline.time_limit import TookTooLong, interrupted_after

# pypdf logs every defect of a file, even for each token. The log is useless, and it doubles the time of a bad file.
logging.getLogger("pypdf").addHandler(logging.NullHandler())
logging.getLogger("pypdf").setLevel(logging.CRITICAL)

# Normal pages have up to 50,000 tokens in less than a megabyte; maps and drawings have more. A token takes about 7 µs.
_LIMITS: Final[dict[str, Any]] = {
    "array_based_stream_maximum_output_length": 4_000_000,
    "brotli_maximum_output_length": 4_000_000,
    "image_maximum_buffer_size": 1_000_000,
    "jbig2_maximum_output_length": 1_000_000,
    "jbig2dec_binary": None,  # never start another program
    "lzw_maximum_output_length": 2_000_000,
    "maximum_declared_stream_length": 50_000_000,
    "page_tree_maximum_depth": 50,
    "page_tree_maximum_entries": 20_000,
    "page_tree_maximum_page_entries": 200_000,
    "run_length_maximum_output_length": 4_000_000,
    "stream_decoding_work_maximum_length": 20_000_000,
    "stream_filters_maximum_length": 5,
    "stream_parsing_work_maximum_count": 200_000,
    "xform_maximum_invocations_per_extraction": 500,
    "zlib_maximum_output_length": 4_000_000,
    "zlib_maximum_recovery_input_length": 200_000,
}
_HYPHEN: Final = re.compile(r"(?<=[a-zà-ÿ])-\n(?=[a-zà-ÿ])")
_SPACES: Final = re.compile(r"[ \t\u00a0]+")
_INVISIBLE: Final = re.compile(r"[\x00-\x08\x0b-\x1f\u00ad\u200b\ufeff\ud800-\udfff]")


class PdfText(msgspec.Struct, frozen=True, kw_only=True):
    """The text that could be read from a PDF."""

    markdown: str = ""
    title: str = ""
    pages: int = 0
    """The number of pages of the document, if it is known."""
    truncated: bool = False
    problem: str = ""


def parse_pdf(
    body: bytes,
    *,
    max_pages: int = 500,
    max_content: int = 2_000_000,
    max_seconds: float = 20.0,
    clock: Callable[[], float] = time.thread_time,
) -> PdfText:
    """The text of a PDF. After `max_seconds` of CPU time, the text that was read until then is returned."""
    from pypdf import apply_configuration

    with apply_configuration(**_LIMITS):
        return _Reading(max_pages, max_content, max_seconds, clock).read(body)


class _Reading:
    """Reads one file."""

    def __init__(self, max_pages: int, max_content: int, max_seconds: float, clock: Callable[[], float]) -> None:
        self._max_pages = max_pages
        self._max_content = max_content
        self._max_seconds = max_seconds
        self._clock = clock
        self._end = clock() + max_seconds
        self._title = ""
        self._pages: int | None = None
        self._parts: list[str] = []
        self._problem = ""

    def read(self, body: bytes) -> PdfText:
        try:
            with interrupted_after(self._max_seconds, cpu=True):
                whole = self._read(body)
        except TookTooLong:
            whole = False
        if self._pages is None:
            return PdfText(problem=self._problem or f"it could not be opened within {self._max_seconds:g} s")
        markdown = "\n\n".join(self._parts)
        return PdfText(
            markdown=markdown[: self._max_content],
            title=self._title,
            pages=self._pages,
            truncated=not whole or self._pages > self._max_pages or len(markdown) > self._max_content,
            problem=self._problem,
        )

    def _read(self, body: bytes) -> bool:
        """Read the file. Returns whether all pages were read."""
        from pypdf import PdfReader

        try:
            reader = PdfReader(io.BytesIO(body))
            if reader.is_encrypted and not reader.decrypt(""):
                self._problem = "encrypted"
                return False
            self._title = _title(reader.metadata.title if reader.metadata is not None else None)
            self._pages = len(reader.pages)
        except Exception as error:  # a broken file can make pypdf raise any exception
            self._problem = _reason(error)
            return False
        return self._read_pages(reader, min(self._pages, self._max_pages))

    def _read_pages(self, reader: Any, pages: int) -> bool:
        """Read the pages. Returns whether all pages were read."""
        size = 0
        for number in range(pages):
            self._look_at_the_time()
            if size > self._max_content:
                return False
            try:
                text = reader.pages[number].extract_text(visitor_operand_before=self._look_at_the_time)
            except Exception as error:
                self._problem = f"page {number + 1}: {_reason(error)}"
                continue
            text = _paragraphs(text)
            if text:
                self._parts.append(text)
                size += len(text) + 2
        return True

    def _look_at_the_time(self, *_: object) -> None:
        if self._clock() > self._end:
            raise TookTooLong


def _title(title: str | None) -> str:
    return " ".join(_INVISIBLE.sub("", str(title or "")).split())[:1000]


def _paragraphs(text: str) -> str:
    """The lines, joined to paragraphs. An empty line, or a short line that ends a sentence, ends a paragraph."""
    text = _HYPHEN.sub("", _INVISIBLE.sub("", text.replace("\r", "\n")))
    lines = [_SPACES.sub(" ", line).strip() for line in text.split("\n")]
    longest = max(map(len, lines), default=0)
    paragraphs: list[list[str]] = [[]]
    for line in lines:
        if line:
            paragraphs[-1].append(line)
        if not line or (len(line) < 0.7 * longest and line.endswith((".", "!", "?", ":"))):
            paragraphs.append([])
    return "\n\n".join(" ".join(paragraph) for paragraph in paragraphs if paragraph)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]

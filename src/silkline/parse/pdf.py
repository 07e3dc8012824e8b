"""The text of a PDF as Markdown: bytes in, text out, bounded in pages, characters and seconds.

A PDF knows where letters stand, not what a paragraph is; lines are put together again by what typesetters do.
"""

import io
import logging
import re
import time
from typing import Final, NamedTuple

from pypdf import PdfReader
from pypdf.errors import PyPdfError

MAX_PAGES: Final = 2_000
MAX_SECONDS: Final = 60.0
_SPACES: Final = re.compile(r"[ \t\u00a0]+")
_MARKUP: Final = re.compile(r"^(\s*)([#>]|[-+*](?=\s)|\d+[.)](?=\s)|```)")
_SENTENCE_ENDS: Final = (".", ":", ";", "!", "?", "\u2026", ".)", ".\u201d", '."')

# It warns about every flaw of every file.
logging.getLogger("pypdf").setLevel(logging.CRITICAL)


class Unreadable(ValueError):
    """There is no text to be had from this PDF; the message says why."""


class PdfText(NamedTuple):
    title: str
    markdown: str
    pages: int
    truncated: bool


def pdf_text(body: bytes, max_content: int = 2_000_000) -> PdfText:
    """The text of all pages, one below the other."""
    give_up = time.monotonic() + MAX_SECONDS
    try:
        reader = PdfReader(io.BytesIO(body))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("the PDF is encrypted")
        title = _title(reader)
        number = len(reader.pages)
        parts: list[str] = []
        size, truncated = 0, number > MAX_PAGES
        for place in range(min(number, MAX_PAGES)):
            text = paragraphs(reader.pages[place].extract_text())
            parts.append(text)
            size += len(text)
            if size > max_content or time.monotonic() > give_up:
                truncated = truncated or place + 1 < number or size > max_content
                break
    except Unreadable:
        raise
    except (PyPdfError, ValueError, TypeError, KeyError, IndexError, AttributeError, OSError, RecursionError) as error:
        # What a broken file makes the library stumble over is not to be foreseen.
        raise Unreadable(f"the PDF is broken: {type(error).__name__}: {error}"[:300]) from error
    except (NotImplementedError, ImportError, MemoryError, OverflowError) as error:
        raise Unreadable(f"the PDF cannot be read: {type(error).__name__}: {error}"[:300]) from error
    markdown = "\n\n".join(part for part in parts if part)
    if not markdown:
        raise Unreadable("the PDF holds pictures of its pages, and no text")
    return PdfText(title, markdown[:max_content], number, truncated)


def _title(reader: PdfReader) -> str:
    said = reader.metadata.title if reader.metadata else None
    return " ".join(_storable(str(said)).split())[:1000] if said else ""


def paragraphs(text: str) -> str:
    """Lines put together to paragraphs: one that ends in mid-sentence goes on in the next."""
    blocks: list[str] = []
    for line in (_SPACES.sub(" ", line).strip() for line in _storable(text).splitlines()):
        if not line:
            blocks.append("")
        elif blocks and blocks[-1] and _goes_on(blocks[-1], line):
            blocks[-1] = _joined(blocks[-1], line)
        else:
            blocks.append(_MARKUP.sub(r"\1\\\2", line))
    return "\n\n".join(block for block in blocks if block)


def _goes_on(before: str, line: str) -> bool:
    return not before.endswith(_SENTENCE_ENDS) and (line[0].islower() or before.endswith((",", "-")))


def _joined(before: str, line: str) -> str:
    if before.endswith("-") and line[0].islower() and before[-2:-1].isalpha():
        return before[:-1] + line
    return f"{before} {line}"


def _storable(text: str) -> str:
    return text.replace("\x00", "").encode("utf-8", "replace").decode()

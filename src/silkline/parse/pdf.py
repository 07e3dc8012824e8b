"""The text of a PDF as simple Markdown: paragraphs, one page after the other, within limits on pages, size and time.

PDF files are often broken; what could be read until then is given, and `problem` says what went wrong.
"""

import io
import logging
import re
import time
from collections.abc import Callable
from typing import Final

import msgspec

# pypdf logs every oddity of a file; without a handler they would land on the user's terminal.
logging.getLogger("pypdf").addHandler(logging.NullHandler())

_HYPHEN: Final = re.compile(r"(?<=[a-zà-ÿ])-\n(?=[a-zà-ÿ])")
_SPACES: Final = re.compile(r"[ \t\u00a0]+")
_INVISIBLE: Final = re.compile(r"[\x00-\x08\x0b-\x1f\u00ad\u200b\ufeff\ud800-\udfff]")


class PdfText(msgspec.Struct, frozen=True, kw_only=True):
    """What could be read of a PDF."""

    markdown: str = ""
    title: str = ""
    pages: int = 0
    """How many the document has, as far as is known."""
    truncated: bool = False
    problem: str = ""


def parse_pdf(
    body: bytes,
    *,
    max_pages: int = 500,
    max_content: int = 2_000_000,
    max_seconds: float = 20.0,
    clock: Callable[[], float] = time.monotonic,
) -> PdfText:
    """The text of a PDF. The time is looked at between pages."""
    from pypdf import PdfReader

    end = clock() + max_seconds
    try:
        reader = PdfReader(io.BytesIO(body))
        if reader.is_encrypted and not reader.decrypt(""):
            return PdfText(problem="encrypted")
        title = _title(reader.metadata.title if reader.metadata is not None else None)
        pages = len(reader.pages)
    except Exception as error:  # pypdf raises whatever the broken part of a file leads to
        return PdfText(problem=_reason(error))
    parts: list[str] = []
    size, problem, truncated = 0, "", pages > max_pages
    for number in range(min(pages, max_pages)):
        if clock() > end or size > max_content:
            truncated = True
            break
        try:
            text = _paragraphs(reader.pages[number].extract_text())
        except Exception as error:
            problem = f"page {number + 1}: {_reason(error)}"
            continue
        if text:
            parts.append(text)
            size += len(text) + 2
    markdown = "\n\n".join(parts)
    return PdfText(
        markdown=markdown[:max_content],
        title=title,
        pages=pages,
        truncated=truncated or len(markdown) > max_content,
        problem=problem,
    )


def _title(title: str | None) -> str:
    return " ".join(_INVISIBLE.sub("", str(title or "")).split())[:1000]


def _paragraphs(text: str) -> str:
    """Lines joined to paragraphs; an empty line, or a line that ends early with a full stop, ends one."""
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

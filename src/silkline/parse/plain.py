"""The text of a body that is text already: decoded, free of what cannot be stored, and as Markdown."""

import codecs
import re
from typing import Final

from turbohtml.detect import detect

_LANGUAGES: Final = {
    "application/json": "json",
    "application/ld+json": "json",
    "text/css": "css",
    "text/csv": "csv",
    "text/javascript": "javascript",
    "application/javascript": "javascript",
    "application/xml": "xml",
    "text/xml": "xml",
    "application/rss+xml": "xml",
    "application/atom+xml": "xml",
    "image/svg+xml": "xml",
    "text/yaml": "yaml",
    "application/yaml": "yaml",
    "text/x-python": "python",
}
_FENCES: Final = re.compile(r"`{3,}")


def decode_text(body: bytes, charset: str | None = None, longest: int = 2_000_000) -> str:
    """A plain text, by the order of the web: byte-order mark, HTTP, UTF-8 if it is, what the bytes look like."""
    body = body[: 4 * longest]
    return _decoded(body, charset).replace("\x00", "").replace("\r\n", "\n")[:longest]


def _decoded(body: bytes, charset: str | None) -> str:
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if body.startswith(mark):
            return body.decode(name, "replace")
    if charset:
        try:
            return body.decode(f"whatwg-{charset}", "replace")
        except LookupError:
            pass  # A name that no browser knows is as good as none.
    return body.decode(detect(body[:65_536]).codec or "utf-8", "replace")


def plain_markdown(text: str, content_type: str) -> str:
    """The text as Markdown."""
    language = _LANGUAGES.get(content_type) or ("xml" if content_type.endswith("+xml") else "")
    if not language and text.lstrip()[:5].lower() == "<?xml":
        language = "xml"
    if not language:
        return text.strip() + "\n" if text.strip() else ""
    longest = max((len(found) for found in _FENCES.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.strip()}\n{fence}\n"

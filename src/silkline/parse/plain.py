"""The text of a plain-text body: decodes it, removes characters that cannot be stored, and formats it as Markdown."""

import re
from typing import Any, Final

from silkline.parse.charsets import decoded

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
    """Decode a plain text. The encoding comes from the byte-order mark, else HTTP, else detection."""
    body = body[: 4 * longest]
    return decoded(body, charset).replace("\x00", "").replace("\r\n", "\n")[:longest]


def plain_data(body: bytes, charset: str | None, content_type: str, content: str, longest: int) -> dict[str, Any]:
    """The data of a result for a plain text: `markdown`, or `text` if wanted. The same for every kind of job."""
    data: dict[str, Any] = {"title": ""}
    if content == "none":
        return data
    text = decode_text(body, charset, longest + 1)
    shown = text if content == "text" else plain_markdown(text, content_type)
    data["text" if content == "text" else "markdown"] = shown[:longest]
    if len(shown) > longest:
        data["truncated"] = ["content"]
    return data


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

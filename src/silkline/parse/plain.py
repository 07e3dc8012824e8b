"""Text that is no HTML, as Markdown: prose as it stands, data and code in a fence that names its language."""

import re
from typing import Final

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
_XML_NAMES: Final = re.compile(rb"""<\?xml[^>]{0,100}?encoding\s*=\s*["']([\w.:-]{1,40})["']""")


def decoded(body: bytes, charset: str = "") -> str:
    """The text of a body: by its byte-order mark, what HTTP or an XML declaration says, UTF-8, or windows-1252."""
    for mark, name in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if body.startswith(mark):
            return _storable(body.decode(name, "replace"))
    declared = _XML_NAMES.match(body[:200])
    for name in (charset, declared[1].decode() if declared else "", "utf-8"):
        try:
            return _storable(body.decode(name or "utf-8"))
        except (LookupError, UnicodeDecodeError, ValueError):
            continue
    return _storable(body.decode("windows-1252", "replace"))


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


def _storable(text: str) -> str:
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()

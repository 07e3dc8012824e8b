"""Detects the type of a body. Its first bytes have priority over its Content-Type, which is often wrong."""

import re
from typing import Final

from silkline.model.page import Kind
from silkline.parse.charsets import decoded_as, encoding_of

_MAGIC: Final[tuple[tuple[bytes, Kind], ...]] = (
    (b"%PDF-", "pdf"),
    (b"\x89PNG\r\n", "image"),
    (b"\xff\xd8\xff", "image"),
    (b"GIF87a", "image"),
    (b"GIF89a", "image"),
    (b"BM", "image"),
    (b"II*\x00", "image"),
    (b"MM\x00*", "image"),
    (b"\x00\x00\x01\x00", "image"),
    (b"PK\x03\x04", "other"),
    (b"PK\x05\x06", "other"),
    (b"\x1f\x8b", "other"),
    (b"BZh", "other"),
    (b"\xfd7zXZ", "other"),
    (b"7z\xbc\xaf", "other"),
    (b"Rar!", "other"),
    (b"(\xb5/\xfd", "other"),
    (b"\x7fELF", "other"),
    (b"MZ", "other"),
    (b"wOFF", "other"),
    (b"wOF2", "other"),
    (b"OggS", "other"),
    (b"ID3", "other"),
    (b"\x1aE\xdf\xa3", "other"),
    (b"\xd0\xcf\x11\xe0", "other"),
    (b"\x00asm", "other"),
)
_FIRST: Final = frozenset(mark[0] for mark, _ in _MAGIC) | {ord("R")}
_FEED: Final = re.compile(rb"<(?:rss|feed|rdf:rdf)[\s>]", re.IGNORECASE)
_HTML: Final = re.compile(
    rb"<(?:!doctype\s+html|html|head|body|title|meta|script|style|link|div|p|h[1-6]|table|a|iframe|br|b|font|article|main|"
    rb"header|nav|section|span|ul|ol|form)[\s>/]",
    re.IGNORECASE,
)
_XHTML: Final = re.compile(rb"<(?:!doctype\s+html|html)[\s>]", re.IGNORECASE)
_BINARY: Final = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_STRAY: Final = bytes(range(33))
_TAG: Final = re.compile(rb"<(?:[a-z][a-z0-9-]*[\s>/]|!doctype\s|!--|\?xml\s)", re.IGNORECASE)
_SPACE_AND_COMMENTS: Final = re.compile(rb"(?:\s+|<!--.*?-->)*", re.DOTALL)


def media_type(content_type: str) -> str:
    """`text/html` from `Text/HTML; charset=utf-8`."""
    return content_type.partition(";")[0].strip().lower()


def charset_of(content_type: str) -> str | None:
    """The charset of a Content-Type, if it has one."""
    found = _CHARSET.search(content_type)
    return found[1].strip() or None if found else None


_CHARSET: Final = re.compile(r"""charset\s*=\s*["']?([^\s;"',]+)""", re.IGNORECASE)


def sniff(body: bytes, content_type: str = "", charset: str = "") -> Kind:
    """The type of a body, from its first bytes, its Content-Type and its charset."""
    kind = _magic(body)
    if kind is not None:
        return kind
    declared = media_type(content_type)
    text_like = _looks_like_text(body)
    if declared in ("text/html", "application/xhtml+xml"):
        return "html" if text_like or _starts_like_html(body, charset or charset_of(content_type)) else "other"
    if declared.startswith(("image/", "audio/", "video/", "font/")) and declared != "image/svg+xml":
        return "image" if declared.startswith("image/") else "other"
    if not text_like:
        return "other"
    return _markup(body, declared)


def _starts_like_html(body: bytes, charset: str | None) -> bool:
    """Whether a body with control bytes near its start begins with a tag, as a browser reads it."""
    start = body[:4096]
    encoding = encoding_of(charset)
    if encoding in ("utf-16le", "utf-16be"):
        start = decoded_as(start, encoding).encode()
    start = start.removeprefix(b"\xef\xbb\xbf").lstrip(_STRAY)
    return _TAG.match(start) is not None


def _magic(body: bytes) -> Kind | None:
    if body and body[0] in _FIRST:
        for mark, kind in _MAGIC:
            # A text may begin with `BM` or `MZ`, so a byte that no text has must follow.
            if body.startswith(mark) and (len(mark) > 2 or _BINARY.search(body[:64])):
                return kind
        if body[:4] == b"RIFF" and body[8:12] == b"WEBP":
            return "image"
    if body[4:8] == b"ftyp":
        return "image" if body[8:12] in (b"avif", b"heic", b"mif1") else "other"
    return None


def _looks_like_text(body: bytes) -> bool:
    """Whether there are no control bytes near the start, or UTF-16, where every second byte of markup is NUL."""
    head = body[:512]
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or _BINARY.search(head) is None:
        return True
    return utf16_without_mark(body) is not None


def utf16_without_mark(body: bytes) -> str | None:
    """`utf-16le` or `utf-16be` for a text that starts with markup in UTF-16 and has no byte-order mark."""
    head = body[:64]
    if len(head) < 8 or head.count(0) < len(head) // 3:
        return None
    if head[1::2].count(0) > 0.8 * len(head[1::2]) and not head[0::2].count(0):
        return "utf-16le"
    if head[0::2].count(0) > 0.8 * len(head[0::2]) and not head[1::2].count(0):
        return "utf-16be"
    return None


def _markup(body: bytes, declared: str) -> Kind:
    start = body[:4096].removeprefix(b"\xef\xbb\xbf")
    if start.startswith((b"\xff\xfe", b"\xfe\xff")) or utf16_without_mark(body):
        start = start.replace(b"\x00", b"").lstrip(b"\xff\xfe")
    lead = _SPACE_AND_COMMENTS.match(start)
    start = start[lead.end() if lead else 0 :]
    if start[:5].lower() == b"<?xml" or declared.endswith(("/xml", "+xml")):
        if _FEED.search(start):
            return "feed"
        return "html" if _XHTML.search(start) else "xml"
    if _FEED.match(start):
        return "feed"
    if declared in ("text/plain", "text/markdown", "text/csv", "application/json", "text/css", "text/javascript"):
        return "text"
    if _HTML.match(start):
        return "html"
    if start[:1] == b"<" and not declared:
        return "xml" if re.match(rb"<(?:urlset|sitemapindex|svg|opml)[\s>]", start) else "html"
    return "text" if not declared or declared.startswith("text/") else "other"

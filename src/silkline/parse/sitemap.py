"""Sitemaps and feeds: the addresses that a site lists by itself.

Reads sitemap indexes, URL sets, plain lists, RSS, RDF and Atom, gzipped or not. Broken XML gives what stood before the
break; entity declarations are refused, nothing outside the body is ever loaded, and size and entries are bounded.
"""

import re
import zlib
from typing import Final, Literal
from xml.parsers import expat

import msgspec

from silkline.model.url import KEEP_ALL, Rules, canonical_links

MAX_ENTRIES: Final = 50_000
MAX_BYTES: Final = 52_428_800
"""Both are the limits of the sitemap protocol."""

SitemapKind = Literal["urlset", "index", "feed", "text", "unknown"]


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One address that a sitemap lists. `lastmod` stands as the site wrote it."""

    url: str
    lastmod: str = ""
    priority: float | None = None


class Sitemap(msgspec.Struct, frozen=True, kw_only=True):
    """What a sitemap says. The entries of an `index` are sitemaps themselves."""

    kind: SitemapKind
    entries: list[Entry] = []
    truncated: bool = False
    """There was more than the limits allow."""
    problem: str = ""
    """Why reading stopped early: broken XML or gzip, or declared entities."""


def parse_sitemap(
    body: bytes,
    url: str,
    rules: Rules = KEEP_ALL,
    *,
    max_entries: int = MAX_ENTRIES,
    max_bytes: int = MAX_BYTES,
) -> Sitemap:
    """The entries of the sitemap or feed that came from `url`."""
    body, more, problem = _unpacked(body, max_bytes)
    if _first_sign(body) == b"<":
        reader = _read(body, max_entries)
        kind, found = reader.kind, reader.found
        more, problem = more or reader.full, problem or reader.problem
    else:
        kind, found = "text", _lines(body)
    more = more or len(found) > max_entries
    found = found[:max_entries]
    urls = canonical_links(url, [loc for loc, _, _ in found], rules)
    entries = [
        Entry(address, lastmod[:64], _priority(priority))
        for address, (_, lastmod, priority) in zip(urls, found, strict=True)
        if address is not None
    ]
    if kind == "text" and not entries:
        kind = "unknown"
    return Sitemap(kind=kind, entries=entries, truncated=more, problem=problem)


_CHUNK: Final = 65_536
_MAX_VALUE: Final = 16_384
_ROOTS: Final[dict[str, SitemapKind]] = {
    "urlset": "urlset",
    "sitemapindex": "index",
    "rss": "feed",
    "feed": "feed",
    "RDF": "feed",
}
_ITEMS: Final = frozenset({"url", "sitemap", "item", "entry"})
_FIELDS: Final = {
    "loc": "loc",
    "link": "loc",
    "guid": "guid",
    "id": "guid",
    "lastmod": "lastmod",
    "pubDate": "lastmod",
    "updated": "lastmod",
    "date": "lastmod",
    "priority": "priority",
}
_FOREIGN: Final = ("image:", "video:", "news:", "xhtml:", "media:", "content:", "itunes:", "source:")
_STRAY: Final = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});)")
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_LINE: Final = re.compile(r"https?://\S+", re.IGNORECASE)

_Found = tuple[str, str, str]


class _Full(Exception):
    """There are as many entries as anyone wants."""


class _Refused(Exception):
    """The document declares entities of its own."""


class _Reader:
    """Follows the XML parser and keeps what it finds, until an error or the end."""

    def __init__(self, max_entries: int) -> None:
        self.kind: SitemapKind = "unknown"
        self.found: list[_Found] = []
        self.full = False
        self.problem = ""
        self._limit = max_entries
        self._rooted = False
        self._item: dict[str, str] | None = None
        self._field: str | None = None
        self._value: list[str] = []
        self._size = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        local = name.rpartition(":")[2]
        if not self._rooted:
            self._rooted = True
            self.kind = _ROOTS.get(local, "unknown")
            if self.kind == "unknown":
                raise _Full
        elif local in _ITEMS:
            self._item = {"about": attributes.get("rdf:about", "")}
            self._field = None
        elif self._item is not None and local in _FIELDS and not name.startswith(_FOREIGN):
            self._field, self._value, self._size = _FIELDS[local], [], 0
            if local == "link" and "href" in attributes and attributes.get("rel", "alternate") == "alternate":
                self._item.setdefault("loc", attributes["href"][:_MAX_VALUE])

    def characters(self, text: str) -> None:
        if self._field is not None and self._size < _MAX_VALUE:
            self._value.append(text)
            self._size += len(text)

    def end(self, name: str) -> None:
        if self._item is None:
            return
        if name.rpartition(":")[2] in _ITEMS:
            self._finish(self._item)
            self._item = None
        elif self._field is not None:
            value = "".join(self._value).strip()
            if value:
                self._item.setdefault(self._field, value)
            self._field = None

    def refuse(self, *_: object) -> None:
        raise _Refused

    def _finish(self, item: dict[str, str]) -> None:
        loc = item.get("loc") or item.get("guid") or item["about"]
        if not loc:
            return
        if len(self.found) >= self._limit:
            raise _Full
        self.found.append((loc, item.get("lastmod", ""), item.get("priority", "")))


def _read(body: bytes, max_entries: int) -> _Reader:
    """Reads as XML; where that breaks, mends what sites break most (a bare `&`, control characters) and tries again."""
    first = _feed(body, max_entries, None)
    if not first.problem.startswith("xml"):
        return first
    mended = _CONTROL.sub(b"", _STRAY.sub(b"&amp;", body)).lstrip(b"\xef\xbb\xbf \t\r\n")
    second = _feed(mended, max_entries, "utf-8" if _is_utf8(mended) else "iso-8859-1")
    return second if len(second.found) > len(first.found) or not second.problem else first


def _feed(body: bytes, max_entries: int, encoding: str | None) -> _Reader:
    reader = _Reader(max_entries)
    parser = expat.ParserCreate(encoding)
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.characters
    parser.EntityDeclHandler = reader.refuse
    try:
        for position in range(0, len(body), _CHUNK):
            parser.Parse(body[position : position + _CHUNK], False)
        parser.Parse(b"", True)
    except _Full:
        reader.full = reader.kind != "unknown"
    except _Refused:
        reader.problem = "declares entities"
    except (expat.ExpatError, LookupError, ValueError) as error:
        reader.problem = f"xml: {error}"
    return reader


def _unpacked(body: bytes, max_bytes: int) -> tuple[bytes, bool, str]:
    """The body out of its gzip, whether it was cut, and what is wrong with it."""
    if not body.startswith(b"\x1f\x8b"):
        return body[:max_bytes], len(body) > max_bytes, ""
    parts: list[bytes] = []
    size, rest = 0, body
    try:
        while rest.startswith(b"\x1f\x8b") and size <= max_bytes:
            member = zlib.decompressobj(wbits=31)
            part = member.decompress(rest, max_bytes + 1 - size)
            parts.append(part)
            size += len(part)
            if not member.eof:
                break
            rest = member.unused_data
    except zlib.error as error:
        return b"".join(parts)[:max_bytes], False, f"gzip: {error}"
    whole = b"".join(parts)
    return whole[:max_bytes], size > max_bytes, "" if member.eof or size > max_bytes else "gzip: ends early"


def _first_sign(body: bytes) -> bytes:
    """The first character that is not space, in whatever encoding."""
    return body[:1024].lstrip(b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n")[:1]


def _lines(body: bytes) -> list[_Found]:
    text = body.decode("utf-16" if body[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig", "replace")
    return [(found[0], "", "") for line in text.splitlines() if (found := _LINE.fullmatch(line.strip()))]


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _priority(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return min(max(value, 0.0), 1.0) if value == value else None

"""Parses sitemaps and feeds: the URLs that a site lists.

Reads sitemap indexes, URL sets, plain lists, RSS, RDF and Atom, gzipped or not. For broken XML, the entries before the
error are returned. Declarations (entities, default attributes) are refused, and nothing outside the body is loaded.
These have limits: the size, the entries, the elements, their depth, the length of one tag, and the gzip members.
"""

import re
import zlib
from itertools import islice
from typing import Final, Literal
from xml.parsers import expat

import msgspec

from silkline.model.url import KEEP_ALL, UrlRules, canonical_links
from silkline.parse.charsets import decoded_as, encoding_of, is_utf8

MAX_ENTRIES: Final = 50_000
MAX_BYTES: Final = 52_428_800
"""Both are the limits of the sitemap protocol."""
MAX_ADDRESSES: Final = 32_000_000
"""Characters of all entries: a relative entry repeats the URL of its sitemap, up to 8,000 characters."""

SitemapKind = Literal["urlset", "index", "feed", "text", "unknown"]


class SitemapEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One URL of a sitemap. `lastmod` is the text of the site, unchanged."""

    url: str
    lastmod: str = ""
    priority: float | None = None


class Sitemap(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed sitemap. The entries of an `index` are sitemaps."""

    kind: SitemapKind
    entries: list[SitemapEntry] = []
    truncated: bool = False
    """The file has more entries or bytes than the limits allow."""
    problem: str = ""
    """Why reading stopped early: broken XML or gzip, or declared entities."""


def parse_sitemap(
    body: bytes,
    url: str,
    rules: UrlRules = KEEP_ALL,
    *,
    max_entries: int = MAX_ENTRIES,
    max_bytes: int = MAX_BYTES,
    max_addresses: int = MAX_ADDRESSES,
) -> Sitemap:
    """The entries of the sitemap or feed that came from `url`."""
    body, more, problem = _unpacked(body, max_bytes)
    if _first_sign(body) == b"<":
        reader = _read(body, max_entries)
        kind, found = reader.kind, reader.found
        more, problem = more or reader.full, problem or reader.problem
    else:
        kind, found = "text", _lines(body, max_entries + 1)
    more = more or len(found) > max_entries
    found = found[:max_entries]
    urls = _addresses(url, [loc for loc, _, _ in found], rules, max_addresses)
    more = more or len(urls) < len(found)
    entries = [
        SitemapEntry(address, lastmod[:64], _priority(priority))
        for address, (_, lastmod, priority) in zip(urls, found, strict=False)
        if address is not None
    ]
    if kind == "text" and not entries:
        kind = "unknown"
    return Sitemap(kind=kind, entries=entries, truncated=more, problem=problem)


_CHUNK: Final = 65_536
_MAX_VALUE: Final = 16_384
# Normal files have six elements per entry, some with pictures, and five levels. Each element costs about 1 µs.
_MAX_ELEMENTS: Final = 1_500_000
_MAX_DEPTH: Final = 64
# The parser reads an incomplete tag again each time it gets more data.
_MAX_TOKEN: Final = 1 << 20
_MAX_MEMBERS: Final = 1_000
_MAX_MENDED: Final = 8 << 20
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
_LINE: Final = re.compile(rb"^[ \t]*+(https?://[^\s]++)[ \t]*+\r?+$", re.IGNORECASE | re.MULTILINE)
_DECLARED: Final = re.compile(rb"""<\?xml\s[^<>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,64})["']""")
# The encodings that the XML parser supports.
_XML_ENCODINGS: Final = frozenset({"utf-8", "utf-16le", "utf-16be"})

_Found = tuple[str, str, str]


class _Full(Exception):
    """There are more entries than the limit, or the file is not a sitemap."""


class _Refused(Exception):
    """The document is refused, because it has something that no normal document has. The message names it."""


class _Reader:
    """Handles the events of the XML parser and keeps the entries, until an error or the end."""

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
        self._depth = 0
        self._elements = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._elements += 1
        if self._depth > _MAX_DEPTH or self._elements > _MAX_ELEMENTS:
            raise _Refused("nests too deeply" if self._depth > _MAX_DEPTH else "has too many elements")
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
        self._depth -= 1
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
        raise _Refused("declares entities")

    def doctype(self, _name: str, _system: str | None, _public: str | None, has_declarations: int) -> None:
        if has_declarations:
            raise _Refused("declares entities")

    def _finish(self, item: dict[str, str]) -> None:
        loc = item.get("loc") or item.get("guid") or item["about"]
        if not loc:
            return
        if len(self.found) >= self._limit:
            raise _Full
        self.found.append((loc, item.get("lastmod", ""), item.get("priority", "")))


def _read(body: bytes, max_entries: int) -> _Reader:
    """Reads XML. After an error, repairs the most common defects (a bare `&`, control characters) and tries again."""
    body = _in_utf8(body)
    first = _feed(body, max_entries, None)
    if not first.problem.startswith("xml"):
        return first
    mended = _CONTROL.sub(b"", _STRAY.sub(b"&amp;", body[:_MAX_MENDED])).lstrip(b"\xef\xbb\xbf \t\r\n")
    second = _feed(mended, max_entries, "utf-8" if is_utf8(mended) else "iso-8859-1")
    return second if len(second.found) > len(first.found) or not second.problem else first


def _in_utf8(body: bytes) -> bytes:
    """The body in UTF-8 if it declares another charset of the web, because the XML parser knows only a few.

    A declaration with an unknown charset is removed, because the parser would try all codecs of Python.
    """
    found = _DECLARED.search(body, 0, 256)
    encoding = encoding_of(found[1].decode("ascii")) if found is not None else "utf-8"
    if found is None or encoding in _XML_ENCODINGS:
        return body
    rest = body[body.find(b">", found.end()) + 1 :]
    return decoded_as(rest, encoding).encode() if encoding is not None else rest


def _feed(body: bytes, max_entries: int, encoding: str | None) -> _Reader:
    reader = _Reader(max_entries)
    parser = expat.ParserCreate(encoding)
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.characters
    parser.EntityDeclHandler = reader.refuse
    parser.StartDoctypeDeclHandler = reader.doctype
    try:
        for position in range(0, len(body), _CHUNK):
            parser.Parse(body[position : position + _CHUNK], False)
            if position - parser.CurrentByteIndex > _MAX_TOKEN:
                raise _Refused("has a tag of more than a megabyte")
        parser.Parse(b"", True)
    except _Full:
        reader.full = reader.kind != "unknown"
    except _Refused as error:
        reader.problem = str(error)
    except (expat.ExpatError, LookupError, ValueError) as error:
        reader.problem = f"xml: {error}"
    return reader


def _unpacked(body: bytes, max_bytes: int) -> tuple[bytes, bool, str]:
    """The unpacked body, whether it was cut, and the problem if there is one."""
    if not body.startswith(b"\x1f\x8b"):
        return body[:max_bytes], len(body) > max_bytes, ""
    parts: list[bytes] = []
    size = at = 0
    problem = ""
    for number in range(_MAX_MEMBERS + 1):
        if not body.startswith(b"\x1f\x8b", at) or size > max_bytes:
            break
        if number == _MAX_MEMBERS:
            problem = "gzip: too many members"
            break
        at, unpacked, problem = _unpack_member(body, at, max_bytes + 1 - size, parts)
        size += unpacked
        if problem:
            break
    whole = b"".join(parts)
    cut = len(whole) > max_bytes
    return whole[:max_bytes], cut, "" if cut else problem


def _unpack_member(body: bytes, at: int, most: int, parts: list[bytes]) -> tuple[int, int, str]:
    """Adds the data of one gzip member to `parts`. Returns the start of the next member, the size, and the problem.

    The input is given in pieces: zlib copies the input that is left after a member, so a file of many small members
    would be copied once for each member.
    """
    member, piece, left = zlib.decompressobj(wbits=31), 256, most
    try:
        while not member.eof and left > 0 and at < len(body):
            given = body[at : at + piece]
            part = member.decompress(given, left)
            parts.append(part)
            left -= len(part)
            at += len(given) - len(member.unused_data) - len(member.unconsumed_tail)
            piece = min(2 * piece, 1 << 20)
    except zlib.error as error:
        return at, most - left, f"gzip: {error}"
    return at, most - left, "" if member.eof or left <= 0 else "gzip: ends early"


def _first_sign(body: bytes) -> bytes:
    """The first character that is not a space, in any encoding."""
    return body[:1024].lstrip(b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n")[:1]


def lists_urls(body: bytes) -> bool:
    """Whether a text that is named as a sitemap is one: most of its first lines are URLs. Otherwise it is a page."""
    start = _as_utf8(body[:_CHUNK])
    return 2 * len(_LINE.findall(start)) >= sum(not line.isspace() for line in start.splitlines(keepends=True))


def _as_utf8(body: bytes) -> bytes:
    if body[:2] in (b"\xff\xfe", b"\xfe\xff"):
        body = body.decode("utf-16", "replace").encode("utf-8", "replace")
    return body.removeprefix(b"\xef\xbb\xbf")


def _lines(body: bytes, most: int) -> list[_Found]:
    return [(found[1].decode("utf-8", "replace"), "", "") for found in islice(_LINE.finditer(_as_utf8(body)), most)]


def _addresses(base: str, locs: list[str], rules: UrlRules, left: int) -> list[str | None]:
    """The canonical URLs of the entries; fewer if all URLs together are longer than `left`."""
    urls: list[str | None] = []
    for start in range(0, len(locs), 1_000):
        for url in canonical_links(base, locs[start : start + 1_000], rules):
            left -= len(url) if url is not None else 0
            if left < 0:
                return urls
            urls.append(url)
    return urls


def _priority(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return min(max(value, 0.0), 1.0) if value == value else None

"""Small generators of large inputs for the readers that do not read HTML."""

import gzip
import zlib
from collections.abc import Callable
from functools import partial

import brotli
import zstandard

from tests.fuzz.pdf_bombs import PDF_BOMBS
from tests.support.empty_blocks import gzipped_with_empty_blocks

Bomb = Callable[[int], bytes]
URLSET = b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
AGENT = b"user-agent: *\n"


def _lines(head: bytes, line: bytes) -> Bomb:
    """`line` again and again, each time with another number in place of `#`."""
    return lambda size: head + b"".join(line.replace(b"#", b"%d" % n) for n in range(size // (len(line) + 3)))


def _repeat(head: bytes, text: bytes, tail: bytes = b"") -> Bomb:
    return lambda size: head + text * (size // len(text)) + tail


def _members(content: bytes) -> Bomb:
    member = gzip.compress(content, mtime=0)
    return lambda size: member * (size // len(member))


def _issue_robots(size: int) -> bytes:
    """15,000 agents, then 32,000 rules, as the issue has it, or as much of both as fits."""
    agents = b"".join(b"user-agent: a%d\n" % n for n in range(size // 45))
    return agents + AGENT + b"".join(b"allow: /%d\n" % n for n in range(size // 25))


def _nested_gzip(size: int) -> bytes:
    body = b"http://a.example/\n" * (size // 18)
    for _ in range(5):
        body = gzip.compress(body, mtime=0)
    return body


def _xml_attributes(size: int) -> bytes:
    return URLSET + b"<url " + b" ".join(b"a%d=''" % n for n in range(size // 9)) + b"/></urlset>"


def _default_attributes(size: int) -> bytes:
    """Attributes that the document declares once, and every element has."""
    names = b" ".join(b"a%d CDATA 'x'" % n for n in range(size // 30))
    return b"<!DOCTYPE urlset [<!ATTLIST url " + names + b">]><urlset>" + b"<url/>" * (size // 12) + b"</urlset>"


def _content_model(size: int) -> bytes:
    return b"<!DOCTYPE urlset [<!ELEMENT urlset " + b"(" * (size // 2) + b"a" + b")" * (size // 2) + b">]><urlset/>"


ROBOTS: dict[str, Bomb] = {
    "agents and rules": _issue_robots,
    "wildcards that forbid": _lines(AGENT, b"disallow:/*#\n"),
    "wildcards that allow": _lines(AGENT, b"allow:/*#\n"),
    "wildcards and literals": _lines(AGENT, b"allow:/*a#\ndisallow:/b#/c\n"),
    "one rule of stars": _repeat(AGENT + b"disallow:/", b"*a"),
    "stars with an end": _repeat(AGENT + b"disallow:/", b"*a", b"$"),
    "long rules": _lines(AGENT, b"disallow:/" + b"a" * 500 + b"#*b\n"),
    "many rules": _lines(AGENT, b"disallow:/#\n"),
    "growing rules": lambda size: (
        AGENT + b"".join(b"disallow:/%s\n" % (b"a" * n) for n in range(int((2 * size) ** 0.5)))
    ),
    "slow to find": _lines(AGENT, b"disallow:/*" + b"a" * 50 + b"b" + b"a" * 50 + b"#\n"),
    "escapes": _repeat(AGENT + b"disallow:/", b"%41"),
    "not ascii": _repeat(AGENT + b"disallow:/", "ツ".encode()),
    "groups": _repeat(b"", b"user-agent:*\nallow:/\n"),
    "empty lines": _repeat(b"", b"\n"),
    "odd line ends": _repeat(AGENT, "\u2028".encode()),
    "comments": _repeat(AGENT, b"#\n"),
    "sitemaps": _lines(b"", b"sitemap: /#\n"),
    "long sitemap": _repeat(b"sitemap: /", b"x"),
    "delays": _repeat(AGENT, b"crawl-delay: 1e999\n"),
    "digits of a delay": _repeat(AGENT + b"crawl-delay: ", b"9"),
}
SITEMAPS: dict[str, Bomb] = {
    "empty members": _members(b""),
    "small members": _members(b"http://a.example/\n"),
    "members of XML": _members(b"<url><loc>/x</loc></url>"),
    "nested gzip": _nested_gzip,
    "deep": _repeat(URLSET, b"<a>"),
    "deep urls": _repeat(URLSET, b"<url>"),
    "flat": _repeat(URLSET, b"<a/>", b"</urlset>"),
    "entries": _repeat(URLSET, b"<url><loc>/x</loc></url>", b"</urlset>"),
    "long attribute": _repeat(URLSET + b"<url a='", b"x", b"'/></urlset>"),
    "attributes": _xml_attributes,
    "default attributes": _default_attributes,
    "content model": _content_model,
    "long text": _repeat(URLSET + b"<url><loc>/", b"x", b"</loc></url></urlset>"),
    "references": _repeat(URLSET + b"<url><loc>/", b"&#65;", b"</loc></url></urlset>"),
    "cdata": _repeat(URLSET + b"<url><loc>", b"<![CDATA[x]]>", b"</loc></url></urlset>"),
    "long comment": _repeat(URLSET + b"<!--", b"x"),
    "comments": _repeat(URLSET, b"<!--x-->"),
    "long name": _repeat(URLSET + b"<", b"x", b"/>"),
    "instructions": _repeat(URLSET, b"<?x y?>"),
    "bare ampersands": _repeat(URLSET + b"<url><loc>/", b"&", b"</loc></url></urlset>"),
    "control characters": _repeat(URLSET + b"<url><loc>/", b"\x01", b"</loc></url></urlset>"),
    "entities": lambda size: b"<!DOCTYPE x [" + b"<!ENTITY a 'x'>" * (size // 15) + b"]><urlset/>",
    "lines": _repeat(b"", b"\n"),
    "spaces": _repeat(b"", b" "),
    "long line": _repeat(b"http://a.example/", b"x"),
    "long line that is none": _repeat(b"http://a.example/", b"x", b" y"),
    "addresses": _repeat(b"", b"http://a.example/x\n"),
    "almost addresses": _repeat(b"", b"http:/"),
    "utf-16": lambda size: ("http://a.example/\n" * (size // 36)).encode("utf-16"),
    "declared punycode": _repeat(b'<?xml version="1.0" encoding="punycode"?><urlset>', b"<url/>"),
    "declared gb18030": _repeat(b'<?xml version="1.0" encoding="gb18030"?><urlset>', b"\x81\x30\x81\x30"),
    "long declaration": _repeat(b"<?xml ", b"x"),
    "atom": _repeat(b"<feed>", b"<entry><link href='/x'/><id>x</id><updated>1</updated></entry>", b"</feed>"),
    "rss": _repeat(b"<rss><channel>", b"<item><guid>x</guid><link>/x</link></item>", b"</channel></rss>"),
}
TEXTS: dict[str, Bomb] = {
    "punycode": _repeat(b"punycode\n", b"a-"),
    "punycode digits": _repeat(b"punycode\nx-", b"9"),
    "idna": _repeat(b"idna\n", b"xn--a."),
    "utf-7": _repeat(b"utf-7\n", b"+AGE-"),
    "unicode_escape": _repeat(b"unicode_escape\n", b"\\u0041"),
    "base64": _repeat(b"base64\n", b"QUFB"),
    "zip": lambda size: b"zip\n" + zlib.compress(b"\0" * (size * 100)),
    "bz2": _repeat(b"bz2\n", b"BZh9"),
    "undefined": _repeat(b"undefined\n", b"x"),
    "mbcs": _repeat(b"mbcs\n", b"x"),
    "long label": _repeat(b"", b"x", b"\nx"),
    "label with nul": _repeat(b"utf-8\0\n", b"x"),
    "iso-2022-jp": _repeat(b"iso-2022-jp\n", b"\x1b$B!"),
    "replacement": _repeat(b"iso-2022-kr\n", b"\x1b"),
    "utf-16": _repeat(b"utf-16\n", b"\xd8\x00"),
    "big5": _repeat(b"big5\n", b"\x88\x62"),
    "gb18030": _repeat(b"gb18030\n", b"\x81\x30\x81\x30"),
    "no label": _repeat(b"\n", b"\xff\xfe\xfd"),
    "lines": _repeat(b"\n", b"\r\n"),
    "fences": lambda size: b"\n" + b"\n".join(b"`" * n for n in range(int((2 * size) ** 0.5))),
    "long fence": _repeat(b"\n", b"`"),
}
HEADERS: dict[str, Bomb] = {
    "same name": _repeat(b"HTTP/1.1 200 OK\r\n", b"Set-Cookie: a=b\r\n"),
    "new names": _lines(b"HTTP/1.1 200 OK\r\n", b"x#: y\r\n"),
    "folded": _repeat(b"HTTP/1.1 200 OK\r\na: b\r\n", b" c\r\n"),
    "answers": _repeat(b"", b"HTTP/1.1 100 Continue\r\na: b\r\n\r\n"),
    "long value": _repeat(b"HTTP/1.1 200 OK\r\nLink: ", b"</x>; rel=next, "),
    "retry after": _repeat(b"HTTP/1.1 503 No\r\nRetry-After: ", b"9", b"\r\n"),
    "retry date": _repeat(b"HTTP/1.1 503 No\r\nRetry-After: ", b"Mon, 1 Jan (", b"\r\n"),
    "retry words": _repeat(b"HTTP/1.1 503 No\r\nRetry-After: ", b"a,b ", b"\r\n"),
    "no colon": _repeat(b"HTTP/1.1 200 OK\r\n", b"x\r\n"),
}
URLS: dict[str, Bomb] = {
    "dots": _repeat(b"/", b"../"),
    "dots after folders": lambda size: b"/" + b"a/" * (size // 5) + b"../" * (size // 5),
    "escaped dots": _repeat(b"/", b"%2e%2e/"),
    "path": _repeat(b"/", b"a/"),
    "fragment": _repeat(b"/x#", b"f"),
    "query": _repeat(b"/?", b"utm_a=1&"),
    "escapes": _repeat(b"/", b"%41"),
    "lone escapes": _repeat(b"/", b"%"),
    "sessions": _repeat(b"/", b";jsessionid=x"),
    "not ascii": _repeat(b"/", "ü".encode()),
    "surrogates": _repeat(b"/", b"\xed\xa0\x80"),
    "labels": _repeat(b"https://", "ü.".encode(), b"example/"),
    "one label": _repeat(b"https://", "ü".encode(), b"/"),
    "punycode label": _repeat(b"https://xn--", b"a", b"/"),
    "punycode labels": _repeat(b"https://", b"xn--a.", b"/"),
    "credentials": _repeat(b"https://", b"a:b@", b"example/"),
    "ats": _repeat(b"https://a", b"@", b"/"),
    "numbers": _repeat(b"https://", b"1.", b"1/"),
    "address": _repeat(b"https://[", b"::", b"]/"),
    "port": _repeat(b"https://a:", b"9", b"/"),
    "blanks": _repeat(b"", b" "),
    "tabs": _repeat(b"https://a/", b"\t"),
    "slashes": _repeat(b"https:", b"/"),
    "backslashes": _repeat(b"https:", b"\\"),
    "lines": _repeat(b"", b"//a.example\n"),
    "hosts": _lines(b"", "//ü#.example/\n".encode()),
}
SNIFFED: dict[str, Bomb] = {
    "comments": _repeat(b"\n", b"<!--x-->"),
    "open comments": _repeat(b"\n", b"<!--"),
    "spaces and comments": _repeat(b"text/xml\n", b" <!-- -->"),
    "content type": _repeat(b"text/html; charset", b"=", b"\nx"),
    "charsets": _repeat(b"text/html", b"; charset = ", b"\nx"),
    "nul": _repeat(b"\n", b"<\0"),
}


def _bomb_of(compress: Callable[[bytes], bytes]) -> Bomb:
    return lambda size: compress(b"\0" * (size * 400))


COMPRESSED: dict[str, dict[str, Bomb]] = {
    "gzip": {
        "zeros": _bomb_of(gzip.compress),
        "members": _members(b""),
        "junk": _repeat(b"\x1f\x8b", b"\x08"),
        "empty blocks": partial(gzipped_with_empty_blocks, b""),
    },
    "deflate": {"zeros": _bomb_of(zlib.compress), "stored": _repeat(b"\x78\x01", b"\x00\x00\x00\xff\xff")},
    "br": {"zeros": _bomb_of(lambda body: brotli.compress(body, quality=3)), "empty": _repeat(b"\x0b", b"\x06")},
    "zstd": {
        "zeros": _bomb_of(zstandard.ZstdCompressor().compress),
        "frames": lambda size: zstandard.ZstdCompressor().compress(b"") * (size // 9),
        "skippable": _repeat(b"", b"\x50\x2a\x4d\x18\x00\x00\x00\x00"),
        "blocks": lambda size: b"\x28\xb5\x2f\xfd\x00\x58" + b"\x00\x00\x00" * (size // 3),
    },
    "layers": {"zeros": lambda size: gzip.compress(brotli.compress(gzip.compress(b"\0" * (size * 400)), quality=3))},
}
OTHER_BOMBS: dict[str, dict[str, Bomb]] = {
    "robots": ROBOTS,
    "sitemap": SITEMAPS,
    "text": TEXTS,
    "crawled-text": TEXTS,
    "headers": HEADERS,
    "url": URLS,
    "sniff": SNIFFED,
    "pdf": PDF_BOMBS,
    **COMPRESSED,
}

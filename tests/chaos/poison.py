"""Inputs of a few kilobytes that try to end a crawl: by memory, by time, or by a crash of what reads them.

Each is a function without arguments that gives an `Answer`; `PAGES` are fetched as pages, `ROBOTS` as robots.txt,
`SITEMAPS` as sitemaps that a robots.txt names. Nothing here is read from a file: a bomb is a loop and a compressor.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.support.empty_blocks import gzipped_thrice, gzipped_with_empty_blocks

HTML = "text/html; charset=utf-8"


@dataclass(frozen=True)
class Answer:
    """What a server sends: the body, compressed where that makes it small."""

    body: bytes
    content_type: str = HTML
    headers: dict[str, str] = field(default_factory=dict)
    compress: bool = True


def packed_filling(mebibytes: int, byte: bytes = b"\0", *, before: bytes = b"", gzipped: bool) -> bytes:
    """`before` and then many equal bytes, compressed: one mebibyte is packed once and repeated."""
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    filling = byte * (1 << 20)
    start = packer.compress(before) + packer.flush(zlib.Z_FULL_FLUSH)  # what follows refers to nothing before it
    block = packer.compress(filling) + packer.flush(zlib.Z_FULL_FLUSH)
    body = start + block * mebibytes + packer.flush()
    add = zlib.crc32 if gzipped else zlib.adler32
    checksum = add(before)
    for _ in range(mebibytes):
        checksum = add(filling, checksum)
    if not gzipped:
        return b"\x78\xda" + body + checksum.to_bytes(4, "big")
    size = len(before) + (mebibytes << 20)
    return gzip.compress(b"", mtime=0)[:10] + body + checksum.to_bytes(4, "little") + size.to_bytes(4, "little")


def page(inner: str, **more: str) -> Answer:
    return Answer(f"<html><head><title>A bomb</title></head><body>{inner}</body></html>".encode(), **more)


def spread_table() -> Answer:
    row = "<tr>" + "<td colspan=50 rowspan=50>x</td>" * 20 + "</tr>"
    return page(f"<table>{row * 950}</table>")


def wide_table() -> Answer:
    return page("<table>" + "<tr><td colspan=1000>x</td></tr>" * 20_000 + "</table>")


def tall_table() -> Answer:
    return page(
        "<table><tr>" + "<td rowspan=65534>x</td>" * 1000 + "</tr>" + "<tr><td>y</td></tr>" * 20_000 + "</table>"
    )


def digits_of_colspan() -> Answer:
    return page(f"<table><tr><td colspan={'9' * 1_000_000}>x</td></tr></table>")


def nested_tables() -> Answer:
    return page("<table><tr><td>" * 5000 + "x" + "</td></tr></table>" * 5000)


def nested_lists() -> Answer:
    return page("<ul><li>x" * 20_000)


def nested_quotes() -> Answer:
    return page("<blockquote><p>x</p>" * 20_000)


def nested_blocks() -> Answer:
    return page("<div>" * 200_000 + "x")


def nested_formats() -> Answer:
    return page("".join(f"<b><i class=c{number}><font size={number}>x<p>" for number in range(5000)))


def open_formats() -> Answer:
    return page("<b>" * 30_000 + "<p>x" * 30_000)


def foster_parents() -> Answer:
    return page("<table>" + "<b>x<tr>y" * 30_000)


def nested_links() -> Answer:
    return page("<a href=/x>" * 50_000)


def many_links() -> Answer:
    return page("".join(f"<a href=/far/{number}?x={number}>{number}</a>" for number in range(150_000)))


def climbing_links() -> Answer:
    return page(f"<a href='{'../' * 100_000}x'>up</a>" * 5)


def long_attribute() -> Answer:
    return page(f"<a href='/{'a' * 2_000_000}'>x</a><p title='{'b' * 2_000_000}'>y</p>")


def many_attributes() -> Answer:
    return page("<p " + " ".join(f"a{number}=1" for number in range(200_000)) + ">x</p>")


def many_entities() -> Answer:
    return page("&CounterClockwiseContourIntegral;&#x10ffff;&notit;" * 60_000)


def many_spaces() -> Answer:
    return page("<p>" + " \n\t" * 600_000 + "x</p>" + "<pre>" + " \n" * 400_000 + "</pre>")


def many_breaks() -> Answer:
    return page("<br>" * 400_000 + "<p>x" + "<hr>" * 100_000)


def many_backticks() -> Answer:
    return page("<code>" + "`" * 500_000 + "</code><pre>" + "```\n" * 200_000 + "</pre>" + "*_[" * 200_000)


def many_headings() -> Answer:
    return page("".join(f"<h{1 + number % 6}>{number}</h{1 + number % 6}>" for number in range(100_000)))


def many_metas() -> Answer:
    metas = "<meta name=robots content='all,all,all'><meta property=og:title content=x><link rel=alternate href=/x>"
    return Answer(f"<html><head>{metas * 30_000}</head><body>x</body></html>".encode())


def deep_json() -> Answer:
    return page('<script type="application/ld+json">' + '{"a":[' * 100_000 + "</script>")


def nested_templates() -> Answer:
    return page("<template><svg><foreignObject><math><mi>" * 20_000)


def one_long_word() -> Answer:
    return page("<p>" + "a" * 3_000_000 + "</p>")


def many_short_texts() -> Answer:
    return page("<span>a</span>, " * 250_000)


def text_in(charset: str) -> Callable[[], Answer]:
    def answer() -> Answer:
        return Answer(b"a-b" * 700_000, f"text/plain; charset={charset}")

    return answer


def page_in_punycode() -> Answer:
    return Answer(b"<html><p>" + b"a-b" * 700_000, "text/html; charset=punycode")


def declared_utf_16() -> Answer:
    return Answer(b"\xff\xfe" + b"\x00\xd8" * 1_000_000, "text/html")


def gzip_bomb() -> Answer:
    small = packed_filling(200, gzipped=True)
    return Answer(small, HTML, {"Content-Encoding": "gzip"}, compress=False)


def gzip_in_gzip() -> Answer:
    body = packed_filling(20, gzipped=True)
    for _ in range(7):
        body = gzip.compress(body, 9)
    return Answer(body, HTML, {"Content-Encoding": ", ".join(["gzip"] * 8)}, compress=False)


def empty_blocks_in_layers() -> Answer:
    body = gzipped_thrice(b"<p>nothing</p>", 12_000_000)
    return Answer(body, HTML, {"Content-Encoding": "gzip, gzip, gzip"}, compress=False)


def empty_blocks() -> Answer:
    return Answer(gzipped_with_empty_blocks(b"", 4_000_000), HTML, {"Content-Encoding": "gzip"}, compress=False)


def _pdf(*objects: bytes) -> Answer:
    body, places = b"%PDF-1.7\n", []
    for number, one in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<</Root 1 0 R/Size %d>>\nstartxref\n%d\n%%%%EOF"
    return Answer(body + end % (len(objects) + 1, table, len(objects) + 1, len(body)), "application/pdf")


def _stream(content: bytes, filters: bytes = b"/FlateDecode") -> bytes:
    return b"<</Length %d/Filter %s>>stream\n%s\nendstream" % (len(content), filters, content)


def _one_page(content: bytes) -> Answer:
    font = b"<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>"
    leaf = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources" + font + b">>"
    return _pdf(b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>", leaf, content)


def pdf_of_zeros() -> Answer:
    return _one_page(_stream(packed_filling(100, gzipped=False)))


def pdf_of_text() -> Answer:
    return _one_page(_stream(zlib.compress(b"BT /F 1 Tf (x) Tj ET\n" * 500_000, 9)))


def pdf_of_operators() -> Answer:
    return _one_page(_stream(zlib.compress(b"q 1 0 0 1 0 0 cm [(a)-1(b)]TJ Q\n" * 400_000, 9)))


def pdf_packed_often() -> Answer:
    content = packed_filling(50, gzipped=False)
    for _ in range(2):
        content = zlib.compress(content, 9)
    return _one_page(_stream(content, b"[/FlateDecode/FlateDecode/FlateDecode]"))


def pdf_with_a_loop() -> Answer:
    kids = b"[" + b"2 0 R " * 200 + b"]"
    return _pdf(b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids" + kids + b"/Count 200>>")


def pdf_of_brackets() -> Answer:
    return _pdf(b"<</Type/Catalog/Pages " + b"[" * 300_000 + b">>")


def many_agents() -> Answer:
    agents = "".join(f"User-agent: bot{'abcdefghij'[number % 10]}{'x' * (number % 40)}\n" for number in range(15_000))
    rules = "".join(f"Disallow: /r{number}\n" for number in range(12_000))
    return Answer((agents + "User-agent: *\n" + rules)[:480_000].encode(), "text/plain")


def many_wildcards() -> Answer:
    return Answer(
        (
            "User-agent: *\n"
            + "Disallow: /*a*b*c$\n" * 1
            + "".join(f"Disallow: /*a*b{number}*c\n" for number in range(22_000))
        ).encode(),
        "text/plain",
    )


def one_line_of_stars() -> Answer:
    return Answer(b"User-agent: *\nDisallow: /" + b"*a" * 240_000 + b"$\n", "text/plain")


def many_named_sitemaps() -> Answer:
    lines = "".join(f"Sitemap: /map{number}.xml\n" for number in range(20_000))
    return Answer(("User-agent: *\nDisallow:\n" + lines).encode(), "text/plain")


def one_line_of_spaces() -> Answer:
    return Answer(b"User-agent: *\nDisallow: /x" + b" \t" * 240_000 + b"#\nAllow: /\n", "text/plain")


def sitemap_of_members() -> Answer:
    return Answer(gzip.compress(b" ", 1) * 150_000, "application/gzip", compress=False)


def sitemap_of_zeros() -> Answer:
    packed = packed_filling(300, b" ", before=b"<urlset>", gzipped=True)
    return Answer(packed, "application/gzip", compress=False)


def deep_sitemap() -> Answer:
    return Answer(b"<urlset>" + b"<url>" * 400_000, "application/xml")


def sitemap_of_entities() -> Answer:
    lines = b"".join(b'<!ENTITY e%d "%s">' % (n, b"&e%d;" % (n - 1) * 20 if n else b"lol") for n in range(12))
    return Answer(b"<!DOCTYPE u [" + lines + b"]><urlset><url><loc>&e11;</loc></url></urlset>", "application/xml")


def sitemap_of_attributes() -> Answer:
    many = b" ".join(b'a%d="%s"' % (n, b"x" * 20) for n in range(50_000))
    return Answer(b"<urlset><url " + many + b"><loc>/x</loc></url></urlset>", "application/xml")


PAGES: dict[str, Callable[[], Answer]] = {
    function.__name__: function
    for function in (
        *(spread_table, wide_table, tall_table, digits_of_colspan, nested_tables, nested_lists, nested_quotes),
        *(nested_blocks, nested_formats, open_formats, foster_parents, nested_links, many_links, climbing_links),
        *(long_attribute, many_attributes, many_entities, many_spaces, many_breaks, many_backticks, many_headings),
        *(many_metas, deep_json, nested_templates, one_long_word, many_short_texts, page_in_punycode),
        *(declared_utf_16, gzip_bomb, gzip_in_gzip, pdf_of_zeros, pdf_of_text, pdf_of_operators, pdf_packed_often),
        *(pdf_with_a_loop, pdf_of_brackets, empty_blocks, empty_blocks_in_layers),
    )
} | {f"text_in_{name}": text_in(name) for name in ("punycode", "idna", "utf-7", "unicode_escape", "zlib_codec", "hz")}
ROBOTS: dict[str, Callable[[], Answer]] = {
    function.__name__: function
    for function in (many_agents, many_wildcards, one_line_of_stars, many_named_sitemaps, one_line_of_spaces)
}
SITEMAPS: dict[str, Callable[[], Answer]] = {
    function.__name__: function
    for function in (sitemap_of_members, sitemap_of_zeros, deep_sitemap, sitemap_of_entities, sitemap_of_attributes)
}

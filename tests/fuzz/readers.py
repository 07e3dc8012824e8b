"""Every function of Silkline that reads bytes from the web, in one shape: bytes in, size of the result out.

A reader may refuse an input by a value, never by an exception, and never by taking more time or memory than the input
is worth.
"""

import time

import msgspec

from silkline.crawl.plan_from_spec import plan_of
from silkline.crawl.reading import Body, PageReader
from silkline.fetch.decode import decode
from silkline.fetch.origin import join, locate
from silkline.fetch.response import parse_headers
from silkline.fetch.robots import read as read_robots
from silkline.model.fetched import Fetched, retry_after
from silkline.model.fields import read_fields
from silkline.model.page import Wanted
from silkline.model.spec import SiteSpec
from silkline.model.url import UrlRules, canonical, canonical_links, host_of, origin_of, url_key
from silkline.parse.fields import FieldReader, ReadFields
from silkline.parse.html import parse_page
from silkline.parse.pdf import parse_pdf
from silkline.parse.plain import decode_text, plain_markdown
from silkline.parse.sitemap import parse_sitemap
from silkline.parse.sniff import charset_of, sniff
from tests.fuzz.limited_child import Reader

URL = "https://a.example/folder/page?x=1"
TRIM_ALL = UrlRules(drop_tracking=True, drop_sessions=True)
MAX_BODY = 20 << 20
_encode = msgspec.json.Encoder().encode
_FIELDS = FieldReader(
    read_fields({name: {"css": name, "many": name != "body"} for name in ("body", "table", "td", "div")}, None), ""
)


def _page(content: str, **more: bool) -> Reader:
    wanted = Wanted(content=content, outline=True, simhash=True, scripts=True, rules=TRIM_ALL, **more)  # type: ignore[arg-type]

    def read(body: bytes) -> int:
        page = parse_page(body, URL, wanted, robots_tags=(body[:4000].decode("latin-1"),))
        # The addresses of links repeat their base; what is stored of a page is its content and its facts.
        return len(page.markdown) + len(page.text) + len(_encode((page.title, page.headings, page.json_ld)))

    return read


def fields(body: bytes) -> int:
    """The text of whatever a selector may find."""
    found: list[ReadFields] = []
    parse_page(body, URL, inspect=lambda document, _, base: found.append(_FIELDS.read(document, URL, base)))
    return len(_encode(found[0].data))


def robots(body: bytes) -> int:
    rules = read_robots(body, 0.0)
    paths = ("", "a", "a" * 8_000, "/".join("ab" * 1_000), "x.php?a=b&c=d")
    for path in paths:
        for _ in range(5):
            rules.explain(f"https://a.example/{path}")
    return len(rules.group) + sum(map(len, rules.sitemaps))


def sitemap(body: bytes) -> int:
    return sum(len(entry.lastmod) + 1 for entry in parse_sitemap(body, URL).entries)


def pdf(body: bytes) -> int:
    found = parse_pdf(body, max_seconds=1.0)
    return len(found.markdown) + len(found.title) + len(found.problem)


def text(body: bytes) -> int:
    """The first line is the charset that the server named."""
    charset, _, rest = body.partition(b"\n")
    found = decode_text(rest, charset.decode("latin-1"))
    return len(plain_markdown(found, "text/plain")) + len(plain_markdown(found, "application/json"))


def crawled_text(body: bytes) -> int:
    """As `text`, by the way that a crawl reads its pages."""
    charset, _, rest = body.partition(b"\n")
    reader = PageReader(plan_of(SiteSpec(url=URL), fetchers=1, concurrency=1))
    reading = reader.reading_of(Body(0, URL, rest, "text/plain", charset.decode("latin-1"), ""))
    return len(reading.data)


def sniffed(body: bytes) -> int:
    """The first line is the Content-Type."""
    content_type, _, rest = body.partition(b"\n")
    name = content_type.decode("latin-1")
    return len(sniff(rest, name) + sniff(rest) + (charset_of(name) or ""))


def headers(body: bytes) -> int:
    _, found = parse_headers(body.splitlines(keepends=True))
    retry_after(Fetched(URL, headers=found), time.time())
    return sum(len(name) + len(value) for name, value in found.items())


def url(body: bytes) -> int:
    href = body.decode("utf-8", "surrogateescape")
    found = canonical(href, TRIM_ALL, URL)
    several = canonical_links(URL, [href, *href.split("\n")[:1000]], TRIM_ALL)
    joined = join(URL, href)
    locate(joined)
    locate(href)
    for each in (found, *several[:10]):
        if each is not None:
            assert canonical(each, TRIM_ALL) is not None
            url_key(each), host_of(each), origin_of(each)
    return len(found or "")


def _compressed(encoding: str) -> Reader:
    def read(body: bytes) -> int:
        # What is inflated is bounded by the limit of a body, not by the size of the input.
        decoded, _ = decode(body, encoding, MAX_BODY)
        cut, _ = decode(body, encoding, 500 << 10, cut=True)
        assert len(decoded) <= MAX_BODY
        assert len(cut) <= 500 << 10
        return 0

    return read


READERS: dict[str, Reader] = {
    "page-markdown": _page("markdown", facts=True),
    "page-full": _page("full"),
    "page-text": _page("text"),
    "page-none": _page("none", facts=True),
    "page-fields": fields,
    "robots": robots,
    "sitemap": sitemap,
    "pdf": pdf,
    "text": text,
    "crawled-text": crawled_text,
    "sniff": sniffed,
    "headers": headers,
    "url": url,
    "gzip": _compressed("gzip"),
    "deflate": _compressed("deflate"),
    "br": _compressed("br"),
    "zstd": _compressed("zstd"),
    "layers": _compressed("gzip, br, gzip"),
}
HTML_READERS = ("page-markdown", "page-full", "page-text", "page-none", "page-fields")

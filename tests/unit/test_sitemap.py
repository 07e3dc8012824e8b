"""Sitemaps and feeds: every format, broken ones, hostile ones."""

import gzip
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silkline.model.url import UrlRules
from silkline.parse.sitemap import SitemapEntry, parse_sitemap

URL = "https://a.example/sitemap.xml"
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def read(text, **more):
    return parse_sitemap(text if isinstance(text, bytes) else text.encode(), URL, **more)


def locs(text, **more):
    return [entry.url for entry in read(text, **more).entries]


def urlset(*paths):
    return (
        HEAD
        + f"<urlset {NS}>"
        + "".join(f"<url><loc>https://a.example{path}</loc></url>" for path in paths)
        + "</urlset>"
    )


def test_a_url_set():
    found = read(
        HEAD + f"<urlset {NS}><url><loc> https://a.example/1?a=1&amp;b=2\n</loc><lastmod>2026-01-02</lastmod>"
        "<changefreq>daily</changefreq><priority>0.8</priority></url>"
        "<url><priority>7</priority><loc><![CDATA[https://a.example/2]]></loc></url><url><lastmod>x</lastmod></url></urlset>"
    )
    assert found.kind == "urlset"
    assert found.entries == [
        SitemapEntry("https://a.example/1?a=1&b=2", "2026-01-02", 0.8),
        SitemapEntry("https://a.example/2", "", 1.0),
    ]
    assert not found.truncated
    assert found.problem == ""


def test_an_index():
    found = read(
        f"<sitemapindex {NS}><sitemap><loc>https://a.example/s1.xml.gz</loc><lastmod>2026</lastmod></sitemap></sitemapindex>"
    )
    assert (found.kind, found.entries) == ("index", [SitemapEntry("https://a.example/s1.xml.gz", "2026")])


def test_images_and_videos_of_a_page_are_no_pages():
    found = locs(
        f"<urlset {NS}><url><image:image><image:loc>https://a.example/i.png</image:loc></image:image>"
        "<loc>https://a.example/page</loc><xhtml:link rel='alternate' href='https://a.example/de'/></url></urlset>"
    )
    assert found == ["https://a.example/page"]


def test_a_prefix_for_the_whole_document():
    assert locs("<sm:urlset xmlns:sm='x'><sm:url><sm:loc>https://a.example/p</sm:loc></sm:url></sm:urlset>") == [
        "https://a.example/p"
    ]


def test_a_plain_list():
    found = read("\ufeffhttps://a.example/1\r\n  https://a.example/2 \n\n# words\nhttps://a b\nftp://a.example/3\n")
    assert (found.kind, [entry.url for entry in found.entries]) == (
        "text",
        ["https://a.example/1", "https://a.example/2"],
    )


def test_rss():
    found = read(
        HEAD + "<rss version='2.0'><channel><link>https://a.example/</link><item><title>T</title>"
        "<link>https://a.example/one</link><guid isPermaLink='false'>77</guid><pubDate>Mon, 5 Jan 2026</pubDate></item>"
        "<item><guid>https://a.example/two</guid></item></channel></rss>"
    )
    assert found.kind == "feed"
    assert found.entries == [
        SitemapEntry("https://a.example/one", "Mon, 5 Jan 2026"),
        SitemapEntry("https://a.example/two"),
    ]


def test_atom():
    found = read(
        "<feed xmlns='http://www.w3.org/2005/Atom'><link href='https://a.example/'/><entry>"
        "<link rel='self' href='https://a.example/self'/><link href='/one'/><id>tag:x</id><updated>2026-02-03</updated>"
        "</entry></feed>"
    )
    assert found.entries == [SitemapEntry("https://a.example/one", "2026-02-03")]


def test_rdf():
    found = locs(
        "<rdf:RDF xmlns:rdf='r' xmlns='http://purl.org/rss/1.0/'><item rdf:about='https://a.example/1'>"
        "<title>x</title></item></rdf:RDF>"
    )
    assert found == ["https://a.example/1"]


def test_rules_and_canonical_spelling_apply():
    text = "https://A.example:443/x?utm_source=1#y\nhttps://me:secret@a.example/z"
    assert locs(text, rules=UrlRules(drop_tracking=True)) == ["https://a.example/x", "https://a.example/z"]


def test_gzip_also_in_several_members():
    plain = urlset("/1", "/2").encode()
    assert locs(gzip.compress(plain)) == ["https://a.example/1", "https://a.example/2"]
    assert locs(gzip.compress(plain[:50]) + gzip.compress(plain[50:])) == ["https://a.example/1", "https://a.example/2"]


def test_broken_gzip_gives_what_came_before():
    packed = gzip.compress(urlset(*[f"/{number}" for number in range(5000)]).encode())
    found = read(packed[: len(packed) // 2])
    assert 100 < len(found.entries) < 5000
    assert found.problem == "gzip: ends early"
    assert read(b"\x1f\x8b" + b"nonsense").problem.startswith("gzip")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\n\n" + urlset("/1"), ["/1"]),
        (urlset("/1?a=1&b=2"), ["/1?a=1&b=2"]),
        (urlset("/1", "/caf&eacute;", "/3"), ["/1", "/caf&eacute;", "/3"]),
        (urlset("/1", "/a\x08b", "/3"), ["/1", "/ab", "/3"]),
        (urlset("/1", "/2")[:-20], ["/1"]),
        (urlset("/1", "/2").replace("</urlset>", "<oops></urlset>"), ["/1", "/2"]),
        (urlset("/1") + "<html>", ["/1"]),
    ],
)
def test_broken_xml_gives_what_can_be_read(text, expected):
    assert locs(text) == ["https://a.example" + path for path in expected]


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1", "windows-1252"])
def test_other_encodings(encoding):
    text = urlset("/ä").replace("UTF-8", encoding)
    assert locs(text.encode(encoding)) == ["https://a.example/%C3%A4"]


def test_latin_1_that_claims_to_be_utf_8():
    assert locs(urlset("/ä").encode("latin-1")) == ["https://a.example/%C3%A4"]


@pytest.mark.parametrize(
    "declared",
    [
        '<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">',
        '<!ENTITY a SYSTEM "file:///etc/passwd">',
        '<!ENTITY % a SYSTEM "http://a.example/x.dtd">',
    ],
)
def test_entities_are_refused(declared):
    found = read(f"<!DOCTYPE urlset [{declared}]><urlset><url><loc>https://a.example/&a;</loc></url></urlset>")
    assert found.entries == []
    assert found.problem == "declares entities"


@pytest.mark.parametrize(
    "body", [b"", b"<html><body>Not found</body></html>", b"words only", b"\x89PNG\r\n\x1a\n\x00", b"<"]
)
def test_what_is_no_sitemap(body):
    found = read(body)
    assert (found.kind, found.entries) == ("unknown", [])


def test_entries_are_bounded():
    paths = [f"/{number}" for number in range(30)]
    for text in (urlset(*paths), "\n".join("https://a.example" + path for path in paths)):
        found = read(text, max_entries=20)
        assert len(found.entries) == 20
        assert found.truncated
        assert not read(text, max_entries=30).truncated


def test_bytes_are_bounded_before_and_after_gzip():
    text = urlset(*[f"/{number}" for number in range(100)]).encode()
    for body in (text, gzip.compress(text)):
        found = read(body, max_bytes=2000)
        assert 0 < len(found.entries) < 60
        assert found.truncated


def test_a_gzip_bomb_stays_small():
    bomb = gzip.compress(b"<urlset>" + b" " * 200_000_000, 9)
    tracemalloc.start()
    found = read(bomb, max_bytes=1_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.truncated
    assert peak < 20_000_000


@pytest.mark.parametrize(
    "body",
    [
        b"<urlset>" + b"<url>" * 200_000,
        b"<urlset><url><loc>" + b"x" * 5_000_000,
        b"<urlset><url><loc>https://a.example/" + b"x" * 1_000_000 + b"</loc></url></urlset>",
        b"<![CDATA[" * 100_000,
        b"<!--" * 100_000,
        b"<urlset " + b"a='b' " * 10_000 + b">",
        b"&" * 1_000_000,
    ],
    ids=lambda body: repr(body[:20]),
)
def test_hostile_documents_end(body):
    assert read(body).entries == []


PIECES = st.sampled_from(
    ["<urlset>", "<url>", "<loc>", "https://a.example/x", "</loc>", "</url>", "</urlset>", "&", "<item>"]
)


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.lists(PIECES, max_size=20).map(lambda parts: "".join(parts).encode()), st.binary(max_size=100)))
def test_any_bytes_give_an_answer(body):
    for entry in read(body).entries:
        assert entry.url.startswith(("http://", "https://"))

"""The inputs that once ended a whole crawl, each as large as it was then: read within limits, in a child process."""

import gzip
from collections.abc import Iterator

import pytest

from silkline.model.page import Wanted
from silkline.parse import charsets
from silkline.parse.charsets import decoded, encoding_of
from silkline.parse.html import parse_page
from silkline.parse.sitemap import parse_sitemap
from tests.fuzz.limited_child import LimitedChild
from tests.fuzz.pdf_bombs import one_page, packed
from tests.fuzz.readers import READERS

URL = "https://a.example/"
TABLE = b"<table>" + (b"<tr>" + b"<td colspan=50 rowspan=50>x" * 20) * 950 + b"</table>"
AGENTS = b"".join(b"user-agent: agent-%d\n" % number for number in range(15_000))
RULES = b"".join(b"allow:/%d\n" % number for number in range(32_000))


@pytest.fixture(scope="module")
def child() -> Iterator[LimitedChild]:
    with LimitedChild(READERS) as child:
        yield child


@pytest.mark.parametrize(
    ("reader", "body"),
    [
        pytest.param("robots", (AGENTS + RULES)[: 700 << 10], id="agents and rules"),
        pytest.param("robots", AGENTS[:150_000] + b"user-agent:*\n" + RULES, id="agents, then ours"),
        pytest.param("page-markdown", TABLE, id="table"),
        pytest.param("page-full", TABLE, id="table in full"),
        pytest.param("page-text", TABLE, id="table as text"),
        pytest.param("text", b"punycode\n" + b"a" * 2_000_000 + b"-99", id="punycode"),
        pytest.param("crawled-text", b"punycode\n" + b"a" * 2_000_000 + b"-99", id="punycode in a crawl"),
        pytest.param("crawled-text", b"punycode\n" + b"a9" * 1_000_000, id="punycode digits in a crawl"),
        pytest.param("sitemap", gzip.compress(b"", mtime=0) * 160_000, id="gzip members"),
        pytest.param("pdf", one_page(packed(b"BT /F1 9 Tf " + b"(w) Tj " * 600_000 + b"ET")), id="PDF stream"),
        pytest.param("pdf", one_page(packed(b"q Q " * 2_000_000)), id="PDF operators"),
        pytest.param("page-markdown", b"".join(b"<html a%d=1>" % n for n in range(20_000)), id="attributes of html"),
        pytest.param(
            "page-full",
            b"<base href='/" + b"b" * 8000 + b"/'>" + b"<a href=x>y</a>" * 5_000,
            id="links with a long base",
        ),
        pytest.param("page-text", b"<table><tr>" + b"<td>x" * 9_000 + b"<tr><td>a<td>b" * 9_000, id="one wide row"),
    ],
)
def test_what_ended_crawls_is_read_within_limits(reader: str, body: bytes, child: LimitedChild) -> None:
    assert child.measure(reader, body).faults(len(body)) == []


def test_a_table_that_spans_too_much_becomes_text() -> None:
    page = parse_page(TABLE + b"<p>after it", URL, Wanted(content="full"))
    assert page.markdown.count("x") == 19_000
    assert "|" not in page.markdown
    assert "after it" in page.markdown


def test_the_cells_of_all_tables_are_counted_together() -> None:
    table = b"<table><tr>" + b"<td colspan=50>x" * 20 + b"<tr><td rowspan=50>a<td>b</table>"
    page = parse_page(table * 200, URL, Wanted(content="full"))
    assert page.markdown.count("|") < 150_000
    assert page.markdown.count("a") >= 200


def test_a_cell_that_reaches_into_the_next_row_moves_no_other() -> None:
    table = b"<table><tr><th>a<th>b<tr><td>1<td rowspan=2>2<tr><td>3<tr><td>4<td>5</table>"
    page = parse_page(table, URL, Wanted(content="full"))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.markdown.splitlines()]
    assert rows == [["a", "b"], ["---", "---"], ["1", "2"], ["3", ""], ["4", "5"]]


@pytest.mark.parametrize("digits", ["9" * 5_000, "0" * 5_000, "00002", "-1", "", "²", "2.5"])
def test_any_number_may_stand_in_a_span(digits: str) -> None:
    page = parse_page(
        f"<table><tr><td>a<td colspan='{digits}'>b<tr><td>c<td>d</table>".encode(), URL, Wanted(content="full")
    )
    assert all(letter in page.markdown for letter in "abcd")


# Charsets.


@pytest.mark.parametrize(
    ("label", "encoding"),
    [
        ("utf8", "utf-8"),
        (" Latin1\n", "windows-1252"),
        ("ISO_8859-1:1987", "windows-1252"),
        ("ansi_x3.4-1968", "windows-1252"),
        ("Shift-JIS", "shift_jis"),
        ("gb_2312-80", "gbk"),
        ("utf-16", "utf-16le"),
        ("iso-2022-kr", "replacement"),
        *((name, None) for name in ("punycode", "idna", "utf-7", "unicode_escape", "raw_unicode_escape", "utf-32")),
        *(
            (name, None)
            for name in ("base64", "zip", "zlib", "bz2", "hex", "uu", "quopri", "rot13", "undefined", "mbcs")
        ),
        *((name, None) for name in ("", "utf-8\0", "x" * 100_000, "\uff55tf-8", "../os", "cp037", "utf_8_sig")),
    ],
)
def test_only_the_labels_of_the_web_are_known(label: str, encoding: str | None) -> None:
    assert encoding_of(label) == encoding


def test_every_encoding_of_the_table_can_be_decoded() -> None:
    assert len(set(charsets._ENCODINGS.values())) == 40
    assert len(charsets._ENCODINGS) == 228
    for name in set(charsets._ENCODINGS.values()) - {"utf-16le", "utf-16be", "replacement"}:
        assert charsets.decoded_as(b"abc", name) == "abc"


def test_labels_that_nobody_knows_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    import encodings

    known = set(encodings._cache)  # type: ignore[attr-defined]
    for number in range(100):
        assert decoded(b"plain", f"nonsense-{number}") == "plain"
        parse_page(b"<p>plain", URL, charset=f"nonsense-{number}")
        parse_sitemap(b'<?xml version="1.0" encoding="nonsense-%d"?><urlset/>' % number, URL)
    assert not [name for name in set(encodings._cache) - known if "nonsense" in name]  # type: ignore[attr-defined]


# Sitemaps.


def test_a_sitemap_in_an_old_charset_is_read() -> None:
    body = '<?xml version="1.0" encoding="windows-1251"?><urlset><url><loc>/привет</loc></url></urlset>'.encode(
        "cp1251"
    )
    assert [entry.url for entry in parse_sitemap(body, URL).entries] == [
        "https://a.example/%D0%BF%D1%80%D0%B8%D0%B2%D0%B5%D1%82"
    ]


def test_a_sitemap_of_many_members_is_whole_up_to_a_limit() -> None:
    line = gzip.compress(b"https://a.example/x\n")
    assert len(parse_sitemap(line * 900, URL).entries) == 900
    more = parse_sitemap(line * 1_500, URL)
    assert (len(more.entries), more.problem) == (1_000, "gzip: too many members")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"<urlset>" + b"<a>" * 1_000, "nests too deeply"),
        (b"<urlset>" + b"<url><a/></url>" * 800_000, "has too many elements"),
        (b"<urlset><url a='" + b"x" * 3_000_000 + b"'/>", "has a tag of more than a megabyte"),
        (b"<!DOCTYPE urlset [<!ATTLIST url a CDATA 'x'>]><urlset/>", "declares entities"),
    ],
)
def test_what_no_honest_sitemap_has_is_refused(body: bytes, problem: str) -> None:
    assert parse_sitemap(body, URL).problem == problem

"""Facts of a page: links, title, robots, languages, structured data, charset."""

import msgspec
import pytest

from silkline.model.page import Link, Page, RobotsDirectives, Wanted
from silkline.model.url import UrlRules
from silkline.parse.html import parse_page

URL = "https://a.example/dir/page?q=1"
FACTS = Wanted(facts=True)


def page(markup, wanted=FACTS, **more):
    body = markup if isinstance(markup, bytes) else markup.encode()
    return parse_page(body, URL, wanted, **more)


def urls(markup, **more):
    return [link.url for link in page(markup, **more).links]


def test_links_come_with_rel_and_text_in_order():
    found = page('<a href="b" rel="nofollow ugc"> One\n <b>two</b></a><a href="/c#d">x</a><a name=y>no link</a>').links
    assert found == [
        Link("https://a.example/dir/b", "a", "nofollow ugc", "One two"),
        Link("https://a.example/c", "a", "", "x"),
    ]
    assert [link.nofollow for link in found] == [True, False]


def test_what_is_no_link_to_a_page_is_left_out():
    markup = "<a href=#top>t</a><a href=mailto:a@b.c>m</a><a href=javascript:x()>j</a><a href='tel:1'>p</a><a>n</a>"
    assert urls(markup) == []


def test_a_page_may_link_to_itself():
    assert urls("<a href=''>self</a>") == [URL]


def test_areas_and_frames_are_links():
    found = page("<map><area href=/m alt=Map></map><iframe src=/f></iframe><iframe src=about:blank></iframe>").links
    assert found == [Link("https://a.example/m", "area", "", "Map"), Link("https://a.example/f", "frame")]


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ('<base href="/other/"><a href=b>', "https://a.example/other/b"),
        ('<base target=_top><base href="http://b.example/x/y"><a href=c>', "http://b.example/x/c"),
        ('<base href="/one/"><base href="/two/"><a href=b>', "https://a.example/one/b"),
        ('<a href=b><base href="/late/">', "https://a.example/late/b"),
        ('<base href="javascript:1"><a href=b>', "https://a.example/dir/b"),
        ('<base href="http://me:secret@b.example/"><a href=c>', "http://b.example/c"),
        ('<base href=""><a href=b>', "https://a.example/dir/b"),
    ],
)
def test_base_href_is_honoured(markup, expected):
    found = page(markup)
    assert [link.url for link in found.links] == [expected]
    assert "secret" not in found.base


def test_links_in_templates_are_patterns_and_no_links():
    assert urls("<template><a href='/{{url}}'>x</a></template><a href=/real>") == ["https://a.example/real"]


def test_links_in_noscript_and_svg_count():
    assert urls("<noscript><a href=/n></a></noscript><svg><a href=/s></a></svg>") == [
        "https://a.example/n",
        "https://a.example/s",
    ]


def test_rules_reach_the_links():
    wanted = Wanted(rules=UrlRules(drop_tracking=True))
    assert urls("<a href='/x?utm_source=1&a=2'>", wanted=wanted) == ["https://a.example/x?a=2"]


def test_relations_of_the_head():
    found = page(
        "<link rel=canonical href=/c><link rel='shortcut icon' href=/i><link rel=next href=?p=2>"
        "<link rel=prev href=?p=0>"
        "<link rel=alternate hreflang=de href=/de><link rel=alternate hreflang=x-default href=/x>"
        "<link rel=alternate type=application/rss+xml title=News href=/feed><link rel=stylesheet href=/s.css>"
    )
    assert [(link.kind, link.url) for link in found.links] == [
        ("canonical", "https://a.example/c"),
        ("next", "https://a.example/dir/page?p=2"),
        ("prev", "https://a.example/dir/page?p=0"),
        ("alternate", "https://a.example/de"),
        ("alternate", "https://a.example/x"),
        ("feed", "https://a.example/feed"),
    ]
    assert found.canonical == "https://a.example/c"
    assert found.hreflang == [("de", "https://a.example/de"), ("x-default", "https://a.example/x")]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("0;url=/next", (0.0, "https://a.example/next")),
        ("5; URL='http://b.example/' ", (5.0, "http://b.example/")),
        ("0;/short", (0.0, "https://a.example/short")),
        ("30", None),
        ("0;url=page?q=1", None),
        ("0;url=javascript:alert(1)", None),
        ("soon;url=/x", None),
    ],
)
def test_meta_refresh(content, expected):
    found = page(f'<meta http-equiv=Refresh content="{content}">')
    assert found.refresh == expected
    assert [link.url for link in found.links] == ([expected[1]] if expected else [])


def test_title_is_the_page_s_and_not_a_drawing_s():
    assert page("<svg><title>Drawing</title></svg><title> My\n  page </title>").title == "My page"
    assert page("<svg><title>Drawing</title></svg>").title == ""


def test_description_headings_language():
    found = page(
        "<html lang=en-GB><meta name=Description content=' What  it is '><h1>One</h1><h3>Two <i>three</i></h3>"
        "<meta property=og:description content=other>"
    )
    assert found.description == "What it is"
    assert found.language == "en-GB"
    assert found.headings == [(1, "One"), (3, "Two three")]


def test_opengraph_keeps_the_first_of_each():
    found = page(
        "<meta property=og:image content=/1><meta property=og:image content=/2><meta name=twitter:card content=big>"
    )
    assert found.opengraph == {"og:image": "/1", "twitter:card": "big"}
    assert found.description == ""


def test_json_ld_survives_broken_blocks_and_keeps_only_what_can_be_stored():
    found = page(
        '<script type="application/ld+json">{"@type": "Article"}</script>'
        '<script type="application/ld+json">{broken</script>'
        "<script type='Application/LD+JSON; charset=utf-8'>"
        '["line\nbreak", "a\\u0000b", "\\ud800", "\\ud83d\\ude00"]</script>'
        f'<script type="application/ld+json">{"[" * 100_000}</script>'
        '<script>{"not": "this"}</script>'
    )
    assert found.json_ld == [{"@type": "Article"}, ["line\nbreak", "ab", "?", "😀"]]


@pytest.mark.parametrize(
    ("markup", "headers", "expected"),
    [
        ("", [], RobotsDirectives()),
        ("<meta name=robots content=noindex>", [], RobotsDirectives(True, False, ("noindex",))),
        ("<meta name=ROBOTS content='NoIndex, NoFollow'>", [], RobotsDirectives(True, True, ("noindex", "nofollow"))),
        ("<meta name=robots content=none>", [], RobotsDirectives(True, True, ("none",))),
        ("<meta name=silkline content=nofollow>", [], RobotsDirectives(False, True, ("nofollow",))),
        ("<meta name=otherbot content=none>", [], RobotsDirectives()),
        (
            "<meta name=robots content=all><meta name=silkline content=none>",
            [],
            RobotsDirectives(True, True, ("all", "none")),
        ),
        ("", ["noindex"], RobotsDirectives(True, False, ("noindex",))),
        ("", ["otherbot: noindex, nofollow"], RobotsDirectives()),
        ("", ["otherbot: noindex", "silkline: nofollow"], RobotsDirectives(False, True, ("nofollow",))),
        ("", ["otherbot: noindex, Silkline: nofollow"], RobotsDirectives(False, True, ("nofollow",))),
        ("", ["unavailable_after: 1 Jan 2030"], RobotsDirectives(False, False, ("unavailable_after: 1 jan 2030",))),
        ("", ["max-snippet: 20, none"], RobotsDirectives(True, True, ("max-snippet: 20", "none"))),
        ("<meta name=robots content=noindex>", ["nofollow"], RobotsDirectives(True, True, ("noindex", "nofollow"))),
    ],
)  # fmt: skip
def test_robots_directives(markup, headers, expected):
    assert page(markup, robots_tags=headers).robots == expected


@pytest.mark.parametrize(
    ("body", "charset", "title", "named"),
    [
        ("<title>ä</title>".encode(), None, "ä", "utf-8"),
        ("<title>ä</title>".encode("latin-1"), None, "ä", "windows-1252"),
        ("<meta charset=iso-8859-2><title>ł</title>".encode("iso-8859-2"), None, "ł", "iso-8859-2"),
        ("<meta charset=utf-8><title>ä</title>".encode("latin-1"), "latin1", "ä", "windows-1252"),
        ("<meta charset=latin1><title>ä</title>".encode(), "utf-8", "ä", "utf-8"),
        ("\ufeff<meta charset=latin1><title>ä</title>".encode(), "latin1", "ä", "utf-8"),
        ("<title>ä</title>".encode("utf-16"), "utf-8", "ä", "utf-16le"),
        ("<html><title>ä</title>".encode("utf-16le"), None, "ä", "utf-16le"),
        ("<html><title>ä</title>".encode("utf-16be"), None, "ä", "utf-16be"),
        ("<meta charset=utf-8><title>ä</title>".encode(), "no-such-charset", "ä", "utf-8"),
        ("<title>日本</title>".encode("shift_jis"), "Shift_JIS", "日本", "shift_jis"),
    ],
)
def test_charset_by_the_rules_of_the_web(body, charset, title, named):
    found = page(body, charset=charset)
    assert (found.title, found.charset) == (title, named)


def test_hashes_look_at_what_a_reader_sees():
    first = page("<p>Words</p><script>token=1</script>", wanted=Wanted(simhash=True))
    second = page("<p>Words</p><script>token=2</script><style>b{}</style>", wanted=Wanted(simhash=True))
    third = page("<p>Other words</p>", wanted=Wanted(simhash=True))
    assert first.content_hash == second.content_hash != third.content_hash
    assert first.simhash == second.simhash
    assert -(2**63) <= first.content_hash < 2**63


def test_links_only_costs_no_facts():
    found = page("<html lang=en><title>T</title><h1>H</h1><a href=/x>x</a><p>text", wanted=Wanted())
    assert (found.title, len(found.links)) == ("T", 1)
    assert (found.headings, found.language, found.markdown, found.text, found.simhash) == ([], "", "", "", None)


def test_a_page_is_a_value_that_travels():
    found = page("<title>T</title><a href=/x rel=me>x</a><meta name=robots content=none>")
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=Page) == found
    with pytest.raises(AttributeError):
        found.title = "other"

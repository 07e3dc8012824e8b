"""Pages that no honest site serves: bounded in what they give and in what they cost."""

import tracemalloc
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from turbohtml import parse

from silkline.model.page import Content, Wanted
from silkline.parse.bomb_guard import defused
from silkline.parse.html import parse_page

URL = "https://a.example/"
EVERYTHING = Wanted(content="markdown", facts=True, simhash=True)


def strings(value):
    """Every string in a page, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from strings(key)
            yield from strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings(item)
    elif hasattr(value, "__struct_fields__"):
        for name in value.__struct_fields__:
            yield from strings(getattr(value, name))


def assert_storable(page):
    for text in strings(page):
        assert "\x00" not in text
        text.encode()


@pytest.mark.parametrize(
    "body",
    [
        b"<div>" * 100_000 + b"<a href=/x>deep</a>",
        b"<ul><li>" * 50_000 + b"text",
        b"<table><tr><td>" * 30_000 + b"text",
        b"<blockquote>" * 50_000 + b"quote",
        b"<a href=/x><table><td>" * 20_000 + b"text" * 1000,
        b"<h1><div>" * 20_000 + b"text" * 1000,
        b"<p title='" + b"x" * 5_000_000 + b"'>text",
        b"<a href='/" + b"x" * 5_000_000 + b"'>text</a>",
        b"<title>" + b"x" * 5_000_000,
        b"<!--" * 500_000,
        b"<" * 1_000_000,
        b"&" * 1_000_000,
        b"<p>a\x00b</p><a href='/\x00x' title='\x00'>l\x00k</a><title>\x00t</title>",
        b"&#0;&#xD800;&#xDFFF;&#x110000;<title>&#0;&#xD800;</title>",
        b"\xed\xa0\x80<p>\xff\xfe\xfd",
        b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 200,
        b"",
        b"\x00" * 10_000,
        "<p>ä</p>".encode("utf-16le") * 1000,
        b"<script type=application/ld+json>" + b'{"a":' * 50_000 + b"</script>",
        b"<meta name=robots content='" + b"noindex," * 200_000 + b"'>",
        b"<meta name=x content=y>" * 50_000,
    ],
    ids=lambda body: repr(body[:24]),
)
def test_nothing_breaks_the_parser(body):
    for content in get_args(Content):
        assert_storable(parse_page(body, URL, Wanted(content=content, facts=True, simhash=True)))


def test_the_texts_of_links_are_capped_together():
    body = "".join(f'<a href="/{n}" rel="nofollow">{"x" * 990}</a>' for n in range(5_000))
    page = parse_page(body.encode(), URL, EVERYTHING)
    assert len(page.links) == 5_000
    assert sum(len(link.text) + len(link.rel) for link in page.links) < 1_100_000
    assert page.links[0].text == "x" * 990
    assert all(link.nofollow for link in page.links)
    assert "links" in page.truncated


def test_links_are_capped():
    body = b"".join(b"<a href=/%d>x</a>" % number for number in range(100_000)) + b"<title>late</title>"
    page = parse_page(body, URL, EVERYTHING)
    assert len(page.links) == EVERYTHING.max_links
    assert "links" in page.truncated


def test_relations_and_frames_share_the_cap():
    body = b"<link rel=next href=/n>" * 300 + b"<iframe src=/f></iframe>" * 300
    page = parse_page(body, URL, Wanted(max_links=400))
    assert len(page.links) == 400
    assert page.truncated == ("links",)


def test_an_address_too_long_to_be_true_is_left_out():
    page = parse_page(b"<a href='/" + b"x" * 20_000 + b"'>long</a><a href=/short>x</a>", URL)
    assert [link.url for link in page.links] == ["https://a.example/short"]
    assert page.truncated == ("links",)


def test_a_body_is_capped():
    page = parse_page(b"<a href=/1>x</a>" + b" " * 1000 + b"<a href=/2>x</a>", URL, Wanted(max_body=500))
    assert [link.url for link in page.links] == ["https://a.example/1"]
    assert page.truncated == ("body",)


@pytest.mark.parametrize("content", ["text", "markdown", "full"])
def test_content_is_capped(content):
    page = parse_page(b"<p>" + b"word " * 10_000, URL, Wanted(content=content, max_content=1000))
    assert len(page.markdown) + len(page.text) == 1000
    assert page.truncated == ("content",)


def test_formatting_that_multiplies_is_taken_out():
    """Without the guard this page of 600 KB takes several gigabytes."""
    opened = b"".join(b"<b id=%d>" % number for number in range(500))
    body = b"<p>" + opened + b"</p><p>word" * 60_000 + b"<a href=/x>y</a>"
    page = parse_page(body, URL, EVERYTHING)
    assert "formatting" in page.truncated
    assert [link.url for link in page.links] == ["https://a.example/x"]
    assert page.markdown.count("word") == 60_000


@pytest.mark.parametrize("trick", [b"</b>" * 1000, b"</i>" * 1000, b"<!-- </b> -->" * 1000])
def test_end_tags_that_close_nothing_do_not_fool_the_guard(trick):
    opened = b"".join(b"<b id=%d>" % number for number in range(500))
    body = trick + b"<p>" + opened + b"</i>" * 1000 + b"</p><p>word" * 60_000
    assert defused(body) is not body


@pytest.mark.parametrize(
    "after",
    [
        b"<!--</b>-->",
        b"<br title='</b>'>",
        b"<span title='>x</b>'>",
        b"<table><td></b></table>",
        b"<select></b></select>",
        b"<template></b></template>",
        b"<textarea></b></textarea>",
    ],
)
def test_end_tags_that_the_parser_ignores_do_not_fool_the_guard(after):
    """Without the guard these 45 KB become two million elements."""
    opened = b"".join(b"<b id=%d>%s" % (number, after) for number in range(500))
    body = b"<p>" + opened + b"</p><p>x" * 4_000
    assert defused(body) is not body
    assert "formatting" in parse_page(body, URL, EVERYTHING).truncated


@pytest.mark.parametrize("tag", [b"<b title='>x</b>%d'>", b"<b title='>x</b>" + b"y" * 500 + b"%d'>", b"<<b>b id=%d>"])
def test_no_spelling_of_a_tag_fools_the_guard(tag):
    body = b"<p>" + b"".join(tag % number for number in range(500)) + b"</p><p>x" * 4_000
    assert len(parse(defused(body)).find_all("b")) < 100_000


@pytest.mark.parametrize("piece", [b"<b a='", b"<b><span a='", b"<b id=1><span>", b"<i "])
def test_the_guard_itself_is_bounded(piece):
    assert_storable(parse_page(piece * (1_000_000 // len(piece)) + b"'>x", URL))


def test_ordinary_formatting_is_left_alone():
    body = b"<p>" + b"some <b>bold</b> and <i class=x>italic</i> <code>text</code> " * 5000
    assert defused(body) is body
    code = b"".join(b"<p><code class=c%d><span class=pre>x</span> <a href=/>y</a></code>" % n for n in range(5000))
    assert defused(code) is code
    nested = b"<p><b class=x>bold <i>and <u>more</u></i></b></p>" * 5000
    assert defused(nested) is nested


def test_honest_pages_keep_the_attributes_of_their_root():
    """One `<html>` for each old browser, in comments, and a large `<body>`."""
    old = b"".join(b"<!--[if IE %d]><html class=ie%d><![endif]-->" % (version, version) for version in range(6, 10))
    body = old + b"<html lang=en><body data-state='" + b"x" * 50_000 + b"'><p>Words"
    assert defused(body) is body
    assert parse_page(body, URL, EVERYTHING).language == "en"


@pytest.mark.parametrize("piece", [b"<a href=/x>y</a>", b"<b>", b"x<br>"])
def test_memory_for_millions_of_tags_is_bounded(piece):
    body = piece * (9_000_000 // len(piece))
    tracemalloc.start()
    page = parse_page(body, URL, Wanted(facts=True))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "body" in page.truncated
    assert peak < 150_000_000


TAGS = st.sampled_from(
    ["<a href=/x>", "</a>", "<p>", "</p>", "<table>", "<td>", "</table>", "<b>", "</b>", "<h1>", "<title>"]
)
ODD = st.sampled_from(
    ["<base href=//x>", "<template>", "<svg>", "<math>", "<select>", "<script>", "</script>", "<!--", "&#0;", "\x00"]
)
MARKUP = st.lists(st.one_of(TAGS, ODD, st.text(max_size=8)), max_size=40).map("".join)


@settings(max_examples=300, deadline=None)
@given(st.one_of(MARKUP.map(lambda text: text.encode("utf-8", "surrogatepass")), st.binary(max_size=200)))
def test_any_bytes_give_a_storable_page(body):
    for content in get_args(Content):
        assert_storable(parse_page(body, URL, Wanted(content=content, facts=True, simhash=True)))


BOMB = "<p>" + "".join(f"<b id={number}>" for number in range(500)) + "</p><p>x" * 4_000


@pytest.mark.parametrize(
    ("body", "charset"),
    [
        (BOMB.encode(), None),
        (BOMB.encode("utf-16"), None),
        (BOMB.encode("utf-16"), "utf-8"),
        (b"\xfe\xff" + BOMB.encode("utf-16be"), None),
        (BOMB.encode("utf-16le"), None),
        (BOMB.encode("utf-16be"), "utf-16be"),
        (BOMB.replace("<b", "<\x1b(Bb").encode(), "iso-2022-jp"),
        (b"<meta charset=iso-2022-jp>" + BOMB.replace("<b", "<\x1b(Bb").encode(), None),
        (b"<meta charset=csISO2022JP>" + BOMB.replace("<b", "<\x1b(Jb").encode(), ""),
    ],
)
def test_a_bomb_is_seen_in_every_encoding(body, charset):
    page = parse_page(body, URL, charset=charset)
    assert "formatting" in page.truncated


def test_an_escape_sequence_makes_no_tag_where_the_standard_sees_no_meta_tag():
    body = b"<title>t</title>" + b" " * 2000 + b"<meta charset=iso-2022-jp><\x1b(Ba href=/x>x</a>"
    page = parse_page(body, URL)
    assert page.links == []
    assert page.charset == "utf-8"

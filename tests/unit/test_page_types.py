"""The content of each sort of page, and the causes for which pages lost their text before."""

import pytest

from silkline.model.page import Wanted
from silkline.parse.html import parse_page

URL = "https://shop.example/things/all"
MENU = "<nav><ul>" + "".join(f"<li><a href=/m{n}>Menu entry {n}</a>" for n in range(12)) + "</ul></nav>"
FOOTER = "<footer><p>Imprint and privacy of the company</p><a href=/imprint>Imprint</a></footer>"
SENTENCE = "The old mill stands at the end of the valley, where the river turns to the north and the road ends."


def parsed(inside, content="markdown", **more):
    markup = f"<title>Page</title><body>{MENU}<main>{inside}</main>{FOOTER}"
    return parse_page(markup.encode(), URL, Wanted(content=content, **more))


def test_a_shelf_keeps_all_its_cards():
    cards = "".join(
        f"<li class=product-card><a href=/p{n}><h3>Kettle model {n}</h3></a><span class=price>{n}.99 EUR</span></li>"
        for n in range(24)
    )
    page = parsed(f"<h1>Kettles</h1><ul class=product-list>{cards}</ul>")
    for n in range(24):
        assert f"Kettle model {n}" in page.markdown
    assert "Imprint" not in page.markdown
    assert page.extraction.rule == "cards"


def test_a_thread_keeps_all_its_posts():
    posts = "".join(
        f"<article class=post><div class=post-body><p>Answer {n}: {SENTENCE} {SENTENCE}</p></div></article>"
        for n in range(9)
    )
    page = parsed(f"<h1>How do I get to the mill?</h1><div class=thread>{posts}</div>")
    for n in range(9):
        assert f"Answer {n}:" in page.markdown
    assert page.extraction.rule == "posts"


def test_sections_of_a_service_stay_together():
    sections = "".join(f"<section><h2>Service {n}</h2><p>{SENTENCE} Service {n}.</p></section>" for n in range(6))
    page = parsed(f"<h1>What we do</h1>{sections}")
    for n in range(6):
        assert f"## Service {n}" in page.markdown


def test_a_reference_keeps_everything_between_its_navigation():
    entries = "".join(
        f"<dt><code>option_{n}</code></dt><dd><p>{SENTENCE} Option {n}.</p><pre>set option_{n} on</pre></dd>"
        for n in range(8)
    )
    page = parsed(f"<div class=section id=options><h1>Options</h1><dl>{entries}</dl></div>")
    for n in range(8):
        assert f"option_{n}" in page.markdown
        assert f"Option {n}." in page.markdown
        assert f"set option_{n} on" in page.markdown


def test_one_text_is_a_text():
    page = parsed(f"<article><h1>The mill</h1>{''.join(f'<p>{SENTENCE} {SENTENCE}</p>' for _ in range(8))}</article>")
    assert page.extraction.rule == "text"
    assert page.markdown.count("The old mill stands") == 16
    assert page.extraction.confidence > 0.8


@pytest.mark.parametrize(
    "ident", ["SQL-FOR-UPDATE-SHARE", "cookie-objects", "search-path", "related-functions", "menu-bar"]
)
def test_ids_that_a_generator_made_from_headings_drop_nothing(ident):
    sections = "".join(
        f"<section id={name}><h2>{name}</h2><p>{SENTENCE} In {name}.</p></section>" for name in ("first", ident, "last")
    )
    assert f"In {ident}." in parsed(f"<h1>Reference</h1>{sections}").markdown


def test_an_index_of_links_is_its_own_content():
    entries = "".join(f"<li><a href=/f{n}>function_{n}()</a>, <a href=/m{n}>in module {n}</a></li>" for n in range(40))
    page = parsed(f"<div class=body><h1>Index</h1><ul>{entries}</ul></div>")
    for n in range(40):
        assert f"function\\_{n}()" in page.markdown or f"function_{n}()" in page.markdown


def test_parts_before_and_after_the_longest_part_stay():
    parts = "".join(
        f"<div class=refsect1><h2>{name}</h2><p>{SENTENCE * size}</p></div>"
        for name, size in (("Synopsis", 1), ("Description", 30), ("Examples", 2))
    )
    page = parsed(f"<div class=refentry><h1>SELECT</h1>{parts}</div>")
    assert "## Synopsis" in page.markdown
    assert "## Examples" in page.markdown


@pytest.mark.parametrize(
    "markup",
    ["<p>Two words</p>", "<div class=footer>All of it is here</div>", "<nav>Only a menu</nav>", "text in the body"],
)
def test_a_page_with_text_is_never_empty(markup):
    page = parse_page(markup.encode(), URL, Wanted(content="markdown"))
    assert page.markdown
    assert page.extraction.words > 0


def test_elements_without_text_leave_nothing_behind():
    text = f"<p>{SENTENCE} {SENTENCE}</p>" * 4
    empty = "<h2></h2><ul><li></li><li><a href=/x></a></li></ul><blockquote></blockquote>"
    box = "<div><img src=/a.png alt=Box></div>"
    page = parsed(f"<h1>The mill</h1>{text}{empty}{box}<figure><img src=/b.png alt=Wheel></figure>{text}")
    assert not [line for line in page.markdown.splitlines() if line.strip(" #->") == "" and line.strip()]
    assert "Box" not in page.markdown
    assert "![Wheel](https://shop.example/b.png)" in page.markdown


def test_what_was_kept_is_said():
    page = parsed(f"<article><h1>The mill</h1>{''.join(f'<p>{SENTENCE}</p>' for _ in range(5))}</article>")
    said = page.extraction
    assert said.words == len(page.markdown.replace("# ", "").split())
    assert 0.6 < said.kept < 1
    assert parsed("<p>Everything</p>", content="full").extraction.rule == "full"
    assert parsed("<p>Everything</p>", content="none").extraction is None


def test_the_user_keeps_and_drops():
    inside = (
        f"<div class=a><p>First {SENTENCE}</p><p class=x>Second</p></div><div class=b><p>Third {SENTENCE}</p></div>"
    )
    page = parsed(inside, keep=(".a", "p"), drop=(".x",))
    assert "First" in page.markdown
    assert "Second" not in page.markdown
    assert page.markdown.count("Third") == 1
    assert page.extraction.rule == "keep"


def test_links_and_images_on_demand():
    inside = f"<p>{SENTENCE} See <a href=/x title=Tip>the map</a> <img src=/i.png alt=Mill> and {SENTENCE}</p>" * 4
    assert "[the map](https://shop.example/x)" in parsed(inside).markdown
    plain = parsed(inside, links_in_text=False, images=False).markdown
    assert "See the map" in plain
    assert "](" not in plain
    assert '<a href="https://shop.example/x">the map</a>' in parsed(inside, content="html").html
    assert '"Tip"' in parsed(inside, link_titles=True).markdown


def test_headings_without_permalinks_and_menus():
    inside = "<h1>Mills<a class=headerlink href=#mills>\u00b6</a></h1><p>Text.</p><nav><h2>Menu</h2></nav>"
    page = parse_page(inside.encode(), URL, Wanted(content="markdown", outline=True))
    assert page.headings == [(1, "Mills")]


def test_other_formats_of_a_page_are_no_links():
    markup = (
        "<link rel=alternate type=application/json+oembed href=/oembed>"
        "<link rel=alternate type=application/rss+xml href=/f>"
        "<link rel=alternate hreflang=de href=/de>"
    )
    kinds = {link.url.rpartition("/")[2]: link.kind for link in parse_page(markup.encode(), URL).links}
    assert kinds == {"f": "feed", "de": "alternate"}

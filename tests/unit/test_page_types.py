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


PRODUCT = (
    '<script type=application/ld+json>{"@context": "https://schema.org", "@graph": [{"@type": "BreadcrumbList"}, '
    '{"@type": ["Product"], "name": "Kettle Nova", "description": "Boils <b>two litres</b> of water in a minute.", '
    '"offers": [{"@type": "Offer", "price": "1299.00", "priceCurrency": "EUR"}]}]}</script>'
)


def test_a_product_gets_from_json_ld_what_the_page_does_not_show():
    page = parsed(f"{PRODUCT}<p>{SENTENCE}</p>")
    assert page.markdown.startswith("# Kettle Nova\n")
    assert "EUR 1299.00" in page.markdown
    assert "Boils two litres of water in a minute." in page.markdown
    assert "Boils two litres" in parsed(f"{PRODUCT}<p>{SENTENCE}</p>", content="text").text
    assert "Boils two litres" in parsed(f"{PRODUCT}<p>{SENTENCE}</p>", content="html").html


def test_a_product_that_the_page_shows_is_not_written_twice():
    shown = "<h1>Kettle Nova</h1><p class=price>1.299 \u20ac</p><p>It boils two litres of water in a minute.</p>"
    page = parsed(f"{PRODUCT}{shown}<p>{SENTENCE}</p>")
    assert page.markdown.count("Kettle Nova") == 1
    assert "1299" not in page.markdown
    assert page.markdown.count("two litres") == 1


def test_the_full_page_and_what_the_user_keeps_have_no_json_ld():
    assert "Boils" not in parsed(f"{PRODUCT}<p>{SENTENCE}</p>", content="full").markdown
    assert "Boils" not in parsed(f"{PRODUCT}<p>{SENTENCE}</p>", keep=("p",)).markdown


def test_a_list_of_products_is_no_product():
    several = PRODUCT.replace('"@graph": [', '"@graph": [{"@type": "Product", "name": "Other"}, ')
    assert "Boils" not in parsed(f"{several}<p>{SENTENCE}</p>").markdown


@pytest.mark.parametrize(
    "block",
    ["{", "[]", "null", '{"@type": "Product"}', '{"@type": "Product", "name": 5, "offers": "no", "description": []}'],
)
def test_odd_json_ld_changes_nothing(block):
    page = parsed(f"<script type=application/ld+json>{block}</script><h1>The mill</h1><p>{SENTENCE}</p>")
    assert page.markdown.endswith(SENTENCE)


def test_one_card_of_many_is_not_the_page():
    first = f"<li class=card><h3><a href=/p0>Film 0</a></h3><p>{SENTENCE * 4}</p></li>"
    cards = "".join(f"<li class=card><h3><a href=/p{n}>Film {n}</a></h3><p>Short.</p></li>" for n in range(1, 25))
    page = parsed(f"<h1>Best films</h1><ul>{first}{cards}</ul>")
    for n in range(25):
        assert f"Film {n}]" in page.markdown


def test_a_table_of_contents_that_is_the_page():
    parts = "".join(
        f"<li><a href=/c{n}>Chapter {n}</a><ul>"
        + "".join(f"<li><a href=/c{n}s{m}>Section {n}.{m}</a></li>" for m in range(5))
        + "</ul></li>"
        for n in range(8)
    )
    page = parsed(f"<div class=body><h1>Contents</h1><ul class=toctree>{parts}</ul></div>")
    for n in range(8):
        assert f"Chapter {n}" in page.markdown
        assert f"Section {n}.4" in page.markdown


@pytest.mark.parametrize("name", ["share-price", "cookie-recipes", "searching", "related-work", "menu-design"])
def test_classes_that_contain_a_suspicious_word(name):
    sections = "".join(
        f"<div class='section {each}'><h2>{each}</h2><p>{SENTENCE} In {each}. {SENTENCE}</p></div>"
        for each in ("first", name, "last")
    )
    assert f"In {name}." in parsed(f"<h1>Chapters</h1>{sections}").markdown


def test_no_bullet_loses_its_text():
    bullets = "".join(f"<li><a href=/x{n}>Item {n}</a> is in room {n}.</li>" for n in range(6))
    page = parsed(f"<h1>Mill</h1><p>{SENTENCE * 3}</p><ul>{bullets}</ul><p>{SENTENCE * 3}</p>")
    for n in range(6):
        assert f"- [Item {n}](https://shop.example/x{n}) is in room {n}." in page.markdown


def test_feeds_and_other_forms_are_not_followed():
    from silkline.crawl.plan_from_spec import plan_of
    from silkline.crawl.reading import Body, PageReader
    from silkline.model.spec import SiteSpec

    markup = (
        "<link rel=alternate type='application/rss+xml; charset=utf-8' href=/comments/feed>"
        "<link rel=alternate type=application/atom+xml href=/atom><link rel='alternate feed' href=/feed>"
        "<link rel=alternate type=application/json href=/wp-json><link rel=alternate type=text/xml+oembed href=/oembed>"
        "<link rel='alternate stylesheet' href=/dark.css><link rel=alternate type=application/pdf href=/page.pdf>"
        "<link rel=alternate hreflang=de href=/de><link rel=alternate media=handheld href=/m>"
        "<link rel=alternate type=text/html href=/print><a href=/named-feed.xml>Feed</a>"
    )
    plan = plan_of(SiteSpec(url=URL), fetchers=1, concurrency=1)
    reading = PageReader(plan).reading_of(Body(1, URL, markup.encode(), "text/html", "", ""))
    assert sorted(link.rpartition("/")[2] for link in reading.links) == ["de", "m", "named-feed.xml", "print"]


def test_a_page_with_very_little_text_keeps_all_of_it():
    markup = b"<nav><a href=/>Home</a></nav><h1>Built by a script</h1><a href=/found>further</a>"
    page = parse_page(markup, URL, Wanted(content="markdown"))
    assert page.markdown.split("\n\n") == ["# Built by a script", "[further](https://shop.example/found)"]


def test_comments_that_are_the_page_are_kept():
    def comment(n, inside=""):
        return (
            f"<li class=comments_subtree><div class=comment><div class=byline>Reader {n}, 1 year ago</div>"
            f"<div class=comment_text><p>Comment {n}: {SENTENCE}</p></div></div><ol class=comments>{inside}</ol></li>"
        )

    answers = comment(0) + "".join(comment(n, comment(n + 10)) for n in range(1, 6))
    page = parsed(f"<ol class=comments><li class=comments_subtree><ol class=comments>{answers}</ol></li></ol>")
    for n in (*range(6), *range(11, 16)):
        assert f"Comment {n}:" in page.markdown


def test_a_kept_list_that_is_not_looked_into_is_not_empty():
    entries = "".join(f"<li class=comments_subtree>Line {n}</li>" for n in range(5))
    page = parse_page(f"<body><ol>{entries}</ol>".encode(), URL, Wanted(content="markdown"))
    for n in range(5):
        assert f"Line {n}" in page.markdown

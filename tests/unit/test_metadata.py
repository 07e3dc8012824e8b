"""What is told of a page that has no text until its scripts have run."""

import json

import pytest

from silkline.model.page import Wanted
from silkline.parse.html import parse_page

URL = "https://forum.example/t/1"
POST = "I want to repair the wheel of an old mill. Which wood lasts longest in the water, and who sells it in planks?"
ANSWER = "Larch and oak last for decades, if they are always under water. Ask a mill that still saws its own planks."
HEAD = (
    '<title>The wheel - Mills</title><meta property=og:title content="The wheel">'
    f'<meta name=description content="{POST}">'
)
EMPTY = "<body><div id=app></div><script src=/app.js></script>"


def parsed(markup, content="markdown", **more):
    return parse_page(markup.encode(), URL, Wanted(content=content, **more))


def json_ld(data):
    return f"<script type=application/ld+json>{json.dumps(data)}</script>"


def test_an_empty_page_says_what_its_description_says():
    page = parsed(HEAD + EMPTY, scripts=True)
    assert page.markdown == f"# The wheel\n\n{POST}"
    assert page.extraction.rule == "metadata"
    assert page.extraction.confidence == 0.1
    assert page.extraction.words == len(page.markdown.split()) - 1
    assert page.needs_scripts


@pytest.mark.parametrize(("content", "attribute"), [("text", "text"), ("html", "html")])
def test_text_and_html_say_the_same(content, attribute):
    assert POST in getattr(parsed(HEAD + EMPTY, content), attribute)


def test_the_longest_description_counts():
    longer = f'<meta property=og:description content="{POST} {ANSWER}">'
    assert ANSWER in parsed(HEAD + longer + EMPTY).markdown


def test_the_little_that_a_page_has_is_kept():
    page = parsed(f"{HEAD}<body><a href=/donate>Donate now</a><script src=/app.js></script>")
    assert POST in page.markdown
    assert "[Donate now](https://forum.example/donate)" in page.markdown
    assert page.extraction.rule == "metadata"


def test_a_page_with_text_is_not_replaced():
    page = parsed(f"{HEAD}<body><h1>Planks</h1><p>{ANSWER}</p><script src=/app.js></script>")
    assert page.markdown == f"# Planks\n\n{ANSWER}"
    assert page.extraction.rule != "metadata"


def test_a_description_that_says_little_more_than_the_page_is_left_out():
    page = parsed(
        '<meta name=description content="Our mill, its wheel and its planks"><body><p>The mill is closed today.'
    )
    assert page.markdown == "The mill is closed today."


@pytest.mark.parametrize("more", [{"content": "full"}, {"keep": ("#app",)}])
def test_nothing_is_told_if_the_user_chose_the_content(more):
    assert POST not in parsed(HEAD + EMPTY, **more).markdown


def test_the_posts_of_json_ld():
    thread = {
        "@type": "QAPage",
        "mainEntity": {"@type": "Question", "name": "Which wood?", "text": POST, "acceptedAnswer": [{"text": ANSWER}]},
    }
    page = parsed(HEAD + json_ld(thread) + EMPTY)
    assert page.markdown == f"# The wheel\n\n## Which wood?\n\n{POST}\n\n{ANSWER}"
    assert page.extraction.confidence == 0.2


def test_the_names_of_a_list_in_json_ld():
    entries = [{"@type": "ListItem", "item": {"@type": "Product", "name": f"Oak plank {n}"}} for n in range(8)]
    listed = parsed(json_ld({"@graph": [{"@type": "ItemList", "itemListElement": entries}]}) + EMPTY).markdown
    assert [line for line in listed.split("\n") if line] == [f"Oak plank {n}" for n in range(8)]


def test_the_site_and_its_menus_are_not_the_page():
    around = [
        {"@type": "Organization", "name": "Mills of the valley", "description": ANSWER},
        {"@type": ["WebSite"], "name": "Mills", "description": ANSWER},
        {"@type": "BreadcrumbList", "itemListElement": [{"item": {"name": "Home"}}]},
    ]
    assert parsed(json_ld(around) + EMPTY).markdown == ""


def test_markup_in_metadata_is_no_markup_of_the_page():
    page = parsed(
        json_ld({"@type": "Article", "headline": "<b>Wheels</b>", "description": f"<p>{POST}<p>{ANSWER}"}) + EMPTY
    )
    assert f"{POST}\n\n{ANSWER}" in page.markdown
    assert "<" not in page.markdown


@pytest.mark.parametrize("data", ["{", "[]", "5", '{"name": 5, "text": [], "comment": {"comment": null}}'])
def test_odd_json_ld_tells_nothing(data):
    assert parsed(f"<script type=application/ld+json>{data}</script>{EMPTY}").markdown == ""


def test_hostile_json_ld_tells_a_bounded_part():
    many = {"@graph": [{"text": f"{n} words"} for n in range(9_000)]}
    assert parsed(json_ld(many) + EMPTY).extraction.words < 2_000
    lines = {"text": "a\n" * 10_000, "comment": [{"text": f"{n}\n" * 3_000} for n in range(9)]}
    assert parsed(json_ld(lines) + EMPTY).extraction.words < 2_000
    deep = json.dumps({"text": POST})
    for _ in range(300):
        deep = '{"comment": ' + deep + "}"
    assert POST in parsed(f"<script type=application/ld+json>{deep}</script>{EMPTY}").markdown

"""A quotation of the page itself is left out; every other quotation stays."""

import pytest
from turbohtml import parse

from silkline.model.page import Wanted
from silkline.parse import quotations
from silkline.parse.html import parse_page
from silkline.parse.main_content import Choice
from silkline.parse.outline import Outline
from silkline.parse.quotations import drop_quotations

FIRST = "My kettle makes a loud noise like a train when the water starts to boil, and nobody in the house can sleep."
SECOND = "Then there is chalk in it. Fill it with vinegar and water, wait for an hour, and rinse it three times."
THIRD = "It was the lid and not the chalk: I have bent it back, and the noise has gone since Tuesday evening."


def thread(*posts, content="markdown"):
    inside = "".join(f"<article class=post><div class=post-body>{post}</div></article>" for post in posts)
    page = parse_page(
        f"<title>Kettles</title><body><main><h1>A loud kettle</h1>{inside}</main>".encode(),
        "https://forum.example/t/1",
        Wanted(content=content),
    )
    return page.markdown or page.text or page.html


def quoted(text, who="Ida said:"):
    return f"<blockquote><cite>{who}</cite><p>{text}</p></blockquote>"


@pytest.mark.parametrize("content", ["markdown", "text", "html"])
def test_a_quotation_of_a_post_above_is_left_out(content):
    found = thread(
        f"<p>{FIRST}</p>", f"{quoted(FIRST)}<p>{SECOND}</p>", f"{quoted(SECOND)}<p>{THIRD}</p>", content=content
    )
    assert [found.count(text) for text in (FIRST, SECOND, THIRD)] == [1, 1, 1]
    assert "Ida said" not in found


def test_a_part_of_a_post_in_other_marks_is_a_quotation_too():
    part = "Fill it with <b>vinegar</b> and water, wait for an hour &hellip;"
    found = thread(f"<p>{FIRST}</p>", f"<p>{SECOND}</p>", f"{quoted(part)}<p>{THIRD}</p>")
    assert found.count("vinegar") == 1


def test_a_quotation_of_a_quotation_is_left_out_with_it():
    both = f"<blockquote><p>{FIRST}</p></blockquote><p>{SECOND}</p>"
    found = thread(f"<p>{FIRST}</p>", f"<p>{SECOND}</p>", f"{quoted(both)}<p>{THIRD}</p>")
    assert [found.count(text) for text in (FIRST, SECOND, THIRD)] == [1, 1, 1]


def test_a_quotation_of_what_is_not_on_the_page_stays():
    found = thread(f"<p>{FIRST}</p>", f"{quoted('The manual says that no vinegar may be used in it.')}<p>{THIRD}</p>")
    assert "> The manual says that no vinegar may be used in it." in found
    assert "Ida said" in found


def test_a_quotation_of_a_post_on_another_page_stays_once():
    found = thread(f"{quoted(FIRST)}<p>{SECOND}</p>", f"{quoted(FIRST)}<p>{THIRD}</p>")
    assert found.count(FIRST) == 1


def test_a_quotation_with_much_that_is_new_stays():
    found = thread(f"<p>{FIRST}</p>", f"{quoted(FIRST + ' ' + THIRD)}<p>{SECOND}</p>")
    assert found.count(FIRST) == 2


def test_a_short_quotation_stays():
    body = parse(f"<body><p>{FIRST}</p><blockquote>a loud noise</blockquote><p>{SECOND}</p>").find("body")
    outline = Outline(body, lambda tag, names, element: 0.0)
    drop_quotations(Choice(outline, {group.index for group in outline.groups}, 1.0, "text"))
    assert [each.text for each in body.find_all("blockquote")] == ["a loud noise"]


def test_the_full_page_keeps_every_quotation():
    found = thread(f"<p>{FIRST}</p>", f"{quoted(FIRST)}<p>{SECOND}</p>", content="full")
    assert found.count(FIRST) == 2


def words(number, name):
    return " ".join(f"{name}{each}" for each in range(number))


@pytest.mark.parametrize("earlier", [0, 90, 1_000])
def test_a_quotation_that_is_too_long_to_compare_stays(monkeypatch, earlier):
    monkeypatch.setattr(quotations, "_MOST_WORDS", 500)
    said = words(max(60, 500 - earlier), "said")
    long = f"{said} {words(600, 'new')}"
    found = thread(f"<p>{FIRST} {said}</p>", f"{quoted(words(earlier, 'more'))}{quoted(long)}<p>{THIRD}</p>")
    assert found.count("said1 ") == 2
    assert "new599" in found


def test_a_quotation_after_one_that_is_too_long_is_compared(monkeypatch):
    monkeypatch.setattr(quotations, "_MOST_WORDS", 500)
    found = thread(f"<p>{FIRST}</p>", f"{quoted(words(600, 'new'))}{quoted(FIRST)}<p>{THIRD}</p>")
    assert found.count(FIRST) == 1
    assert "new599" in found


@pytest.mark.parametrize("many", ["<blockquote>a word " * 20_000, f"<blockquote>{FIRST}</blockquote>" * 20_000])
def test_many_quotations_take_little_time(many):
    assert thread(f"<p>{FIRST}</p>{many}")

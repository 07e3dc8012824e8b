"""The note of `silkline URL` when much of a page was left out."""

import pytest

from silkline.cli.content_options import little_kept
from silkline.model.page import Wanted
from silkline.parse.html import parse_page


@pytest.mark.parametrize(
    "data",
    [
        {"kept": 0.5, "words": 10, "rule": "text"},
        {"kept": 0.1, "words": 10, "rule": "keep"},
        {"title": "a PDF"},
    ],
)
def test_nothing_is_said_without_need(data):
    assert little_kept(data) == ""


def test_the_note_says_how_to_get_the_rest():
    menu = "".join(f"<li><a href=/{n}>Entry number {n} of a long menu</a>" for n in range(60))
    markup = f"<body><nav><ul>{menu}</ul></nav><main><h1>Mills</h1><p>{'The mill stands by the river. ' * 12}</main>"
    said = parse_page(markup.encode(), "https://a.example/", Wanted(content="markdown")).extraction
    note = little_kept({"kept": said.kept, "words": said.words, "rule": said.rule})
    assert note.startswith(f"kept {said.words} words, {said.kept:.0%} of the visible text")
    assert "--content full" in note
    assert "--keep CSS" in note

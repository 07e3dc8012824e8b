"""Text in a list, but in no item of it, is part of the plain text."""

import pytest

from silkline.model.page import Wanted
from silkline.parse.html import parse_page

ARTICLE = " ".join(f"Sentence {number} of an article about rivers." for number in range(60))


def text_of(body: str) -> str:
    return parse_page(f"<title>t</title><p>Intro.</p>{body}".encode(), "http://x/", Wanted(content="text")).text


@pytest.mark.parametrize("tag", ["ul", "ol", "menu"])
@pytest.mark.parametrize("inner", ["{}", "<p>{}</p>", "<div>{}</div>", "<b>{}</b>", "<ul>{}</ul>", "<!-- no -->{}"])
def test_nothing_in_a_list_is_lost(tag: str, inner: str) -> None:
    found = text_of(f"<{tag}>{inner.format(ARTICLE)}</{tag}>")
    assert " ".join(ARTICLE.split()) in " ".join(found.split())


def test_the_order_and_the_items_stay() -> None:
    found = text_of(
        "<ul>before <b>bold</b><li>one</li><ul><li>two</li></ul><!-- c --> <p>three</p>four<li>five</li>after</ul>"
    )
    words = " ".join(found.replace("*", " ").split())
    assert words == "Intro. before bold one two three four five after"
    assert "three" not in next(line for line in found.splitlines() if "two" in line)


def test_a_list_with_items_only_is_as_before() -> None:
    html = "<ul>\n <li>one</li>\n <li>two</li>\n</ul>"
    assert [line.strip() for line in text_of(html).splitlines() if line.strip()][-2:] == ["* one", "* two"]

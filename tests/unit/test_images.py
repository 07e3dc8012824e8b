"""Images in the main content: what is shown once, said once, and leads to the larger image."""

import pytest

from silkline.model.page import Wanted
from silkline.parse.html import parse_page

URL = "https://shop.example/p"
TEXT = "<p>" + "The stove is made of cast iron, and it burns for nine hours with one load of wood. " * 4 + "</p>"


def markdown(inside, content="markdown", **more):
    page = f"<article><h1>A stove</h1>{TEXT}{inside}{TEXT}</article>"
    return parse_page(page.encode(), URL, Wanted(content=content, **more)).markdown


def images(text):
    return [line for line in text.splitlines() if "![" in line]


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        # A picture that is shown again, as in a carousel.
        (
            "<p><img src=/1.png alt=Front></p><p><img src=/1.png alt=Front></p>",
            ["![Front](https://shop.example/1.png)"],
        ),
        # Different pictures with the same text.
        (
            "<p><img src=/1.png alt='Cast iron'></p><p><img src=/2.png alt=' Cast  iron '></p>",
            ["![Cast iron](https://shop.example/1.png)", "![](https://shop.example/2.png)"],
        ),
        # A text that stands on the page anyway, and one that only begins like it.
        (
            "<p><img src=/1.png alt='A stove'></p><p><img src=/2.png alt='A stove in snow'></p>",
            ["![](https://shop.example/1.png)", "![A stove in snow](https://shop.example/2.png)"],
        ),
        # Names of files.
        (
            "<p><img src=/1.png alt=IMG_2067.JPEG></p><p><img src=/2.png alt='The file door.png'></p>",
            ["![](https://shop.example/1.png)", "![The file door.png](https://shop.example/2.png)"],
        ),
        # Titles, which mostly repeat the text.
        ("<p><img src=/1.png alt=Door title=Door></p>", ["![Door](https://shop.example/1.png)"]),
        # A link to the larger form.
        (
            "<p><a href=/large.JPG?v=1><img src=/s.jpg alt=Door></a></p>",
            ["![Door](https://shop.example/large.JPG?v=1)"],
        ),
    ],
)
def test_what_says_nothing_new_is_left_out(inside, expected):
    assert images(markdown(inside)) == expected


def test_a_link_to_a_picture_with_words_stays_a_link():
    found = markdown("<p>Before it is cast, see <a href=/plan.png><img src=/s.png alt=Plan> The plan</a> of it.</p>")
    assert "![Plan](https://shop.example/s.png) The plan](https://shop.example/plan.png)" in found


def test_the_whole_page_keeps_what_its_author_wrote():
    twice = "<p><img src=/1.png alt='A stove' title=Tip></p>" * 2
    assert images(markdown(twice, "full")) == ['![A stove](https://shop.example/1.png "Tip")'] * 2


def test_titles_of_images_stay_if_they_are_wanted():
    assert '"Tip"' in markdown("<p><img src=/1.png alt=Door title=Tip></p>", link_titles=True)

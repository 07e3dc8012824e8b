"""Which elements of a page are one group, and into which of them the outline looks."""

import pytest
from turbohtml import parse

from silkline.parse.neighbours import NEAR_NAMES, neighbours
from silkline.parse.outline import Outline

SENTENCE = "The old mill stands at the end of the valley, where the river turns to the north and the road ends."
REST = f"<p>{SENTENCE}</p>" * 30


def outline(inside, weight):
    body = parse(f"<body><div class=odd>{inside}</div><main>{REST}</main>".encode()).find("body")
    return Outline(body, lambda tag, names, element: weight if names == "odd" else 0.0)


def odd(found):
    return next(group for group in found.groups if group.weight)


@pytest.mark.parametrize(
    ("inside", "weight", "closed"),
    [
        (f"<p>{SENTENCE * 4}</p>", -1.5, False),
        (f"<ul><li><div><p>{SENTENCE * 4}</p></div></li></ul>", -2.5, False),
        (f"<p>{SENTENCE * 4}</p>", -3.5, True),
        (f"<p>{SENTENCE}</p>", -1.5, True),
        (f"<div>{SENTENCE * 4}</div>", -1.5, True),
        ("<ul><li><a href=/a>Mills</a></li></ul>", -1.5, True),
        ("<ul><li><a href=/a>Mills</a></li></ul>", -0.5, False),
        ("<h1>Mills</h1>", -3.5, False),
        (f"<div>{SENTENCE * 40}</div>", -3.5, False),
    ],
)
def test_long_paragraphs_are_looked_at_unless_the_names_are_very_bad(inside, weight, closed):
    assert odd(outline(inside, weight)).closed is closed


def numbers(found, likely):
    leaves = [group for group in found.groups if group.own]
    rows = neighbours(found.groups, leaves, likely)
    return [dict(zip(NEAR_NAMES, row, strict=True)) for row in rows]


def test_the_second_look_sees_the_groups_around():
    body = parse(b"<body><div><h2>abcd</h2><p>abcdefghij<p>abcdefghij</div><aside>abcdef</aside>").find("body")
    heading, text, side = numbers(Outline(body, lambda *_: 0.0), [0.5, 1.0, 0.1])
    assert (heading["before"], heading["behind"], heading["behind_that"]) == (0.0, 1.0, 0.1)
    assert (side["before"], side["before_that"], side["behind"]) == (1.0, 0.5, 0.0)
    assert heading["in_parent"] == 1.0
    assert text["in_parent"] == 0.5
    assert side["in_parent"] == pytest.approx((0.5 * 4 + 20) / 24)
    assert side["of_page"] == pytest.approx((0.5 * 4 + 20 + 0.1 * 6) / 30)
    assert [each["better"] for each in (text, heading, side)] == pytest.approx([0.0, 20 / 30, 24 / 30])
    assert [each["best_before"] for each in (heading, text, side)] == [0.5, 1.0, 1.0]
    assert [each["best_behind"] for each in (heading, text, side)] == [1.0, 1.0, 0.1]


def test_a_group_that_is_alone_in_its_parent_is_judged_by_itself():
    body = parse(b"<body><div><p>abcdefghij</div><aside>abcdef</aside>").find("body")
    text, _ = numbers(Outline(body, lambda *_: 0.0), [0.7, 0.2])
    assert text["in_parent"] == 0.7
    assert text["in_outer"] == pytest.approx(0.2)


COMMENTS = "".join(f"<li class=odd><div>Number {n}</div><div><p>{SENTENCE * 2}</p></div></li>" for n in range(9))


def test_small_elements_that_are_much_of_the_page_together_are_looked_at():
    body = parse(f"<body><ol>{COMMENTS}</ol><p>{SENTENCE}</p>".encode()).find("body")
    group = odd(found := Outline(body, lambda tag, names, element: -1.5 if names == "odd" else 0.0))
    assert not group.closed
    assert len(group.elements) == 9
    assert group.own == 0
    paragraphs = next(each for each in found.groups if each.tag == "p")
    assert len(paragraphs.elements) == 9
    assert found.groups[0].text == len(SENTENCE) * 19 + sum(len(f"Number {n}") for n in range(9))


def test_small_elements_that_are_a_small_part_stay_closed():
    body = parse(f"<body><ol>{COMMENTS}</ol>{REST * 4}".encode()).find("body")
    assert odd(Outline(body, lambda tag, names, element: -1.5 if names == "odd" else 0.0)).closed


def boxes(depth):
    inside = boxes(depth - 1) if depth else f"<p>{SENTENCE * 9}</p>"
    return f"<div class=box{depth}>Small</div><div class=box{depth}>{inside}</div>"


def test_only_a_few_closed_groups_are_looked_at_again():
    body = parse(f"<body>{boxes(9)}".encode()).find("body")
    found = Outline(body, lambda tag, names, element: -1.5 if names else 0.0)
    assert [group.closed for group in found.groups if group.weight] == [False] * 4 + [True]
    assert found.groups[0].text == len(SENTENCE) * 9 + len("Small") * 10

"""The numbers by which the page model judges a group of the outline: size, links, names, place, and what is around it.

The training script (`benchmarks/train_page_model.py`) calls the same functions, so both see the same numbers.
"""

import re
from collections.abc import Mapping
from math import log2
from typing import Final, NamedTuple

from turbohtml import Element

from silkline.parse.letters import words
from silkline.parse.outline import Group

# fmt: off
NAMES: Final = (
    "names", "names_least", "names_most", "names_leaf", "names_own", "names_parent", "names_outer", "mean",
    "own_share", "own", "own_link", "count", "start", "span", "after", "headline_share", "of_parent", "parent_share",
    "parent_link", "parent_prose", "parent_mean", "per_parent", "outer_share", "outer_link", "outer_prose",
    "section_share", "section_link", "section_prose", "section_start", "wide_link", "wide_start", "repeated_mean",
    "repeated_prose", "repeated_share", "repeated_count", "previous_mean", "previous_link", "next_mean", "next_link",
)
PAGE_NAMES: Final = (
    "text", "link", "prose_share", "prose", "blocks", "largest", "paragraphs", "path", "slashes",
)
# fmt: on

LONGEST_NAMES: Final = 300
_PATH: Final = re.compile(r"[a-z]+://[^/?#]*([^?#]*)")
_HIDDEN: Final = re.compile(r"display: ?none|visibility: ?hidden")
_REPEATED: Final = 3
_MOST: Final = 400.0

Weights = Mapping[str, float]


def tokens(tag: str, names: str, element: Element) -> list[str]:
    """The words by which the model knows an element: its tag, the words of its classes, its id, its role."""
    return words(names[:LONGEST_NAMES]) + signs(tag, element)


def signs(tag: str, element: Element) -> list[str]:
    """The tokens of an element without those of its classes."""
    found = [f"<{tag}>"]
    attr = element.attr
    ident = attr("id")
    # A generator makes longer ids from headings: `cookie-objects` says nothing about cookies.
    if ident is not None and len(inside := words(ident[:LONGEST_NAMES])) == 1:
        found.append(inside[0])
    role = attr("role")
    if role is not None:
        found.append("role=" + role[:20])
    style = attr("style")
    if style is not None and _HIDDEN.search(style):
        found.append("@invisible")
    if attr("hidden") is not None:
        found.append("@hidden")
    elif attr("aria-hidden") == "true":
        found.append("@aria-hidden")
    return found


class Rows(NamedTuple):
    """The groups with text of their own, the numbers of each, and the numbers of the page."""

    leaves: list[Group]
    rows: list[tuple[float, ...]]
    page: tuple[float, ...]


# What a group inherits from the groups around it: the weights of their names (sum, least, most), the share
# of the smallest group that it has in common with the headline, and three ancestors: the outermost with less than half
# of the text of the page (its section), the outermost with less than nine tenths, and the outermost that has at least
# three elements in one parent (a card, a row, a post).
_Inherited = tuple[
    float,
    float,
    float,
    float,
    tuple[float, float, float, float] | None,
    tuple[float, float] | None,
    tuple[float, float, float, float] | None,
]


def describe(groups: list[Group], url: str, tags: Weights) -> Rows:
    """The numbers of all groups that have text of their own; `tags` has the weights of their tags."""
    body = groups[0]
    total = max(body.text, 1)
    head = _headline(groups)
    around: set[int] = set()
    above = head
    while above is not None:
        around.add(above.index)
        above = above.up
    largest = 0.0
    paragraphs = 0
    weight = body.weight
    root: _Inherited = (weight, min(weight, 0.0), max(weight, 0.0), float(head is not None), None, None, None)
    inherited = [root] * len(groups)
    leaves = [body] if body.own else []
    for group in groups:
        text, up = group.text, group.up
        if up is None:
            continue
        names, least, most, share, section, wide, repeated = inherited[up.index]
        count = len(group.elements)
        if group.tag == "p":
            paragraphs += count
        weight = group.weight
        if weight < least:
            least = weight
        elif weight > most:
            most = weight
        if group.index in around:
            share = text / total
        if section is None:
            if wide is None and text < 0.9 * total:
                wide = (group.link / text, group.start / total)
            if text < 0.5 * total:
                section = (text / total, group.link / text, group.prose / text, group.start / total)
        if repeated is None and count >= _REPEATED and count >= _REPEATED * len(up.elements):
            repeated = (
                log2(1 + text / count),
                group.prose / text,
                text / total,
                log2(count),
            )
            largest = max(largest, count / len(up.elements) * min(text / count, _MOST))
        inherited[group.index] = (names + weight, least, most, share, section, wide, repeated)
        if group.own:
            leaves.append(group)
    rows = _rows(leaves, inherited, total, head.index if head is not None else len(groups), tags)
    path = (found[1] if (found := _PATH.match(url)) else "")[:1000]
    page = (
        log2(1 + total),
        body.link / total,
        body.prose / total,
        log2(1 + body.prose),
        log2(1 + body.blocks),
        log2(1 + largest),
        log2(1 + paragraphs),
        float(len(path)),  # Python compares two floats faster than a float with an integer
        float(path.count("/")),
    )
    return Rows(leaves, rows, page)


def _rows(
    leaves: list[Group], inherited: list[_Inherited], total: int, first: int, tags: Weights
) -> list[tuple[float, ...]]:
    body = (1.0, 0.0, 0.0, 0.0)
    nothing = (0.0, 0.0)
    near = [(log2(1 + group.own / len(group.elements)), group.own_link / group.own) for group in leaves]
    previous = [nothing, *near]
    following = [*near[1:], nothing]
    rows: list[tuple[float, ...]] = []
    for group, (mean, link), before, behind in zip(leaves, near, previous, following, strict=False):
        own = group.own
        up = group.up or group
        outer = up.up or up
        names, least, most, share, section, wide, repeated = inherited[group.index]
        count, beside, text = len(group.elements), len(up.elements), up.text
        rows.append(
            (
                names,
                least,
                most,
                tags.get(group.tag, 0.0),
                group.weight,
                up.weight,
                outer.weight,
                mean,
                own / total,
                log2(1 + own),
                link,
                log2(1 + count),
                group.start / total,
                (group.last - group.start) / total,
                float(group.index >= first),
                share,
                own / text,
                text / total,
                up.link / text,
                up.prose / text,
                log2(1 + text / beside),
                count / beside,
                outer.text / total,
                outer.link / outer.text,
                outer.prose / outer.text,
                *(section or body),
                *(wide or nothing),
                *(repeated or (0.0, 0.0, 0.0, 0.0)),
                *before,
                *behind,
            )
        )
    return rows


def _headline(groups: list[Group]) -> Group | None:
    second = None
    for group in groups:
        if group.tag == "h1":
            if group.own:
                return group
        elif second is None and group.tag == "h2" and group.own:
            second = group
    return second

"""The numbers of the second look at a group: how likely the groups near it and around it are content.

A group is seldom alone. A line with a date between two posts belongs to the thread, the same line in a side column
does not, and its own numbers hardly differ. So the page model first judges every group alone, and then again with what
it said about the others.
"""

from math import log2
from typing import Final

from silkline.parse.outline import Group

# fmt: off
NEAR_NAMES: Final = (
    "likely", "before", "behind", "before_that", "behind_that", "in_parent", "in_outer", "in_section", "in_repeated",
    "of_page", "expected", "better", "best_before", "best_behind",
)
# fmt: on
_REPEATED: Final = 3
_SECTION: Final = 0.5


def neighbours(
    groups: list[Group], leaves: list[Group], likely: list[float], wanted: list[bool] | None = None
) -> list[tuple[float, ...]]:
    """The numbers of each leaf from the likelihoods of all of them. Leaves that are not wanted have none."""
    good = [0.0] * len(groups)
    for group, one in zip(leaves, likely, strict=True):
        good[group.index] = one * group.own
    for group in reversed(groups):
        if group.up is not None:
            good[group.up.index] += good[group.index]
    total = max(groups[0].text, 1)
    of_page, expected = good[0] / total, log2(1 + good[0])
    inside = _inside(groups, total)
    better = _better(leaves, likely, total)
    best_before = _running_best(likely)
    best_behind = _running_best(likely[::-1])[::-1]
    padded = [0.0, 0.0, *likely, 0.0, 0.0]
    rows: list[tuple[float, ...]] = []
    for at, (group, one) in enumerate(zip(leaves, likely, strict=True)):
        if wanted is not None and not wanted[at]:
            rows.append(())
            continue
        own = group.own
        up = group.up or group
        outer = up.up or up
        section, repeated = inside[group.index]
        rows.append(
            (
                one,
                padded[at + 1],
                padded[at + 3],
                padded[at],
                padded[at + 4],
                (good[up.index] - one * own) / (up.text - own) if up.text > own else one,
                (good[outer.index] - one * own) / (outer.text - own) if outer.text > own else one,
                (good[section.index] - one * own) / (section.text - own) if section.text > own else one,
                good[repeated.index] / repeated.text,
                of_page,
                expected,
                better[at],
                best_before[at],
                best_behind[at],
            )
        )
    return rows


def _inside(groups: list[Group], total: int) -> list[tuple[Group, Group]]:
    """For each group its section and its outermost repeated group, as in `block_features`, or else the body."""
    body = groups[0]
    found = [(body, body)] * len(groups)
    for group in groups:
        up = group.up
        if up is None:
            continue
        section, repeated = found[up.index]
        if section is body and group.text < _SECTION * total:
            section = group
        count = len(group.elements)
        if repeated is body and count >= _REPEATED and count >= _REPEATED * len(up.elements):
            repeated = group
        found[group.index] = (section, repeated)
    return found


def _better(leaves: list[Group], likely: list[float], total: int) -> list[float]:
    """The share of the text of the page that is more likely to be content."""
    order = sorted(range(len(leaves)), key=likely.__getitem__, reverse=True)
    shares = [0.0] * len(leaves)
    seen = 0
    for at in order:
        shares[at] = seen / total
        seen += leaves[at].own
    return shares


def _running_best(likely: list[float]) -> list[float]:
    best, found = 0.0, []
    for one in likely:
        best = max(best, one)
        found.append(best)
    return found

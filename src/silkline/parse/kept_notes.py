"""Keeps the footnotes of the content: a note belongs to the text that refers to it, whatever it looks like."""

from typing import Final

from turbohtml import Element

from silkline.parse.footnotes import Footnotes, find_footnotes
from silkline.parse.main_content import Choice
from silkline.parse.outline import Group

_NEAR: Final = 8
"""How far above a link or a note its group is looked for."""


def keep_notes(choice: Choice, body: Element) -> Footnotes | None:
    """Adds to the choice the notes that its text refers to, and returns these footnotes."""
    footnotes = find_footnotes(body)
    if footnotes is None:
        return None
    groups = choice.outline.groups
    homes = {element: group for group in groups for element in group.elements}
    wanted: set[int] = set()
    kept = []
    for each in footnotes.references:
        text, note = _group(each.anchor, homes), _group(each.note, homes)
        if text is not None and note is not None and text.index in choice.kept:
            wanted.add(note.index)
            kept.append(each)
    wanted -= choice.kept
    if wanted:
        for group in groups:
            if group.up is not None and group.up.index in wanted:
                wanted.add(group.index)
        choice.kept.update(wanted)
    return Footnotes(kept, footnotes.back)


def _group(element: Element, homes: dict[Element, Group]) -> Group | None:
    above: object = element
    for _ in range(_NEAR):
        if not isinstance(above, Element):
            return None
        if above in homes:
            return homes[above]
        above = above.parent
    return None

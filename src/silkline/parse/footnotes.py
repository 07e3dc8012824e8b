"""Prepares footnotes for Markdown: `[^1]` in the text, and `[^1]: text` where the note is.

Every generator of pages writes footnotes in another way, but most link in both directions: the short label in the text
links to the note, and the note links back to the label. Where there is no link back, the names of the elements must say
that it is a footnote. What is not certain stays a link.
"""

import re
from collections.abc import Container, Iterable
from itertools import islice
from typing import Final, NamedTuple

from turbohtml import Document, Element, Text

from silkline.parse.definition_lists import ENTRIES, Around, mark_start, may_be_list
from silkline.parse.first_children import first_children, has_more_children
from silkline.parse.markdown_marks import note, reference
from silkline.parse.new_elements import NewElements

_LABEL: Final = re.compile(
    r"[\[(]?(?:note |fn\.? ?)?([0-9]{1,4}|[a-z]{1,3}|[*\u2020\u2021\u00a7]{1,3})[\])]?", re.IGNORECASE
)
_NAMED: Final = re.compile(r"footnote|endnote|doc-note|noteref", re.IGNORECASE)
_LONGEST_LABEL: Final = 12
_LONGEST_LABELS: Final = 60
_NEAR: Final = 6
"""How far above a link back the element of its note may be."""
_FEW: Final = 6
_NOTES: Final = frozenset({"aside", "dd", "div", "dt", "li", "p", "span", "table", "td"})
_HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_INLINE: Final = frozenset({"sup", "span", "small", "b", "cite"})
_AROUND_LABEL: Final = "[]()^.:, \n\t\u2191\u21a9\ufe0e"


class Reference(NamedTuple):
    """A link with a short label to a note."""

    anchor: Element
    label: str
    note: Element


class Footnotes(NamedTuple):
    """The references of a document to its footnotes, in order, and the links back in each note."""

    references: list[Reference]
    back: dict[Element, list[Element]]


def find_footnotes(root: Element | Document) -> Footnotes | None:
    """The footnotes of a document; None if it has none."""
    links = [(anchor, href[1:]) for anchor in root.select('a[href^="#"]') if len(href := anchor.attr("href") or "") > 1]
    labels = {anchor: found[1] for anchor, _ in links if (found := _label(anchor))}
    if not labels:
        return None
    notes = _elements(root, {target for anchor, target in links if anchor in labels})
    possible = [
        Reference(anchor, labels[anchor], notes[target])
        for anchor, target in links
        if anchor in labels and target in notes
    ]
    certain = _certain(possible, links)
    return certain if certain.references else None


def tidy_footnotes(found: Footnotes) -> None:
    """Replaces the references to footnotes and the starts of the notes by their marks."""
    around: Around = {}
    holders = NewElements(ENTRIES)
    labels: dict[Element, str] = {}
    taken: set[str] = set()
    for each in found.references:
        label = labels.get(each.note)
        if label is None:
            label = labels[each.note] = _unique(each.label, taken)
        _refer(each.anchor, label)
    for note_element, label in labels.items():
        for anchor in found.back.get(note_element, ()):
            _remove_link_back(anchor)
        _start(note_element, label, around, holders)


def _certain(possible: list[Reference], links: list[tuple[Element, str]]) -> Footnotes:
    """The references to notes that link back, or that are called footnotes."""
    homes: dict[tuple[str, Element], list[Element]] = {}
    for each in possible:
        for name in _names(each.anchor):
            anchors = homes.setdefault((name, each.note), [])
            if len(anchors) < 2:
                anchors.append(each.anchor)
    known = {each.note for each in possible}
    back: dict[Element, list[Element]] = {}
    for anchor, target in links:
        holder = _holder(anchor, known)
        if holder is not None and any(each is not anchor for each in homes.get((target, holder), ())):
            back.setdefault(holder, []).append(anchor)
    notes: set[Element] = set()
    references = []
    for each in possible:
        # A link in a note is the way back; where both links look the same, the first one is the reference.
        if _holder(each.anchor, notes) is not None or _holder(each.anchor, {each.note}) is not None:
            continue
        if each.note in back or _says_so(each):
            notes.add(each.note)
            references.append(each)
    return Footnotes(references, back)


def is_certain_label(anchor: Element) -> bool:
    """Whether a link within the page looks like a reference to a footnote. Short words are only if they are raised."""
    found = _label(anchor)
    if found is None:
        return False
    above = anchor.parent
    return not found[1].isalpha() or (isinstance(above, Element) and above.tag == "sup")


def _label(anchor: Element) -> re.Match[str] | None:
    text = anchor.text
    return _LABEL.fullmatch(text.strip()) if len(text) <= _LONGEST_LABEL else None


def _elements(root: Element | Document, wanted: set[str]) -> dict[str, Element]:
    """The elements that may be notes, by their names."""
    found: dict[str, Element] = {}
    for element in root.select("[id], a[name]"):
        name = element.attr("id") or element.attr("name") or ""
        if name in wanted and name not in found:
            block: object = element
            for _ in range(2):  # an empty anchor at the start of the note
                if isinstance(block, Element) and block.tag in ("a", "sup"):
                    block = block.parent
            if isinstance(block, Element) and block.tag in _NOTES and not _is_section(block):
                found[name] = block
    return found


def _is_section(block: Element) -> bool:
    return any(isinstance(child, Element) and child.tag in _HEADINGS for child in first_children(block, _FEW))


def _names(anchor: Element) -> Iterable[str]:
    """The names by which a note can link back to the reference."""
    around = [anchor, anchor.parent, anchor.parent.parent if anchor.parent is not None else None]
    for element in (*around, *first_children(anchor, 1)):
        if isinstance(element, Element) and (element is anchor or element.tag in _INLINE):
            yield from {name for name in (element.attr("id"), element.attr("name")) if name}


def _holder(anchor: Element, notes: Container[Element]) -> Element | None:
    """The note that contains the anchor."""
    above: object = anchor
    for _ in range(_NEAR):
        above = above.parent if isinstance(above, Element) else None
        if isinstance(above, Element) and above in notes:
            return above
    return None


def _says_so(each: Reference) -> bool:
    """Whether names say that this is a footnote: those of the link, of the note, or of what is around the note."""
    outside = each.note.parent
    around = [each.anchor, each.note, outside, outside.parent if outside is not None else None]
    return any(
        _NAMED.search(f"{(element.attr('class') or '')[:200]} {(element.attr('role') or '')[:50]}")
        for element in around
        if isinstance(element, Element)
    )


def _unique(label: str, taken: set[str]) -> str:
    plain = label.lower() if label.isascii() and label.isalnum() else str(len(taken) + 1)
    found = plain if plain not in taken else f"{plain}-{len(taken) + 1}"
    taken.add(found)
    return found


def _refer(anchor: Element, label: str) -> None:
    """Puts the reference in the place of the link, without the brackets around it."""
    around = anchor.parent
    if isinstance(around, Element) and around.tag in _INLINE and _has_only_label(around, anchor):
        around.set_text(reference(label))
    else:
        anchor.replace_with(Text(reference(label)))


def _has_only_label(around: Element, anchor: Element) -> bool:
    children = list(first_children(around, _FEW + 1))
    return len(children) <= _FEW and all(
        child is anchor or (isinstance(child, Text) and not child.data.strip(_AROUND_LABEL)) for child in children
    )


def _remove_link_back(anchor: Element) -> None:
    """Removes the link and what is left around it: brackets, an arrow, the label of the note."""
    above = anchor.parent
    anchor.extract()
    for _ in range(3):
        if not isinstance(above, Element) or above.tag not in _INLINE or has_more_children(above, _FEW):
            return
        if len(above.text) > _LONGEST_LABEL or above.text.strip(_AROUND_LABEL):
            return
        outside = above.parent
        above.extract()
        above = outside


def _start(holder: Element, label: str, around: Around, holders: NewElements) -> None:
    """Makes the note an entry of a list, which indents all its blocks, with its mark in place of the number."""
    if holder.tag == "dt":
        text = next((each for each in islice(holder.next_siblings, _FEW) if isinstance(each, Element)), None)
        if text is not None and text.tag == "dd":
            holder.extract()
            holder = text
    if holder.tag == "table":
        cells = holder.find_all("td", limit=2)
        if len(cells) == 2 and not cells[0].text.strip(_AROUND_LABEL):
            cells[0].extract()
        holder = cells[-1] if cells else holder
    elif holder.tag == "li":
        if isinstance(holder.parent, Element) and holder.parent.tag == "ol":
            holder.parent.attrs["start"] = "10"
    elif holder.tag not in ("span", "td") and may_be_list(holder, around):
        holder.tag = "li"
        holder.wrap(holders.next())
    _remove_label(holder)
    mark_start(holder, note(label))


def _remove_label(holder: Element) -> None:
    """Removes what is left of the label before the text of the note: its number, brackets and commas."""
    for child in list(first_children(holder, _FEW)):
        if isinstance(child, Element) and child.tag in _INLINE and len(child.text) <= _LONGEST_LABELS:
            if _LABEL.fullmatch(child.text.strip()) or not child.text.strip(_AROUND_LABEL):
                child.extract()
                continue
        elif isinstance(child, Text) and not child.data.strip():
            continue
        return

"""Prepares definition lists for Markdown: a term, and below it each definition with a colon and indented by four.

Markdown has no definition lists of its own. The form is the one that most extensions read. turbohtml knows lists, so a
definition becomes an entry of a list, with a mark that replaces its number.
"""

from typing import Final

from turbohtml import Document, Element, Node, Text

from silkline.parse.first_children import first_children
from silkline.parse.markdown_marks import DEFINITION
from silkline.parse.new_elements import NewElements

ENTRIES: Final = '<ol start="10"></ol>'
_FEW: Final = 4
_MAX_LISTS: Final = 8
"""Lists around a definition list. Each of them indents it, which would make hostile pages quadratic."""
_LISTS: Final = frozenset({"dl", "ol", "ul", "blockquote"})
_CELLS: Final = frozenset({"td", "th"})

Around = dict[Node, tuple[int, bool]]
"""For elements: the number of lists that they are in, themselves included, and whether they are in a table."""


def tidy_definition_lists(root: Element | Document) -> None:
    """Prepares every definition list in `root` that has terms. Tables must be tidy already."""
    around: Around = {}
    holders = NewElements(ENTRIES)
    for found in root.find_all("dl"):
        if may_be_list(found, around):
            _tidy(found, holders)


def may_be_list(found: Element, around: Around) -> bool:
    """Whether a block may become a list: it is not in a table and not in many other lists.

    `around` has what is known about the elements above blocks, so each of them is looked at once.
    """
    chain: list[Element] = []
    above: Node | None = found.parent
    while isinstance(above, Element) and above not in around:
        chain.append(above)
        above = above.parent
    lists, in_cell = around[above] if isinstance(above, Element) else (0, False)
    for element in reversed(chain):
        lists += element.tag in _LISTS
        in_cell = in_cell or element.tag in _CELLS
        around[element] = (lists, in_cell)
    return lists <= _MAX_LISTS and not in_cell


def _tidy(found: Element, holders: NewElements) -> None:
    defined = False
    for group in [found, *[each for each in found.children if isinstance(each, Element) and each.tag == "div"]]:
        holder: Element | None = None
        for entry in list(group.children):
            if not isinstance(entry, Element):
                continue
            if entry.tag == "dt":
                entry.tag = "p" if _is_plain(entry) else "div"
                defined, holder = True, None
            elif entry.tag == "dd" and defined:
                if holder is None:
                    holder = holders.next()
                    entry.wrap(holder)
                else:
                    holder.append(entry)
                entry.tag = "li"
                mark_start(entry, DEFINITION)


def _is_plain(term: Element) -> bool:
    blocks = ("p", "div", "pre", "ul")
    return not any(isinstance(child, Element) and child.tag in blocks for child in first_children(term, _FEW))


def mark_start(block: Element, mark: str) -> None:
    """Puts a mark before the text of a block: into its first paragraph, if it starts with one."""
    for child in first_children(block, _FEW):
        if isinstance(child, Text) and not child.data.strip():
            continue
        if isinstance(child, Element) and child.tag == "p":
            block = child
        break
    block.insert(0, Text(mark))

"""Marks in the text of a document that become Markdown after turbohtml has written the rest.

turbohtml escapes every sign in a text that Markdown could read, so formulas and footnotes cannot be put into the text
as they are. A mark is a character that Unicode reserves for such use. A hostile page can contain marks of its own: they
add a few characters or nothing, because each formula is written once.
"""

import re
from typing import Final

DEFINITION: Final = "\ufdd0"
"""The start of a definition, in an ordered list that starts at ten: its entries are indented by four spaces."""
_REFERENCE: Final = "\ufdd1"
_NOTE: Final = "\ufdd2"
_FORMULA: Final = "\ufdd3"
_END: Final = "\ufdd4"
_MARKS: Final = (DEFINITION, _REFERENCE, _NOTE, _FORMULA, _END)
_ANY: Final = re.compile("[\ufdd0-\ufdd4]")
_REFERENCED: Final = re.compile(f"{_REFERENCE}([A-Za-z0-9-]+){_END}")
_NUMBER: Final = re.compile(r"(?:\d+[.)]|[-*+]) \Z")
_LONGEST_NUMBER: Final = 14
_NUMBERED: Final = re.compile(f"{_FORMULA}(\\d{{1,7}}){_END}")
_ROW: Final = re.compile(r"[ >]*\|")


def reference(label: str) -> str:
    """The mark for a reference to a footnote."""
    return f"{_REFERENCE}{label}{_END}"


def note(label: str) -> str:
    """The mark before the text of a footnote."""
    return f"{_NOTE}{label}{_END}"


def formula(number: int) -> str:
    """The mark for a formula."""
    return f"{_FORMULA}{number}{_END}"


def written(markdown: str, formulas: list[str]) -> str:
    """The Markdown with the meaning of its marks."""
    # The search for one character is much faster than that for several.
    if markdown.isascii() or not any(mark in markdown for mark in _MARKS):
        return markdown
    if DEFINITION in markdown:
        markdown = _with_definitions(markdown)
    if _END in markdown:
        markdown = _REFERENCED.sub(r"[^\1]", markdown)
        if _NOTE in markdown:
            markdown = _with_notes(markdown)
        if formulas:
            left = dict(enumerate(formulas))
            markdown = "\n".join([_with_formulas(line, left) for line in markdown.split("\n")])
    return _ANY.sub("", markdown)


def _with_definitions(markdown: str) -> str:
    """A colon for the number of each definition, and no empty line between a term and its definition."""
    *parts, last = markdown.split(DEFINITION)
    written: list[str] = []
    for part in parts:
        before = _without_number(part)
        if before == part:  # a mark of the page itself
            written.append(part)
            continue
        text = before.rstrip(" ")
        if text.endswith("\n\n"):
            before = text[:-1] + before[len(text) :]
        written += [before, ":   "]
    return "".join(written) + last


def _with_notes(markdown: str) -> str:
    """The label of each note for its number."""
    first, *rest = markdown.split(_NOTE)
    written = [_without_number(first)]
    for number, part in enumerate(rest, 1):
        label, _, text = part.partition(_END)
        text = text.removeprefix(" ")
        written.append(f"[^{label}]: {_without_number(text) if number < len(rest) else text}")
    return "".join(written)


def _without_number(text: str) -> str:
    """The text without the number of the entry of a list at its end."""
    found = _NUMBER.search(text, max(0, len(text) - _LONGEST_NUMBER))
    return text[: found.start()] if found else text


def _with_formulas(line: str, left: dict[int, str]) -> str:
    """The line with its formulas, which are taken out of those that are left."""
    if _FORMULA not in line:
        return line
    in_table = _ROW.match(line) is not None

    def put(found: re.Match[str]) -> str:
        written = left.pop(int(found[1]), "")
        # A vertical bar would end the cell of a table.
        return written.replace("|", r"\vert ") if in_table else written

    return _NUMBERED.sub(put, line)

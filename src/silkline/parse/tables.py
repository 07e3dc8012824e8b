"""Prepares tables for Markdown: layout tables become plain blocks, and a cell that spans becomes several cells.

A cell that spans has few bytes and can stand for many cells, and one wide row makes all other rows wide. So the final
number of cells in all tables of a page is counted before any cell is created. A table with too many cells becomes
blocks.
"""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Final

from turbohtml import Document, Element, Text

_PARTS: Final = ("table", "thead", "tbody", "tfoot", "tr", "td", "th", "caption", "colgroup", "col")
_MAX_CELLS: Final = 20_000
"""Cells of one table in the page."""
_MAX_GRID: Final = 60_000
"""Cells of all tables of a page, with the empty cells that are added."""
_MAX_SPAN: Final = 50
_MAX_PADDED: Final = 2_000_000
"""Characters of all tables of a page in plain text, with the spaces that align their columns."""
_MAX_READ: Final = 10_000_000
"""Characters of cells that are counted for that."""
_MAX_INNER: Final = 20
_MAX_VALUES: Final = 12
_SECTIONS: Final = ("table", "h1", "h2", "h3", "pre", "article", "section")

_Row = list[Element | None]
"""The cells of one row. None is a position that another cell covers or that is empty."""


def tidy_tables(root: Element | Document) -> None:
    """Prepares every table in `root` for Markdown."""
    left = _MAX_GRID
    for table, rows in _tables_of_values(root):
        grid, cells = _grid(rows, left)
        left = max(0, left - cells)
        if grid is None:
            _flatten(table)
        else:
            _fill(rows, grid)


def bound_tables(root: Element | Document) -> None:
    """Turns tables for layout and tables with too many cells into plain blocks, and removes spans.

    For plain text, which keeps tables and makes all cells of a column equally wide: a table with one long cell and many
    short rows would have their product. No table stays in a table: each level would double the width of the next one.
    """
    left, spaces, readable = _MAX_GRID, _MAX_PADDED, _MAX_READ
    for table, rows in _tables_of_values(root):
        for row in rows:
            for cell in row:
                _span(cell, "colspan")
                _span(cell, "rowspan")
        cells = len(rows) * max(map(len, rows), default=0)
        padded = 0
        if cells <= left and readable > 0:
            sizes = [[len(cell.text) for cell in row] for row in rows]
            readable -= sum(map(sum, sizes))
            padded = len(rows) * sum([max(column) for column in zip_longest(*sizes, fillvalue=0)])
        if cells > left or readable <= 0 or padded > spaces:
            _flatten(table)
        else:
            left -= cells
            spaces -= padded


def _tables_of_values(root: Element | Document) -> Iterator[tuple[Element, list[list[Element]]]]:
    """The tables of `root` with their rows. Tables for layout become blocks, and small tables in cells become text."""
    for table in root.find_all("table"):
        if table.tag != "table":  # written into a cell of the table around it
            continue
        rows = _rows(table)
        inner = _small_tables(table, rows)
        if not inner and _is_layout(table, rows):
            _flatten(table)
            continue
        for each in inner:
            _write_in_line(each)
        yield table, rows


def _rows(table: Element) -> list[list[Element]]:
    """The cells of each row, without the cells of nested tables."""
    rows = []
    for part in table.children:
        if not isinstance(part, Element):
            continue
        for row in [part] if part.tag == "tr" else part.children:
            if isinstance(row, Element) and row.tag == "tr":
                rows.append([cell for cell in row.children if isinstance(cell, Element) and cell.tag in ("td", "th")])
    return [row for row in rows if row]


def _is_layout(table: Element, rows: list[list[Element]]) -> bool:
    """Whether the table is used for layout: it has one column, or whole sections in its cells."""
    if max((len(row) for row in rows), default=0) < 2 or sum(map(len, rows)) > _MAX_CELLS:
        return True
    if next(table.iter_elements(_SECTIONS), None) is not None:
        return True
    return any(len(cell.find_all("p", limit=3)) > 2 for row in rows[:3] for cell in row)


def _small_tables(table: Element, rows: list[list[Element]]) -> list[Element]:
    """The tables in the cells of a table with a header, if they are small: then they are values, not the layout."""
    if not rows or len(rows[0]) < 2 or not all(cell.tag == "th" for cell in rows[0]):
        return []
    first = next(table.iter_elements(_SECTIONS), None)
    if first is None or first.tag != "table":
        return []
    # With a limit, so that many nested tables are not read again and again.
    inner = table.find_all("table", limit=_MAX_INNER + 1)
    if len(inner) > _MAX_INNER or next(table.iter_elements(_SECTIONS[1:]), None) is not None:
        return []
    small = all(len(each.find_all(["td", "th"], limit=_MAX_VALUES + 1)) <= _MAX_VALUES for each in inner)
    return inner if small and sum(map(len, rows)) <= _MAX_CELLS else []


def _write_in_line(table: Element) -> None:
    """Turns a table within a cell into text: a comma after each value, a semicolon after each row."""
    rows = _rows(table)
    for row in rows:
        for cell in row[:-1]:
            cell.append(Text(", "))
    for row in rows[:-1]:
        row[-1].append(Text("; "))
    for part in [table, *table.find_all(list(_PARTS))]:
        part.tag = "span"


def _flatten(table: Element) -> None:
    """Turns one table into plain blocks. Nested tables stay tables and are checked separately."""
    stack = [table]
    while stack:
        element = stack.pop()
        stack.extend(
            child
            for child in element.children
            if isinstance(child, Element) and child.tag in _PARTS and child.tag != "table"
        )
        element.tag = "div"


def _grid(rows: list[list[Element]], most: int) -> tuple[list[_Row] | None, int]:
    """The rows with None for each covered or missing cell, all equally wide, and the number of counted cells.

    Returns None instead of the rows if there are more cells than `most`.
    """
    grid: list[_Row] = []
    taken: dict[int, int] = {}  # for each column, the number of following rows where a cell covers it
    counted = width = 0
    for row in rows:
        cells: _Row = []
        for cell in row:
            while taken.get(len(cells)):
                cells.append(None)
            across, down = _span(cell, "colspan"), _span(cell, "rowspan")
            for column in range(len(cells), len(cells) + across):
                taken[column] = max(taken.get(column, 0), down)
            cells += [cell, *[None] * (across - 1)]
            if len(cells) > most:
                return None, len(cells)
        while taken.get(len(cells)):
            cells.append(None)
        taken = {column: rest - 1 for column, rest in taken.items() if rest > 1}
        grid.append(cells)
        width = max(width, len(cells))
        counted += len(cells)
        if counted > most or width * len(rows) > most:
            return None, counted
    for cells in grid:
        cells += [None] * (width - len(cells))
    return grid, width * len(rows)


def _fill(rows: list[list[Element]], grid: list[_Row]) -> None:
    """Adds an empty cell to the document for each None of the grid."""
    for row, cells in zip(rows, grid, strict=True):
        before: Element | None = None
        for cell in cells:
            if cell is None:
                empty = Element("td")
                if before is None:
                    row[0].insert_before(empty)
                else:
                    before.insert_after(empty)
                before = empty
            else:
                before = cell


def _span(cell: Element, name: str) -> int:
    value = cell.attr(name)
    if value is None:
        return 1
    del cell.attrs[name]
    digits = value.strip()
    if not (digits.isascii() and digits.isdigit()):
        return 1
    return min(max(int(digits.lstrip("0")[:4] or "1"), 1), _MAX_SPAN)

"""Tables that Markdown can hold: layout tables become plain blocks, cells that span become several."""

from typing import Final

from turbohtml import Document, Element

_BLOCKS: Final = ("table", "div", "h1", "h2", "h3", "h4", "section", "article", "pre", "form", "blockquote")
_PARTS: Final = ("table", "thead", "tbody", "tfoot", "tr", "td", "th", "caption", "colgroup", "col")
_MAX_CELLS: Final = 20_000
_MAX_SPAN: Final = 50


def tidy_tables(root: Element | Document) -> None:
    """Prepares every table in `root` for Markdown."""
    for table in root.find_all("table"):
        rows = _rows(table)
        if _is_layout(table, rows):
            _flatten(table)
        else:
            _even_out(rows)


def _rows(table: Element) -> list[list[Element]]:
    """The cells of each row, without those of tables inside."""
    rows = []
    for part in table.children:
        if not isinstance(part, Element):
            continue
        for row in [part] if part.tag == "tr" else part.children:
            if isinstance(row, Element) and row.tag == "tr":
                rows.append([cell for cell in row.children if isinstance(cell, Element) and cell.tag in ("td", "th")])
    return [row for row in rows if row]


def _is_layout(table: Element, rows: list[list[Element]]) -> bool:
    """Whether the table only arranges the page: one column, or whole sections in its cells."""
    if max((len(row) for row in rows), default=0) < 2 or sum(map(len, rows)) > _MAX_CELLS:
        return True
    inner = next(table.iter_elements(("table", "h1", "h2", "h3", "pre", "article", "section")), None)
    if inner is not None:
        return True
    return any(len(cell.find_all("p", limit=3)) > 2 for row in rows[:3] for cell in row)


def _flatten(table: Element) -> None:
    """Turns one table into plain blocks; tables inside it stay tables, and are looked at by themselves."""
    stack = [table]
    while stack:
        element = stack.pop()
        stack.extend(
            child
            for child in element.children
            if isinstance(child, Element) and child.tag in _PARTS and child.tag != "table"
        )
        element.tag = "div"


def _even_out(rows: list[list[Element]]) -> None:
    """Gives every row the same number of cells, with an empty one wherever another reaches in."""
    waiting: dict[int, int] = {}
    spread = []
    for row in rows:
        spread.append(_spread(row, waiting))
    width = max(map(len, spread))
    for row in spread:
        last = row[-1]
        for _ in range(width - len(row)):
            cell = Element("td")
            last.insert_after(cell)
            last = cell


def _spread(row: list[Element], waiting: dict[int, int]) -> list[Element]:
    """One row with its spans filled; `waiting` holds, for each column, in how many rows to come it is taken."""
    cells: list[Element] = []
    for cell in row:
        while waiting.get(len(cells)):
            waiting[len(cells)] -= 1
            empty = Element("td")
            cell.insert_before(empty)
            cells.append(empty)
        across, down = _span(cell, "colspan"), _span(cell, "rowspan")
        last = cell
        for step in range(across):
            if down > 1:
                waiting[len(cells)] = down - 1
            if step:
                empty = Element("td")
                last.insert_after(empty)
                last = empty
            cells.append(last)
    return cells


def _span(cell: Element, name: str) -> int:
    value = cell.attr(name)
    if value is None:
        return 1
    del cell.attrs[name]
    return min(max(int(value), 1), _MAX_SPAN) if value.strip().isascii() and value.strip().isdigit() else 1

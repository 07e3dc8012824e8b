"""Reads the fields that a user named from a parsed page.

Nothing here loses a page: a value that does not convert becomes null, with its raw text and a typed error. The time,
the number of values and rows, and the size of all values have limits; the time of one selector has only the limit of
the process that reads (crawl/isolated_reader.py), and then the page is read again without fields.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from turbohtml import Document, Element, PlainText, XPath

from silkline.model.fields import CURRENCY, Field
from silkline.model.pattern import UrlPattern
from silkline.model.selector_check import compile_regex
from silkline.parse.currencies import currency_code
from silkline.parse.field_values import Price, Problem, converted
from silkline.parse.structured import Structured, text_of

MAX_VALUES: Final = 1_000
"""Values of one field."""
MAX_ROWS: Final = 2_000
MAX_TEXT: Final = 10_000
MAX_CHARACTERS: Final = 1_000_000
"""Characters of all values of a page."""
MAX_SECONDS: Final = 2.0
MAX_ERRORS: Final = 100
_MAX_RAW: Final = 200
_SHORT: Final = 20_000
_PLAIN: Final = PlainText(layout="strict", bullet="", table_cell_separator=" ")
_ADDRESSES: Final = {
    **dict.fromkeys(("a", "area", "link"), "href"),
    **dict.fromkeys(("img", "iframe", "source"), "src"),
}

NOT_ASKED, MISSING, FOUND, WRONG = range(4)
"""What a page says about a field: `WRONG` is found, but it does not convert."""


class ReadFields(NamedTuple):
    """The part of `data` about fields, and a byte for each field: `NOT_ASKED`, `MISSING`, `FOUND` or `WRONG`."""

    data: dict[str, Any]
    tally: bytes


class RawValue(NamedTuple):
    """A value as the page has it, and a currency that stands beside it."""

    value: Any
    currency: str | None = None


class _Limit(Exception):
    """A limit was reached; the word says which: `time` or `too_large`."""


class FieldReader:
    """Reads the fields of pages. Everything is compiled once."""

    def __init__(self, fields: Sequence[Field], each: str = "") -> None:
        self._fields = [_CompiledField(field) for field in fields]
        self._each = each

    def read(self, document: Document, url: str, base: str) -> ReadFields:
        """The fields of a page. Use it before anything is removed from the document."""
        asked = [place for place, field in enumerate(self._fields) if field.asked_for(url)]
        tally = bytearray(len(self._fields))
        if not asked:
            return ReadFields({}, bytes(tally))
        page = _PageFields(document, base)
        rows: list[dict[str, Any]] = []
        if self._each:
            elements = document.select(self._each)
            if len(elements) > MAX_ROWS:
                page.note("", "too_many", f"{len(elements):,} rows, the first {MAX_ROWS:,} were read")
            for number, element in enumerate(elements[:MAX_ROWS], start=1):
                rows.append(self._row(page, asked, element, tally, number))
        else:
            rows.append(self._row(page, asked, document, tally, None))
        for place in asked:
            tally[place] = tally[place] or MISSING
        data: dict[str, Any] = {"rows": rows} if self._each else {"fields": rows[0]}
        if page.errors:
            data["field_errors"] = page.errors
        return ReadFields(data, bytes(tally))

    def _row(
        self, page: _PageFields, asked: list[int], node: Document | Element, tally: bytearray, number: int | None
    ) -> dict[str, Any]:
        row: dict[str, Any] = {}
        for place in asked:
            field = self._fields[place]
            state = field.read_into(row, page, node, number)
            if tally[place] != FOUND and state != MISSING:
                tally[place] = state
        return row


class _PageFields:
    """One page while its fields are read: what is left of the limits, and the errors."""

    def __init__(self, document: Document, base: str) -> None:
        self.document = document
        self.base = base
        self.structured = Structured(document)
        self.errors: list[dict[str, Any]] = []
        self._left = MAX_CHARACTERS
        self._ends_at = time.process_time() + MAX_SECONDS

    def check_time(self) -> None:
        if time.process_time() > self._ends_at:
            raise _Limit("time")

    def spend(self, characters: int) -> None:
        self._left -= characters
        if self._left < 0:
            raise _Limit("too_large")

    def note(self, field: str, error: str, raw: str | None = None, row: int | None = None) -> None:
        if len(self.errors) < MAX_ERRORS:
            said: dict[str, Any] = {"field": field, "error": error, "raw": None if raw is None else raw[:_MAX_RAW]}
            self.errors.append({**said, "row": row} if row is not None else said)


class _CompiledField:
    def __init__(self, field: Field) -> None:
        self._field = field
        self._when = UrlPattern(field.when) if field.when else None
        self._regex = compile_regex(field.regex) if field.regex else None
        self._xpath = XPath(field.path) if field.source == "xpath" else None
        self._default_size = 0 if field.default is None else len(str(field.default))

    def asked_for(self, url: str) -> bool:
        return self._when is None or self._when.found_in(url)

    def read_into(self, row: dict[str, Any], page: _PageFields, node: Document | Element, number: int | None) -> int:
        """Add the values of this field to a row. Returns what the page says about it."""
        field = self._field
        raws: list[RawValue] = []
        try:
            page.check_time()
            for raw in self._matched(self._raw(page, node), page):
                raws.append(raw)
                if not field.many:
                    break
                if len(raws) > MAX_VALUES:
                    page.note(field.name, "too_many", f"more than {MAX_VALUES:,} values", number)
                    raws.pop()
                    break
        except _Limit as limit:
            page.note(field.name, str(limit), None, number)
        except ValueError as error:  # an XPath may fail with the values of this page
            page.note(field.name, "bad_selector", str(error), number)
        values: list[Any] = []
        try:
            for raw in raws:
                value = self._converted(raw, page, number)
                if field.type == "url" and isinstance(value, str):
                    page.spend(len(value))  # a short text becomes a long URL if the page has a long base
                values.append(value)
        except _Limit as limit:
            page.note(field.name, str(limit), None, number)
        good = [value for value in values if not isinstance(value, Problem)]
        self._store(row, good, None if values else self._default(page, number))
        if values:
            return FOUND if good else WRONG
        if field.required:
            page.note(field.name, "missing", None, number)
        return MISSING

    def _default(self, page: _PageFields, number: int | None) -> Any:
        """The default of the field. It counts as a value of the page: a page may have thousands of rows."""
        if self._field.default is not None:
            try:
                page.spend(self._default_size)
            except _Limit as limit:
                page.note(self._field.name, str(limit), None, number)
                return None
        return self._field.default

    def _store(self, row: dict[str, Any], values: list[Any], default: Any) -> None:
        field = self._field
        is_price = field.type == "price"
        amounts = [value.amount if isinstance(value, Price) else value for value in values]
        codes = [value.currency for value in values if isinstance(value, Price)]
        empty: Any = [] if field.many else None
        row[field.name] = (amounts if field.many else amounts[0]) if values else empty if default is None else default
        if is_price:
            row[field.name + CURRENCY] = (codes if field.many else codes[0]) if values else empty

    def _converted(self, raw: RawValue, page: _PageFields, number: int | None) -> Any:
        field = self._field
        value, kind = raw.value, field.type
        if kind == "number" and _is_number(value):
            return _exact(value)
        if kind == "boolean" and isinstance(value, bool):
            return value
        if kind == "price":
            value, currency = _offer(value)
            currency = raw.currency or currency
            result: Any = (
                Price(_exact(value), currency) if _is_number(value) else converted(text_of(value), kind, page.base)
            )
            if isinstance(result, Price) and currency:
                result = result._replace(currency=currency)
        else:
            result = converted(text_of(value), kind, page.base)
        if isinstance(result, Problem):
            page.note(field.name, result.error, text_of(value), number)
        return result

    def _raw(self, page: _PageFields, node: Document | Element) -> Iterator[RawValue]:
        """The values that the selector or path finds, before the pattern and the type."""
        field = self._field
        if field.source == "css":
            if field.path == ":scope" and isinstance(node, Element):
                elements: Sequence[Any] = [node]
            elif field.many:
                elements = node.select(field.path)
            else:
                one = node.select_one(field.path)
                elements = [one] if one is not None else []
            yield from self._of_nodes(elements)
        elif self._xpath is not None:
            found = self._xpath(node)
            yield from self._of_nodes(found if isinstance(found, list) else [found])
        else:
            for value, owner in page.structured.at(field.source, field.path):
                yield RawValue(value, _currency_beside(owner) if field.type == "price" else None)

    def _of_nodes(self, nodes: Sequence[Any]) -> Iterator[RawValue]:
        for node in nodes:
            if isinstance(node, Element):
                text = self._of_element(node)
                if text is not None:
                    yield RawValue(text)
            elif isinstance(node, bool | float):
                yield RawValue(int(node) if isinstance(node, float) and node.is_integer() else node)
            else:
                yield RawValue(_tidy(node if isinstance(node, str) else node.text))

    def _of_element(self, element: Element) -> str | None:
        """The text of an element or its attribute. Some elements have their value in an attribute."""
        field, tag = self._field, element.tag
        name = field.attribute
        if not name and tag == "meta":
            name = "content"
        if not name and field.type == "url":
            name = _ADDRESSES.get(tag, "")
        if not name and field.type == "date" and tag == "time" and element.attr("datetime"):
            name = "datetime"
        if name:
            value = element.attr(name)
            return None if value is None else value[:MAX_TEXT].strip().replace("\x00", "")
        return _tidy(_text_of(element))

    def _matched(self, raws: Iterator[RawValue], page: _PageFields) -> Iterator[RawValue]:
        """The values that are not empty; with a pattern, what the pattern finds in them."""
        for raw in raws:
            text = raw.value if isinstance(raw.value, str) else text_of(raw.value)
            page.spend(len(text) + 10)
            page.check_time()
            if self._regex is None:
                if text.strip():
                    yield raw
                continue
            # A match takes linear time, and an empty one may be found at each place of the text.
            for found in self._regex.finditer(text[:MAX_TEXT].encode(errors="replace")):
                page.check_time()
                part = next((group for group in found.groups() if group is not None), found[0])
                if part.strip():
                    page.spend(len(part))
                    yield RawValue(part.decode(errors="replace").strip(), raw.currency)


def _text_of(element: Element) -> str:
    """The text, with a space between blocks."""
    text = element.text
    if not text or len(text) > _SHORT:
        return text
    if element.find("tr") is not None:  # the layout of a table can be much larger than its text
        return " ".join(element.stripped_strings)
    return element.to_text(_PLAIN) or text


def _tidy(text: str) -> str:
    return " ".join(text[: 4 * MAX_TEXT].split())[:MAX_TEXT].replace("\x00", "")


def _is_number(value: Any) -> bool:
    """A number of JSON that fits into JSON: not infinite, not larger than databases accept."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _exact(value: float) -> float:
    """A number that a column of numbers can hold: a larger whole number becomes a fraction."""
    return value if abs(value) <= 1 << 53 else float(value)


def _offer(value: Any) -> tuple[Any, str | None]:
    """The price and the currency of an offer of schema.org, if the value is one."""
    if not isinstance(value, dict):
        return value, None
    price = next((value[name] for name in ("price", "lowPrice") if value.get(name) not in (None, "", [])), value)
    return price[0] if isinstance(price, list) else price, _currency_beside(value)


def _currency_beside(owner: dict[str, Any]) -> str | None:
    code = owner.get("priceCurrency") or owner.get("currency")
    return currency_code(code[0] if isinstance(code, list) and code else code)

"""Conditions on fields, and the columns of fields in tables."""

import csv
import io
from datetime import UTC, datetime
from typing import Any

import pyarrow.parquet
import pytest

from silkline.export.field_columns import FieldColumns, _date
from silkline.export.open import to_stream
from silkline.export.table import COLUMNS, columns_in
from silkline.model.field_filter import BadCondition, has_all, read_condition
from silkline.store.results import Result

LAMP = {
    "fields": {"name": "Desk Lamp", "price": 12.5, "stock": True, "made": "2024-05-06", "tags": ["a", "b"], "x": None}
}
ROWS = {"rows": [{"name": "One", "price": 1}, {"name": "Two", "price": 2}]}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        *(("price<20", True), ("price<12.5", False), ("price<=12.5", True), ("price>12", True), ("price>=13", False)),
        *(("price = 12.50", True), ("price!=12.5", False), ("price<cheap", False), ("price=cheap", False)),
        *(("name~lamp", True), ("name=desk lamp", True), ("name=lamp", False), ("name!=lamp", True)),
        *(("stock=true", True), ("stock=false", False), ("stock<5", False), ("tags=b", True), ("tags=c", False)),
        *(("made>=2024-01-01", True), ("made<2024-01-01", False), ("name", True), ("!name", False), ("x", False)),
        *(("!x", True), ("!nothing", True), ("x=5", False), ("x!=5", True)),
    ],
)
def test_conditions(text: str, holds: bool) -> None:
    assert has_all([read_condition(text)], LAMP) == holds


def test_one_row_must_have_all_conditions() -> None:
    assert has_all([read_condition("name=Two"), read_condition("price=2")], ROWS)
    assert not has_all([read_condition("name=Two"), read_condition("price=1")], ROWS)
    assert not has_all([read_condition("!name")], {"title": "no fields"})
    assert has_all([], {})


@pytest.mark.parametrize("text", ["", "price<>3", "price==3", "!price=3", "5<price", "a b", "x" * 501])
def test_no_condition(text: str) -> None:
    with pytest.raises(BadCondition, match="examples"):
        read_condition(text)


def result(url_id: int, **data: Any) -> Result:
    url = f"https://a.example/{url_id}"
    return Result(url_id, "job", url_id, url, url, {"title": "T", **data}, True, {}, datetime(2030, 1, 1, tzinfo=UTC))


FIELDS = {
    "title": {"css": "h1"},
    "price": {"css": "p", "type": "price"},
    "made": {"css": "time", "type": "date"},
    "tags": {"css": "i", "many": True},
    "stock": {"css": "b", "type": "boolean"},
}


def written(form: str, columns: FieldColumns, *results: Result) -> io.BytesIO:
    stream = io.BytesIO()
    with to_stream(form, stream, columns, columns_in(results, columns)) as writer:
        for each in results:
            writer.write(each)
    return io.BytesIO(stream.getvalue())


def test_fields_are_typed_columns() -> None:
    good = {"title": "H", "price": 5, "price_currency": "EUR", "made": "2024-05-06", "tags": ["a"], "stock": False}
    wrong = {"title": 5, "price": "5", "made": "soon", "tags": "a", "stock": 1}
    columns = FieldColumns(FIELDS, rows=False, taken=COLUMNS)
    results = (result(1, fields=good), result(2, fields=wrong, field_errors=[{"field": "made"}]), result(3))
    table = pyarrow.parquet.read_table(written("parquet", columns, *results))
    kinds = {name: str(table.schema.field(name).type) for name in table.column_names}
    assert kinds["fields.title"] == "string"
    assert (kinds["price"], kinds["price_currency"], kinds["stock"]) == ("double", "string", "bool")
    assert (kinds["made"], kinds["tags"]) == ("timestamp[us, tz=UTC]", "list<element: string>")
    first, second, third = table.select(["fields.title", "price", "made", "tags", "stock"]).to_pylist()
    assert first == {
        **{"fields.title": "H", "price": 5.0, "made": datetime(2024, 5, 6, tzinfo=UTC), "tags": ["a"], "stock": False}
    }
    assert second == third == {"fields.title": None, "price": None, "made": None, "tags": [], "stock": None}
    text = written("csv", columns, *results).read().decode()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert (rows[0]["fields.title"], rows[0]["price"], rows[0]["price_currency"]) == ("H", "5", "EUR")
    assert (rows[0]["made"], rows[0]["tags"], rows[0]["stock"]) == ("2024-05-06T00:00:00+00:00", '["a"]', "false")
    assert rows[1]["field_errors"] == '[{"field": "made"}]'
    assert "fields" not in rows[0]


def test_rows_of_a_page_are_rows_of_the_table() -> None:
    columns = FieldColumns({"name": {"css": "b"}}, rows=True, taken=COLUMNS)
    results = (result(1, rows=[{"name": "A"}, {"name": "B"}], markdown="text"), result(2, rows=[]))
    table = pyarrow.parquet.read_table(written("parquet", columns, *results)).to_pylist()
    assert [(row["url_id"], row["row"], row["name"]) for row in table] == [(1, 1, "A"), (1, 2, "B"), (2, None, None)]
    assert [row["content"] for row in table] == ["text", None, ""]
    rows = list(csv.DictReader(io.StringIO(written("csv", columns, *results).read().decode(), newline="")))
    assert [(row["url_id"], row["row"], row["name"]) for row in rows] == [
        ("1", "1", "A"),
        ("1", "2", "B"),
        ("2", "", ""),
    ]


def test_a_job_without_fields_has_the_table_of_before() -> None:
    header = written("csv", FieldColumns({}, rows=False), result(1, fields={"a": 1})).readline().decode().strip()
    assert header == ",".join((*COLUMNS, "fields"))


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_date_beyond_the_calendar_is_an_empty_cell(text: str) -> None:
    assert _date(text) is None

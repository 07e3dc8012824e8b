"""Columns become arrays and rows in PostgreSQL's own text formats."""

from typing import Any

import pytest

from silkline.store.postgres import _array, _copied


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (["a", "b"], '{"a","b"}'),
        ([""], '{""}'),
        (["NULL"], '{"NULL"}'),
        (['say "hi"', "b"], '{"say \\"hi\\"","b"}'),
        (['","', "b"], '{"\\",\\"","b"}'),
        (["back\\slash"], '{"back\\\\slash"}'),
        ([1, -2], "{1,-2}"),
        ([None, None], "{NULL,NULL}"),
        (["a", None], '{"a",NULL}'),
        ([1, None], '{"1",NULL}'),
        ([True, False], '{"True","False"}'),
        ([b"\x01\xff"], '{"\\\\x01ff"}'),
    ],
)
def test_arrays(values: list[Any], text: str) -> None:
    assert _array(values) == text


def test_rows_of_copy() -> None:
    columns = [["plain", "tab\tline\nback\\slash\r"], [1, None], [None, None], ["\\N", None]]
    assert _copied(columns) == "plain\t1\t\\N\t\\\\N\ntab\\tline\\nback\\\\slash\\r\t\\N\t\\N\t\\N"

"""Columns become arrays in PostgreSQL's own text format."""

from typing import Any

import pytest

from silkline.store.postgres import _array


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

"""Lengths of time, as people write them."""

import pytest

from silkline.model.duration import seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("90", 90), ("0", 0), ("1.5", 1.5), ("250ms", 0.25), ("30s", 30), ("10m", 600), ("10min", 600)),
        *(("2h", 7200), ("1d", 86400), ("1h30m", 5400), (" 5 s ", 5), ("1H", 3600), (".5s", 0.5)),
    ],
)
def test_a_length_of_time(text: str, seconds: float) -> None:
    assert seconds_of(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "soon", "10x", "nan", "inf", "1s2", "ten minutes", "1" * 400 + "s", "1e999"])
def test_what_is_not_a_length_of_time(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration; examples: 90"):
        seconds_of(text)

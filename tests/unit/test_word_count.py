"""The number of words must be that of `str.split`, for all white space that Python knows."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.parse.word_count import count_words

SPACES = [chr(code) for code in range(sys.maxunicode + 1) if chr(code).isspace()]
LETTERS = ["a", "é", "\u4e2d", "\u200b", "\U0001f600", "\ud800"]
ASCII = [character for character in (*SPACES, "a", "\x00") if character.isascii()]


@pytest.mark.parametrize("characters", [ASCII, [*SPACES, *LETTERS]], ids=["ASCII", "all"])
def test_counts_the_same_words_as_split(characters: list[str]) -> None:
    @given(st.text(st.sampled_from(characters)))
    def check(text: str) -> None:
        assert count_words(text) == len(text.split())

    check()


def test_knows_all_white_space() -> None:
    assert [space for space in SPACES if count_words(f"a{space}b") != 2] == []

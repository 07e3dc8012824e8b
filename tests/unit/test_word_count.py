"""The number of words must be that of `str.split`, for all white space that Python knows."""

import sys
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.parse.content import count_words
from silkline.parse.word_count import count_words as count_in_python

SPACES = [chr(code) for code in range(sys.maxunicode + 1) if chr(code).isspace()]
LETTERS = ["a", "é", "\u4e2d", "\u200b", "\U0001f600", "\ud800"]
ASCII = [character for character in (*SPACES, "a", "\x00") if character.isascii()]


Count = Callable[[Iterable[str]], int]
both = pytest.mark.parametrize("count", [count_words, count_in_python], ids=["as used", "in Python"])


@both
@pytest.mark.parametrize("characters", [ASCII, [*SPACES, *LETTERS]], ids=["ASCII", "all"])
def test_counts_the_same_words_as_split(count: Count, characters: list[str]) -> None:
    @given(st.lists(st.text(st.sampled_from(characters))))
    def check(texts: list[str]) -> None:
        assert count(texts) == sum(len(text.split()) for text in texts)

    check()


@both
def test_knows_all_white_space(count: Count) -> None:
    assert [space for space in SPACES if count([f"a{space}b"]) != 2] == []
    assert [space for space in SPACES if count([f"\u4e2d{space}b"]) != 2] == []

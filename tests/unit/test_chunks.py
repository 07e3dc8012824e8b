"""Chunks for retrieval: nothing is lost, cuts are where a reader expects them, and ids are stable."""

import re
import tracemalloc
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.export import markdown_chunks
from silkline.export.chunks import chunks_of_result
from silkline.export.markdown_chunks import chunks_of
from silkline.store.results import Result

SENTENCE = "The old mill stands at the end of the valley. "


def cut(markdown, size=200, **more):
    return [markdown[chunk.start : chunk.end] for chunk in chunks_of(markdown, size, **more) if chunk]


def rows(markdown, size=200, url="https://a.example/", **data):
    result = Result(1, "job", 1, url, url, {"markdown": markdown, **data}, True, {}, datetime.now(UTC))
    return [row for row in chunks_of_result(result, size) if row]


LINES = st.one_of(
    st.sampled_from(
        [
            "",
            "",
            "# One",
            "## Two",
            "### Two *and* more",
            "####",
            "#no heading",
            "```",
            "```python",
            "~~~",
            "  ```",
            "> q",
        ]
    ),
    st.sampled_from(["| a | b |", "| --- | --- |", "- entry", "  - inner entry", "1. first", ":   text", "[^1]: note"]),
    st.text("ab \u3002.!?\t", max_size=400),
    st.lists(st.sampled_from(["word", "end.", "Is it?", "\u6587\u3002", "x" * 150, "a,b"]), max_size=90).map(" ".join),
    st.text(max_size=40),
)


@given(st.lists(LINES, max_size=40).map("\n".join), st.integers(100, 400), st.booleans())
def test_nothing_is_lost_and_the_order_stays(markdown, size, plain):
    chunks = [chunk for chunk in chunks_of(markdown, size, markdown=not plain) if chunk]
    place = 0
    for chunk in chunks:
        assert not markdown[place : chunk.start].strip()  # only white space is left out
        assert chunk.start >= place
        assert markdown[chunk.start : chunk.end].strip()
        place = chunk.end
    assert not markdown[place:].strip()
    assert re.findall(r"\w+", "\n".join(markdown[each.start : each.end] for each in chunks)) == re.findall(
        r"\w+", markdown
    )


@given(st.lists(LINES, max_size=40).map("\n".join), st.integers(100, 400))
def test_a_chunk_is_longer_only_if_it_cannot_be_cut(markdown, size):
    for text in cut(markdown, size):
        if len(text) > size:
            in_lines = [line for line in text.split("\n") if line.strip()]
            assert len(in_lines) == 1  # one line of code or of a table, one word, or one heading


def test_every_heading_starts_a_chunk_with_its_path():
    markdown = "Start.\n\n# A\n\nText of A.\n\n## B *b*\n\nText of B.\n\n### C\n\nText of C.\n\n## D\n\nText of D."
    found = [(row.headings, row.text) for row in rows(markdown)]
    assert found == [
        ([], "Start."),
        (["A"], "# A\n\nText of A."),
        (["A", "B b"], "## B *b*\n\nText of B."),
        (["A", "B b", "C"], "### C\n\nText of C."),
        (["A", "D"], "## D\n\nText of D."),
    ]


def test_a_heading_without_text_stays_with_the_deeper_one():
    assert cut("# A\n\n## B\n\nText.\n\n## C\n\n## D") == ["# A\n\n## B\n\nText.", "## C", "## D"]


def test_long_text_is_cut_between_paragraphs_then_sentences_then_words():
    paragraph = (SENTENCE * 3).strip()
    assert cut(f"{paragraph}\n\n{paragraph}") == [paragraph, paragraph]
    long = cut((SENTENCE * 9).strip())
    assert len(long) == 3
    assert all(text.endswith("valley.") and len(text) <= 200 for text in long)
    words = cut(" ".join(["word"] * 100))
    assert all(len(text) <= 200 and set(text.split()) == {"word"} for text in words)


def test_lists_are_cut_between_entries():
    entry = f"- {SENTENCE * 2}".strip()
    assert cut("\n".join([entry] * 4)) == [f"{entry}\n{entry}"] * 2


def test_code_is_cut_between_lines_and_says_what_it_is():
    lines = [f"value_{n} = compute(a, b)  # no heading" for n in range(20)]
    found = list(chunks_of("```python\n" + "\n".join(lines) + "\n```", 200))
    assert len(found) > 3
    assert found[0].context == ""
    assert {chunk.context for chunk in found[1:]} == {"```python"}
    text = "```python\n" + "\n".join(lines) + "\n```"
    for chunk in found:
        assert set(text[chunk.start : chunk.end].split("\n")) <= {*lines, "```python", "```"}


def test_a_line_of_code_or_of_a_table_is_never_cut():
    line = "x = " + "1 + " * 200 + "1"
    assert line in cut(f"```\n{line}\n```")
    row = "| " + "word. " * 200 + "| b |"
    assert row in cut(f"| a | b |\n| --- | --- |\n{row}\n| c | d |")


def test_a_long_table_repeats_its_header_as_context():
    header = "| name | price |\n| --- | --- |"
    table = header + "".join(f"\n| Kettle {n} | {n}.99 EUR |" for n in range(30))
    found = list(chunks_of(table, 200))
    assert [chunk.context for chunk in found[:2]] == ["", header]


@pytest.mark.parametrize(
    "text",
    [
        "| " + "h" * 20_000 + " | b |\n| --- | --- |\n" + "| a | b |\n" * 2_000,
        "```" + "h" * 20_000 + "\n" + "abc\n" * 5_000 + "```",
        "".join(f"{'#' * level} {'h' * 2_000}\n\n" for level in range(1, 6)) + "###### a\n" * 20_000,
    ],
)
def test_what_chunks_repeat_is_limited(text):
    found = rows(text, 100, title="t" * 100_000)
    assert all(len(row.context) <= 100 for row in found)
    assert sum(len(row.context) for row in found) <= 2 * len(text)
    assert len(found) <= 5_000 + 2 * len(text) / 100
    assert all(len(row.title) <= 1_000 and sum(map(len, row.headings)) <= 6 * 300 for row in found)


def test_signs_in_code_are_no_headings():
    assert [row.headings for row in rows("# A\n\n```\n# comment\n```\n\nText.")] == [["A"]]


def test_plain_text_has_no_headings():
    assert [chunk.headings for chunk in chunks_of("# a\n\n| b", 100, markdown=False)] == [()]


def test_ids_are_those_of_the_content():
    markdown = "# A\n\nText.\n\n# B\n\nOther text.\n\n# B\n\nOther text."
    first = [row.id for row in rows(markdown)]
    assert first == [row.id for row in rows(markdown)]
    assert len(set(first)) == 3
    changed = [row.id for row in rows(f"New start.\n\n{markdown}".replace("Text.", "New text."))]
    assert changed[2:] == first[1:]
    assert set(first).isdisjoint(row.id for row in rows(markdown, url="https://b.example/"))


def test_positions_and_places():
    markdown = f"# A\n\n{SENTENCE * 12}\n\n# B\n\nEnd."
    found = rows(markdown, title="Mill")
    assert [row.position for row in found] == list(range(len(found)))
    for row in found:
        assert markdown[row.start :].startswith(row.text)
        assert (row.url, row.title) == ("https://a.example/", "Mill")


def test_anchors_are_those_of_the_page():
    headings = [[1, "Guide"], [2, "Example"], [2, "Left out"], [2, "Example"], [3, "No anchor"]]
    markdown = "# Guide\n\nx\n\n## [Example](https://a.example/x)\n\ny\n\n## Example\n\nz\n\n### No anchor\n\nw"
    found = rows(markdown, headings=headings, anchors=["guide", "example", "out", "example-1", ""])
    assert [row.anchor for row in found] == ["guide", "example", "example-1", "example-1"]
    assert [row.anchor for row in rows(markdown)] == [None] * 4


@pytest.mark.parametrize("text", ["#" * 100_000, "# " + " " * 100_000 + "x", "|" + "-" * 100_000 + "x", "[" * 100_000])
def test_hostile_lines_take_no_long_time(text):
    assert " ".join(cut(text)).split() == text.split()


def most_memory(rows):
    """The most memory that is in use while something is iterated, beside what there was before."""
    tracemalloc.start()
    try:
        for _ in rows:
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


MANY_LINES = {
    "code": "```\n" + "a\n" * 200_000,
    "a table": "| a |\n| --- |\n" + "| b |\n" * 100_000,
    "paragraphs": "a\n\n" * 150_000,
    "one paragraph": "a\n" * 200_000,
    "a list": "- a\n" * 100_000,
    "empty lines": "```\n" + "\n" * 200_000,
    "no text": " \n" * 200_000,
}


@pytest.mark.parametrize("name", MANY_LINES)
def test_the_lines_of_a_page_are_not_kept(name):
    text = MANY_LINES[name]
    assert most_memory(chunks_of(text, 800)) < 2 * len(text) + 100_000


@pytest.mark.parametrize("name", MANY_LINES)
def test_no_step_goes_through_many_lines(name, monkeypatch):
    seen = 0

    def counted(text, start, stop):
        nonlocal seen
        for line in lines(text, start, stop):
            seen += 1
            yield line

    lines = markdown_chunks._lines
    monkeypatch.setattr(markdown_chunks, "_lines", counted)
    before, longest = 0, 0
    for _ in chunks_of(MANY_LINES[name], 800):
        longest, before = max(longest, seen - before), seen
    assert max(longest, seen - before) <= 20_003


def test_the_texts_of_the_chunks_are_not_kept():
    text = "".join(f"| {number:>90} |\n" for number in range(20_000))
    result = Result(1, "job", 1, "", "https://a.example/", {"markdown": text}, True, {}, datetime.now(UTC))
    assert most_memory(chunks_of_result(result, 10_000)) < 500_000


def test_the_anchors_of_many_headings_take_little_memory():
    names = [f"heading {number}" for number in range(10_000)]
    data = {"markdown": "a", "headings": [[1, name] for name in names], "anchors": names}
    result = Result(1, "job", 1, "", "https://a.example/", data, True, {}, datetime.now(UTC))
    assert most_memory(chunks_of_result(result, 800)) < 4_000_000


@given(st.text("a .!?\"')*\u3002\n\u3001", max_size=600), st.integers(1, 40), st.integers(100, 200))
def test_a_text_that_is_searched_in_pieces_has_the_same_chunks(text, piece, size):
    whole = list(chunks_of(text, size))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(markdown_chunks, "_PIECE", piece)
        assert [chunk for chunk in chunks_of(text, size) if chunk] == whole

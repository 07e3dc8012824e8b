"""Exports of hostile results: no cell is a formula, no name leaves its folder, large maps are split."""

import csv
import io
import json
import os
import subprocess
import sys
import tracemalloc
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.errors import UsageError
from silkline.export.field_columns import FieldColumns
from silkline.export.folder import ResultFolder, document, place_of
from silkline.export.jsonl import JsonLines
from silkline.export.open import format_of, refuse_to_overwrite, to_path
from silkline.export.parquet import Parquet, load
from silkline.export.rows import Filter, with_right_types
from silkline.export.sitemap import SitemapFile
from silkline.export.table import PIECE, Table, columns_in, harmless, line_of
from silkline.model.url import canonical
from silkline.page_files import path_of
from silkline.store.results import Result


def result(url: str = "https://example.com/", *, success: bool = True, **more: Any) -> Result:
    data, metadata = more.get("data", {"title": "A", "markdown": "# A"}), more.get("metadata", {"http_status": 200})
    return Result(1, "job", more.get("url_id", 1), url, url, data, success, metadata, datetime(2030, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20", " ="])
def test_no_cell_is_a_formula(start: str) -> None:
    assert harmless(f"{start}HYPERLINK(1)") == f"'{start}HYPERLINK(1)"


@pytest.mark.parametrize("sign", ["=", "@", "\uff1d", "\ufe66"])
@pytest.mark.parametrize(
    "hidden",
    ["\ufeff", "\u200b", "\u2003", "\u3000", "\x85", "\x0b", "\u2028", "\u202e", "\u0301", "\u3164", " \ufeff "],
)
def test_a_formula_behind_invisible_characters_is_none(hidden: str, sign: str) -> None:
    assert harmless(f"{hidden}{sign}1+1") == f"'{hidden}{sign}1+1"


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        *((None, ""), (True, "true"), (-5, -5), (0.5, 0.5), ("a=b", "a=b"), ("", "")),
        *(("\ufeffa=b", "\ufeffa=b"), ("\u200b", "\u200b"), ("e\u0301=", "e\u0301=")),
    ],
)
def test_honest_cells_stay_as_they_are(value: Any, cell: Any) -> None:
    assert harmless(value) == cell


def test_a_table_can_be_read_back() -> None:
    stream = io.BytesIO()
    table = Table(stream)
    table.write(result(data={"title": '=cmd|"/c calc"!A1', "markdown": 'a,"b"\nc\x00'}))
    table.close()
    (row,) = csv.DictReader(io.StringIO(stream.getvalue().decode(), newline=""))
    assert row["title"] == '\'=cmd|"/c calc"!A1'
    assert row["content"] == 'a,"b"\nc'


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://example.com/", "example.com/index.md"),
        ("https://example.com/a", "example.com/a.md"),
        ("https://example.com/a/", "example.com/a/index.md"),
        ("https://example.com/a/b.html", "example.com/a/b.html.md"),
        ("http://127.0.0.1:8000/x", "127.0.0.1_8000/x.md"),
        ("https://example.com/a.md/b", "example.com/a.md_/b.md"),
        ("https://example.com/a.png/b", "example.com/a.png_/b.md"),
        ("https://example.com/b.pdf/", "example.com/b.pdf_/index.md"),
        ("https://example.com/a.png", "example.com/a.png.md"),
    ],
)
def test_files_lie_as_the_site_does(url: str, place: str) -> None:
    assert str(place_of(url)) == place


@pytest.mark.parametrize(
    "path",
    [
        *(
            "..%2f..%2fetc%2fpasswd",
            "%2e%2e/%2e%2e/x",
            ".hidden",
            "CON",
            "nul.txt",
            "a%00b",
            "a:b",
            "~",
            "con/aux",
            "...",
        ),
        *("x" * 3000, "%F0%9F%90%A7" * 100, "a/" * 200 + "b", "a?q=1", "A", "%5C..%5Cx", "-rf", " ", "%20", "a%0Ab"),
    ],
)
def test_no_name_leaves_the_folder_or_means_something(tmp_path: Path, path: str) -> None:
    folder = tmp_path / "out"
    ResultFolder(folder).write(result(f"https://example.com/{path}"))
    (file,) = folder.rglob("*.md")
    assert folder in file.resolve().parents
    for part in file.relative_to(folder).parts:
        assert not part.startswith("."), part
        assert part.isprintable(), part
        assert not set(part) & set('\\:*?"<>|'), part
        assert part.split(".")[0].lower() not in {"con", "nul", "aux"}, part
        assert len(part.encode()) <= 140


@pytest.mark.parametrize("force", [False, True])
def test_nothing_is_written_through_a_symbolic_link(tmp_path: Path, force: bool) -> None:
    (tmp_path / "elsewhere").mkdir()
    precious = tmp_path / "elsewhere" / "precious"
    precious.write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.example").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "out" / "b.example").mkdir()
    (tmp_path / "out" / "b.example" / "page.md").symlink_to(precious)
    folder = ResultFolder(tmp_path / "out", force=force)
    with pytest.raises(UsageError, match="through a symbolic link"):
        folder.write(result("https://a.example/page"))
    folder.write(result("https://b.example/page"))
    assert (tmp_path / "out" / "b.example" / "page.md").is_symlink() is not force, "the link is replaced with --force"
    assert precious.read_text() == "mine"
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["precious"]


@given(st.text(max_size=60))
def test_any_url_has_a_place(path: str) -> None:
    url = canonical(f"https://example.com/{path}")
    if url is not None:
        place = place_of(url)
        assert not place.is_absolute()
        assert ".." not in place.parts
        assert place.suffix == ".md"


def test_pages_whose_names_meet_are_both_kept(tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path / "out")
    for url in (
        "http://example.com/a",
        "https://example.com/a",
        "https://example.com/a?b=1",
        "https://example.com/a?b=2",
    ):
        folder.write(result(url))
    assert len(list(tmp_path.rglob("*.md"))) == 4


LONGEST_PATH = 4096  # bytes on Linux, with a NUL at the end


def deep_folder(start: Path, length: int) -> Path:
    """A folder whose path has this length."""
    folder = start
    while (missing := length - len(str(folder)) - 1) > 0:
        folder /= "d" * (missing if missing <= 200 else min(200, missing - 2))
    return folder


@pytest.mark.parametrize("force", [False, True])
def test_a_page_whose_path_is_too_long_gets_a_short_name(tmp_path: Path, force: bool) -> None:
    path = deep_folder(tmp_path, LONGEST_PATH - 200)
    pages = [result(f"https://example.com/{name}") for name in ("a", "x" * 110 + "/" + "y" * 110, "b")]
    with to_path("md", path, force=force) as folder:
        for page in pages:
            folder.write(page)
    files = [file for file in path.rglob("*") if file.is_file()]
    assert {file.read_bytes() for file in files} == {document(page).encode() for page in pages}
    (short,) = set(files) - {path / "example.com" / name for name in ("a.md", "b.md")}
    assert short.parent == path
    assert short.name.startswith("page-")


def test_pages_that_the_disk_refuses_in_any_case_are_counted_at_the_end(tmp_path: Path) -> None:
    path = deep_folder(tmp_path, LONGEST_PATH - 20)
    with pytest.raises(UsageError, match=r"2 pages were not written: .* \(https://example.com/long/name\)"):  # noqa: PT012, SIM117
        with to_path("md", path) as folder:
            for url in ("https://example.com/long/name", "https://a.b/c", "https://example.com/other/name"):
                folder.write(result(url))
    assert [file.name for file in path.rglob("*.md")] == ["c.md"]


def test_a_name_in_letters_that_the_system_does_not_have_is_replaced(tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
from silkline.export.open import to_path
from tests.unit.test_export import result
assert sys.getfilesystemencoding() == "ascii"
with to_path("md", Path(sys.argv[1])) as folder:
    for name in ("caf%C3%A9", "plain", "%E8%8C%B6/x"):
        folder.write(result(f"https://example.com/{name}"))
"""
    root = Path(__file__).parents[2]
    ascii_only = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C", "PYTHONPATH": f"{root / 'src'}:{root}"}
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "out")], env={**os.environ, **ascii_only}, check=True)
    names = sorted(str(file.relative_to(tmp_path / "out")) for file in tmp_path.rglob("*.md"))
    assert names[0] == "example.com/plain.md"
    assert [name[:5] for name in names[1:]] == ["page-", "page-"]


def test_front_matter_cannot_be_broken_out_of() -> None:
    text = document(result(data={"title": 'x"\n---\nevil: "', "markdown": "text"}))
    head = text.split("---\n")[1]
    assert json.loads(head.splitlines()[0].removeprefix("title: ")) == 'x"\n---\nevil: "'


def test_a_large_sitemap_is_split(tmp_path: Path) -> None:
    path = tmp_path / "map.xml"
    with path.open("w+b") as stream, ExitStack() as files:
        sitemap = SitemapFile(stream, path, files, most=2)
        for number in range(5):
            sitemap.write(result(f"https://example.com/{number}?a=1&b=2"))
        sitemap.write(result(success=False))
        sitemap.write(result(metadata={"http_status": 304}))
        sitemap.close()
    parts = [(tmp_path / f"map-{number}.xml").read_text() for number in (1, 2, 3)]
    assert [part.count("<loc>") for part in parts] == [2, 2, 1]
    assert all(part.endswith("</urlset>\n") for part in parts)
    assert "<loc>https://example.com/0?a=1&amp;b=2</loc>" in parts[0]
    assert path.read_text().count("<loc>https://example.com/map-") == 3


def test_a_file_appears_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("the old one")

    def fail() -> None:
        with to_path("jsonl", path, force=True) as writer:
            writer.write(result())
            raise RuntimeError("no space, no power, no patience")

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "the old one"
    assert list(tmp_path.iterdir()) == [path]


def test_json_lines_hold_the_whole_result() -> None:
    stream = io.BytesIO()
    JsonLines(stream).write(result())
    assert json.loads(stream.getvalue())["data"] == {"title": "A", "markdown": "# A"}


WRONG = [
    {"title": {"a": [1]}, "markdown": 7, "description": True, "language": ["x"], "lastmod": {"y": 1}},
    {"title": 1.5, "text": None, "transcript": {}},
]


@pytest.mark.parametrize("data", WRONG, ids=str)
@pytest.mark.parametrize("form", ["csv", "jsonl", "md", "sitemap", "parquet"])
def test_values_of_a_wrong_type_break_no_export(tmp_path: Path, data: dict[str, Any], form: str) -> None:
    """Stored before types were checked, or by a plugin."""
    metadata = {
        "redirected_from": 7,
        "bytes": "many",
        "seconds": [],
        "http_status": "200",
        "detail": {},
        "own": {"x": 1},
    }
    path = tmp_path / f"out.{form}"
    stored = with_right_types(result(data=data, metadata=metadata))
    with to_path(form, path) as writer:
        writer.write(stored)
        writer.write(with_right_types(result("https://example.com/2", metadata={"redirected_from": ["a", 1]})))
    assert path.exists()
    assert stored.metadata["own"] == {"x": 1}
    assert with_right_types(result()).data == result().data


def test_filters() -> None:
    page = result("https://example.com/docs/a", metadata={"http_status": 404}, success=False)
    assert Filter().wants(page)
    assert Filter(state="failed", statuses=("4xx",), match="docs").wants(page)
    assert not Filter(state="done").wants(page)
    assert not Filter(statuses=("200", "5xx")).wants(page)
    assert not Filter(match="^docs").wants(page)
    for wrong in ({"statuses": ("2x",)}, {"match": "("}):
        with pytest.raises(UsageError):
            Filter(**wrong)


def test_the_name_of_a_file_tells_its_form() -> None:
    names = {"a.csv": "csv", "a.parquet": "parquet", "a.xml": "sitemap", "a.jsonl": "jsonl", "a": "jsonl"}
    assert {name: format_of(name) for name in names} == names


def rows_of(*results: Result) -> list[dict[str, str]]:
    stream = io.BytesIO()
    table = Table(stream, columns=columns_in(results))
    for each in results:
        table.write(each)
    table.close()
    return list(csv.DictReader(io.StringIO(stream.getvalue().decode(), newline=""), strict=True))


def test_a_table_has_a_column_for_each_name_in_the_data() -> None:
    first = result(data={"words": 7, "tags": ["a", "b"], "markdown": "text"})
    second = result(url_id=2, data={"author": {"name": "Ada"}, "words": None, "bytes": 5, "=x": "=y"})
    one, two = rows_of(first, second)
    assert list(one)[-5:] == ["words", "tags", "author", "data.bytes", "'=x"]
    assert (one["words"], json.loads(one["tags"]), one["author"], one["content"]) == ("7", ["a", "b"], "", "text")
    assert (two["words"], two["data.bytes"], two["'=x"]) == ("", "5", "'=y")
    assert json.loads(two["author"]) == {"name": "Ada"}
    assert two["bytes"] == "", "the size of the answer is another thing"


def test_a_table_keeps_everything_of_data_with_very_many_names() -> None:
    many = {f"name-{number}": number for number in range(1_500)}
    (row,) = rows_of(result(data=many))
    rest = json.loads(row["data"])
    shown = {name: int(row[name]) for name in many if name in row}
    assert {**shown, **rest} == many
    assert len(row) < 1_100


def test_very_long_names_in_the_data_are_no_columns() -> None:
    (row,) = rows_of(result(data={"x" * 5_000: 1, "words": 7}))
    assert (json.loads(row["data"]), row["words"]) == ({"x" * 5_000: 1}, "7")
    assert max(map(len, row)) < 100


def test_a_result_that_came_after_the_columns_is_not_in_the_table() -> None:
    """A job may store results while its table is downloaded."""
    first, late = result(data={"words": 7}), result(url_id=2, data={"pictures": 8})
    stream = io.BytesIO()
    table = Table(stream, columns=columns_in([first]))
    assert all(table.write(each) for each in (first, late))
    assert [row["words"] for row in csv.DictReader(io.StringIO(stream.getvalue().decode(), newline=""))] == ["7"]


@pytest.mark.parametrize("text", ['"', "a", "a,b", "\u00e9\n", "\ud800\r", "", " x", "=", '"""'])
def test_long_cells_are_written_like_short_ones(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    cells = ["x", text * 50, "", None, 5, text]
    expected = line_of(cells), line_of(["", text * 50])
    for piece in (1, 2, 7):
        monkeypatch.setattr("silkline.export.table.PIECE", piece)
        assert (line_of(cells), line_of(["", text * 50])) == expected
    assert 50 * len(text) < PIECE


def test_markdown_keeps_what_a_job_stored_besides_the_text() -> None:
    text = document(result(data={"title": "A", "words": 7, "tags": ["a"], "markdown": "# A"}))
    (line,) = [line for line in text.splitlines() if line.startswith("data: ")]
    assert json.loads(line.removeprefix("data: ")) == {"words": 7, "tags": ["a"]}
    assert text.endswith("# A\n")
    assert "data:" not in document(result())


@pytest.mark.parametrize("name", ["contact", "console", "conference.html", "auxiliary", "nullable", "com10", "prnt"])
def test_names_that_only_begin_like_a_reserved_one_stay(name: str) -> None:
    assert str(place_of(f"https://example.com/{name}")) == f"example.com/{name}.md"


@pytest.mark.parametrize("name", ["con", "CON", "nul.txt", "com1", "lpt9.x.y"])
def test_reserved_names_do_not_stay(name: str) -> None:
    assert place_of(f"https://example.com/{name}").name.startswith("_")


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet", "sitemap", "warc", "md"])
def test_no_form_writes_over_what_is_there_unless_told(tmp_path: Path, form: str) -> None:
    path = tmp_path / "there"
    if form == "md":
        path.mkdir()
        (path / "mine.txt").write_text("mine")
    else:
        path.write_text("mine")
    with pytest.raises(UsageError, match="--force"):
        refuse_to_overwrite(form, path, force=False)
    refuse_to_overwrite(form, path, force=True)
    refuse_to_overwrite(form, tmp_path / "new", force=False)


def test_the_parts_of_a_sitemap_are_not_written_over_either(tmp_path: Path) -> None:
    (tmp_path / "map-1.xml").write_text("mine")
    with pytest.raises(UsageError, match=r"map-1\.xml exists"):
        refuse_to_overwrite("sitemap", tmp_path / "map.xml", force=False)


def test_a_folder_that_is_written_into_again_has_the_same_files(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    for _ in range(2):
        with to_path("md", folder, force=True) as writer:
            for url in ("http://example.com/a", "https://example.com/a"):
                writer.write(result(url))
    assert len(list(folder.rglob("*.md"))) == 2


def test_the_files_of_a_page_are_beside_it(tmp_path: Path) -> None:
    about = {"files": {"screenshot": {"type": "image/png", "bytes": 7, "host": "here"}}}
    page = result("https://example.com/start", metadata=about)
    stored = path_of(tmp_path / "data", page.job_id, page.url_id, "screenshot")
    stored.parent.mkdir(parents=True)
    stored.write_bytes(b"picture")
    with to_path("md", tmp_path / "out", data=tmp_path / "data") as writer:
        writer.write(page)
    assert (tmp_path / "out" / "example.com" / "start.png").read_bytes() == b"picture"
    assert 'screenshot: "start.png"\n' in (tmp_path / "out" / "example.com" / "start.md").read_text()


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_long_values_are_only_in_the_first_row_of_a_page(form: str) -> None:
    """Rows of a few bytes repeated the data of their page, which can have megabytes, and its long URL."""
    url = "https://example.com/" + "x" * 7_000
    data = {"title": "A", "markdown": "# A", "images": ["y" * 1_000], "rows": [{"name": "a"}, {"name": "b"}]}
    stream = io.BytesIO()
    page = result(url, data=data, metadata={"redirected_from": [url] * 10, "http_status": 200})
    fields = FieldColumns({"name": {}}, rows=True)
    table = Table(stream, fields, columns_in([page], fields)) if form == "csv" else Parquet(stream, fields)
    table.write(page)
    table.close()
    if form == "csv":
        first, second = csv.DictReader(io.StringIO(stream.getvalue().decode(), newline=""))
    else:
        first, second = load().parquet.read_table(io.BytesIO(stream.getvalue())).to_pylist()
    assert (first["final_url"], second["final_url"] or None) == (url, None)
    assert [(str(each["url_id"]), each["title"], each["name"]) for each in (first, second)] == [
        ("1", "A", "a"),
        ("1", "A", "b"),
    ]
    assert sum(len(str(value)) for value in second.values()) < 500


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_rows_of_a_page_are_not_kept(form: str) -> None:
    """A row of two bytes in a page has a value for each field of the job."""
    if form == "parquet":
        load()
    fields = FieldColumns({f"field-{number}": {} for number in range(50)}, rows=True)
    page = result(data={"rows": [{}] * 40_000})
    table = (Table if form == "csv" else Parquet)(NoBytes(), fields)
    tracemalloc.start()
    try:
        table.write(page)
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()
    table.close()


class NoBytes(io.BytesIO):
    """A file that forgets what is written."""

    def write(self, data: Any) -> int:
        return len(data)

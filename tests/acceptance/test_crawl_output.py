"""`silkline crawl -o FILE`: the results of a crawl in a file of one's choice, or a refusal before it begins."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from silkline.sample.server import SampleServer
from tests.acceptance.conftest import ROOT, Silkline

FAST = ("--speed", "max", "--fetchers", "1", "--limit", "12")


@pytest.fixture(scope="module")
def sample() -> Iterator[SampleServer]:
    with SampleServer(0) as server:
        yield server


def test_the_ending_says_what_is_written(silkline: Silkline, sample: SampleServer) -> None:
    done = silkline("crawl", sample.url, "-o", "pages.jsonl", *FAST)
    assert (done.code, done.out) == (0, ""), done
    assert "\n12 results were written to pages.jsonl.\nNext commands:\n" in done.err, done
    assert "silkline results" not in done.err, "nobody needs the command for what is written anyway"
    lines = (silkline.folder / "pages.jsonl").read_text().splitlines()
    assert lines == silkline("results", "last").out.splitlines()
    assert json.loads(lines[0])["final_url"] == sample.url

    done = silkline("crawl", sample.url, "--output", "pages.csv", *FAST)
    assert done.code == 0, done
    with (silkline.folder / "pages.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 12


@pytest.mark.parametrize("name", ["new/", "there"])
def test_a_folder_gets_markdown(silkline: Silkline, sample: SampleServer, name: str) -> None:
    (silkline.folder / "there").mkdir()
    done = silkline("crawl", sample.url, "-o", name, *FAST)
    assert done.code == 0, done
    files = list((silkline.folder / name).rglob("*.md"))
    assert len(files) == 12
    assert any("Tern Rock" in file.read_text() for file in files)


def test_answers_as_they_came(silkline: Silkline, sample: SampleServer) -> None:
    done = silkline("crawl", sample.url, "--warc", "-o", "pages.warc.gz", *FAST)
    assert done.code == 0, done
    assert (silkline.folder / "pages.warc.gz").read_bytes()[:2] == b"\x1f\x8b"


def test_what_cannot_be_written_is_refused_before_the_crawl(silkline: Silkline, sample: SampleServer) -> None:
    full = silkline.folder / "full"
    full.mkdir()
    (full / "mine.txt").write_text("keep")
    for arguments, words in {
        ("-o", "pages.doc"): "the format is not known from this name",
        ("-o", "pages"): "the format is not known from this name",
        ("-o", "pages.warc"): "add --warc",
        ("-o", "nowhere/pages.jsonl"): "there is no folder",
        ("-o", "full"): "exists and is not empty",
        ("-o", "pages.jsonl", "--detach"): "silkline results ID -o pages.jsonl",
    }.items():
        silkline("crawl", sample.url, *arguments).refused(2, words)
    assert silkline("jobs", "--json").json == []


@pytest.mark.parametrize(("name", "library"), [("pages.parquet", "pyarrow"), ("pages.warc.gz", "warcio")])
def test_a_missing_extra_is_named_before_the_crawl(silkline: Silkline, name: str, library: str, tmp_path: Path) -> None:
    (tmp_path / "without" / library).mkdir(parents=True)
    (tmp_path / "without" / library / "__init__.py").write_text("raise ImportError('not installed')\n")
    path = f"{tmp_path / 'without'}:{ROOT / 'src'}"
    asked = silkline("crawl", "http://127.0.0.1:9/", "--warc", "-o", name, PYTHONPATH=path)
    asked.refused(2, f"needs {library}", f"pip install 'silkline[{'parquet' if library == 'pyarrow' else 'warc'}]'")
    assert silkline("jobs", "--json").json == []

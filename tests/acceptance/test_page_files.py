"""`--screenshot` and `--pdf` at the command line: refused without a browser, and found where the command says."""

import re
from pathlib import Path

import pytest

from silkline.sample.server import SampleServer
from tests.acceptance.conftest import Silkline


@pytest.mark.parametrize("command", [("fetch",), ("crawl",)])
def test_a_picture_without_a_browser_is_refused(silkline: Silkline, command: tuple[str, ...]) -> None:
    refused = silkline(*command, "http://127.0.0.1:9/", "--screenshot", "full")
    refused.refused(2, "--screenshot needs a browser: add --render always")


@pytest.mark.usefixtures("chromium")
def test_a_page_says_where_its_files_are(silkline: Silkline) -> None:
    with SampleServer() as site:
        done = silkline(site.url, "--render", "always", "--screenshot", "viewport", "--pdf")
    assert done.code == 0, done
    files = [Path(path) for path in re.findall(r"^(?:screenshot|pdf): (.+)$", done.err, re.MULTILINE)]
    assert [path.read_bytes()[:4] for path in files] == [b"\x89PNG", b"%PDF"]
    exported = silkline("results", "last", "--format", "md", "-o", "pages/")
    assert exported.code == 0, exported
    assert sorted(path.suffix for path in (silkline.folder / "pages").rglob("index.*")) == [".md", ".pdf", ".png"]
    assert silkline("jobs", "rm", "last").code == 0
    assert not any(path.exists() for path in files)

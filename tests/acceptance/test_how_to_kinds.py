"""The commands of docs/how-to for the kinds that are not plain pages, run as they stand against servers of our own."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from silkline.sample.server import SampleServer
from tests.acceptance.conftest import ROOT, Finished, Silkline
from tests.service.test_kind_bluesky import Sky
from tests.service.test_kind_crawl4ai import PUBLIC, STAND_IN
from tests.service.test_kind_youtube import Tube
from tests.support.served import Served

HOW_TO = ROOT / "docs" / "how-to"


def commands(page: str) -> Iterator[list[str]]:
    """Each line of the page's blocks that begins with `silkline`."""
    for block in re.findall(r"^```\n(.*?)^```", (HOW_TO / page).read_text(), re.MULTILINE | re.DOTALL):
        yield from (shlex.split(line)[1:] for line in block.splitlines() if line.startswith("silkline "))


def run(silkline: Silkline, page: str, instead: dict[str, str] | None = None, **environment: str) -> list[Finished]:
    """Run them in order, with other words in place of some."""
    done = []
    for command in commands(page):
        words = [(instead or {}).get(word, word) for word in command]
        done.append(silkline(*words, **environment))
        assert done[-1].code == 0, (words, done[-1])
    assert len(done) >= 2
    return done


def test_bluesky(silkline: Silkline) -> None:
    sky = Sky()
    with sky.server as server:
        _, ran, exported = run(silkline, "bluesky.md", SILKLINE_BLUESKY_URL=server.url)
        assert "20 done" in ran.err, ran
        rows = exported.out.splitlines()
        assert len(rows) == 21
        assert {"text", "author"} <= set(rows[0].split(",")), rows[0]
        assert "Post 7" in exported.out
    assert "puffins" in silkline("jobs").out
    assert silkline("jobs", "show", "last", "--json").json["url"] == "puffins"
    assert "Query" in silkline("jobs", "show", "last").out


def test_youtube(silkline: Silkline) -> None:
    tube = Tube()
    with tube.server as server:
        run(silkline, "youtube.md", SILKLINE_YOUTUBE_URL=server.url)
    (file,) = (silkline.folder / "transcripts").rglob("*.md")
    text = file.read_text()
    assert "no larger than your fist" in text
    assert '"channel"' in text, "what the job stored besides the text is kept"


def test_crawl4ai_has_to_be_switched_on(silkline: Silkline) -> None:
    add = next(commands("crawl4ai.md"))
    silkline(*add).refused(2, "crawl4ai is switched off", "SILKLINE_CRAWL4AI=true")
    assert silkline("jobs", "--json").json == []


def test_crawl4ai(silkline: Silkline, tmp_path: Path) -> None:
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "crawl4ai.py").write_text(STAND_IN)
    path = f"{tmp_path / 'library'}:{ROOT / 'src'}"
    other = {"https://example.com/": f"{PUBLIC}/page"}
    *_, shown = run(silkline, "crawl4ai.md", other, SILKLINE_CRAWL4AI="true", PYTHONPATH=path)
    assert shown.json["data"]["markdown"] == "# Rendered"


def test_extension(silkline: Silkline, tmp_path: Path) -> None:
    """The page is brought by docs/how-to/external_worker.py, which asks as the browser extension does."""
    url = f"sqlite:///{tmp_path / 'data' / 'silkline.db'}"
    add, results = commands("extension.md")
    with closing(Served(url, tmp_path)) as server, SampleServer() as site:
        client = server.ready()
        added = silkline(*(f"{site.url}birds/puffin" if word.startswith("https://") else word for word in add))
        assert added.code == 0, added
        script = [sys.executable, str(HOW_TO / "external_worker.py"), f"http://127.0.0.1:{client.port}"]
        script += ["--once", "--allow-private"]
        subprocess.run(script, env=silkline.environment(), check=True, timeout=120, capture_output=True)
    assert "Puffins dig." in silkline(*results).out


@pytest.mark.parametrize("kind", ["youtube", "bluesky", "crawl4ai", "extension"])
def test_every_kind_has_a_page_with_a_command(kind: str) -> None:
    assert any(f"--kind {kind}" in " ".join(command) for command in commands(f"{kind}.md"))


def test_the_token_of_the_extension_may_only_do_the_work_of_a_worker(silkline: Silkline) -> None:
    command = "silkline tokens add browser --scope worker"
    for text in (HOW_TO / "extension.md", HOW_TO / "api.md", ROOT / "extension" / "options.html"):
        assert command in text.read_text(), text
    assert silkline(*shlex.split(command)[1:], "--json").json["scope"] == "worker"

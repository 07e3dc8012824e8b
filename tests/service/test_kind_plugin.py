"""The kind of docs/how-to/write-a-kind.md, that very file, installed and run by a real supervisor."""

import os
from pathlib import Path

from silkline.model.job import NewJob, Status
from silkline.sample.server import SampleServer
from silkline.store import jobs, results
from tests.support.plugins import install
from tests.support.supervisors import Yard

HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "how-to"
SOURCE = (HOW_TO / "word_count.py").read_text()


def test_the_page_shows_the_file() -> None:
    text = (HOW_TO / "write-a-kind.md").read_text()
    shown = text.split("```python\n")[1].split("```")[0]
    assert shown in SOURCE
    body = SOURCE[SOURCE.index("class WordCount") :]
    assert shown.strip() == body.strip()
    assert sum(bool(line.strip()) for line in shown.splitlines()) <= 22


def test_the_example_runs(yard: Yard, tmp_path: Path) -> None:
    plugins = install(tmp_path / "plugins", {"word_count": SOURCE}, {"word-count": "word_count:run"})
    path = os.pathsep.join(filter(None, (str(plugins), os.environ.get("PYTHONPATH"))))
    yard.start(environment={"PYTHONPATH": path}, fence_after=60.0, stale_after=90.0)
    with SampleServer() as site:
        asked = [f"{site.url}birds/{name}" for name in ("puffin", "eider", "arctic-tern")]
        payload = {"urls": asked, "speed": "max", "allow_private": ["127.0.0.0/8"]}
        (pages,) = jobs.enqueue_many(yard.database, [NewJob("page", payload)])
        yard.wait_for(pages, Status.COMPLETED)
    (count,) = jobs.enqueue_many(yard.database, [NewJob("word-count", {"job": pages})])
    yard.wait_for(count, Status.COMPLETED)
    words = {result.final_url: result.data["words"] for result in results.every(yard.database, count)}
    assert words == {
        result.final_url: len(result.data["markdown"].split()) for result in results.every(yard.database, pages)
    }
    assert min(words.values()) > 40
    assert yard.adds_up(count)
    (wrong,) = jobs.enqueue_many(yard.database, [NewJob("word-count", {"jbo": pages})])
    assert "did you mean 'job'" in (yard.wait_for(wrong, Status.FAILED).error_message or "")
    (unknown,) = jobs.enqueue_many(yard.database, [NewJob("word-count", {"job": "0" * 36})])
    failed = yard.wait_for(unknown, Status.FAILED)
    assert (failed.error_message, failed.attempt) == (f"no job {'0' * 36}", 1)

"""A person crawls in several shards at the command line: in the foreground, with Ctrl-C, as one crawl."""

import json
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from silkline.store import jobs, results
from silkline.store.opening import open_database
from tests.acceptance.conftest import PATIENCE, Silkline
from tests.crawl.harness import SyntheticWeb
from tests.support.supervisors import eventually

FAST = ("--speed", "max", "--content", "none", "--scope", "any", "--allow-private", "127.0.0.0/8")


@pytest.fixture(scope="module")
def web() -> Iterator[SyntheticWeb]:
    with closing(SyntheticWeb(hosts=6, pages=4)) as running:
        yield running


def test_sqlite_refuses_shards_with_a_sentence(silkline: Silkline) -> None:
    silkline("crawl", "https://one.example/", "--shards", "2").refused(
        2, "shards need PostgreSQL: set SILKLINE_DATABASE_URL"
    )


def test_a_crawl_in_shards_runs_here_pauses_and_goes_on(
    silkline: Silkline, tmp_path: Path, postgres_url: str, web: SyntheticWeb
) -> None:
    silkline.database_url = postgres_url
    seeds = tmp_path / "seeds.txt"
    seeds.write_text(f"{web.start}\n{web.web.url(web.web.places[-1], web.port)}\n")
    web.slow_after(8)
    with closing(open_database(postgres_url)) as database:
        running = silkline.start("crawl", "--seeds", str(seeds), "--shards", "2", "--json", *FAST)
        begun = lambda: [job.id for job in jobs.page(database) if results.count(database, job.id) >= 2]  # noqa: E731
        (newest,) = eventually("it has stored some pages", begun)
        running.send_signal(signal.SIGINT)
        assert running.wait(PATIENCE) == 3
        web.slow_after(None)
        done = silkline("resume", newest, "--json")
        assert (done.code, json.loads(done.out)["status"]) == (0, "completed"), done
        stored = [result.final_url for result in results.every(database, newest)]
    assert sorted(stored) == sorted(web.reachable())
    listed = json.loads(silkline("jobs", "ls", "--json").out)
    assert [job["id"] for job in listed] == [newest]
    several = json.loads(silkline("jobs", "ls", "--shards", "--json").out)
    assert [(job["shard"], job["status"]) for job in several] == [(each, "completed") for each in (None, 0, 1)]
    way = silkline("explain", newest, sorted(stored)[-1])
    assert way.code == 0, way
    assert "done" in way.out

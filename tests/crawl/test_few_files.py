"""A crawl that may open few files fits itself to them; when they run out it waits, and loses nothing."""

from __future__ import annotations

import logging
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from silkline.crawl.file_budget import LEAST_FILES, connections_for, fitted, look_ups_for
from silkline.crawl.plan_from_spec import plan_of
from silkline.errors import Permanent
from silkline.model.spec import SiteSpec
from silkline.store import jobs, logs, urls
from silkline.store.opening import open_database
from tests.crawl.harness import ENVIRONMENT, ROOT, Crawl, SyntheticWeb, closing

HOSTS = 300


@pytest.fixture(scope="module")
def slow_hosts() -> Iterator[SyntheticWeb]:
    with closing(SyntheticWeb(hosts=HOSTS, pages=1, latency=0.2)) as web:
        yield web


def seeds(web: SyntheticWeb) -> list[str]:
    return [web.web.url(place, web.port) for place in web.web.places]


def with_files(number: int, *command: str) -> list[str]:
    """The command, in a shell whose processes may open so many files."""
    return ["sh", "-c", f'ulimit -n {number} && exec {shlex.join(command)} "$@"', "sh"]


def plan(concurrency: int, **more: Any) -> Any:
    spec = SiteSpec(url="https://example.com/", concurrency=concurrency, **more)
    return plan_of(spec, fetchers=1, concurrency=256)


@pytest.mark.parametrize("files", [LEAST_FILES, 256, 1024, 4096, 1 << 20])
def test_requests_idle_connections_and_the_rest_fit_into_the_files(files: int) -> None:
    found = fitted(plan(10_000), logging.getLogger("test"), files)
    assert 0 < found.concurrency <= connections_for(found, files) < files - 2 * look_ups_for(files)


def test_a_crawl_that_needs_less_is_left_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    wanted = plan(100)
    assert fitted(wanted, logging.getLogger("test"), 1024) == wanted
    assert caplog.records == []


@pytest.mark.parametrize(("files", "more"), [(LEAST_FILES - 1, {}), (1024, {"fetchers": 200, "parsers": 200})])
def test_below_the_floor_it_is_refused_with_a_sentence(files: int, more: dict[str, int]) -> None:
    with pytest.raises(Permanent, match=r"only [\d,]+ files may be open here, and a crawl with .* needs at least"):
        fitted(plan(10, **more), logging.getLogger("test"), files)


def silkline(folder: Path, files: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    ours = {"SILKLINE_DATA": str(folder / "data"), "SILKLINE_DISK_FREE_MIN": "0"}
    return subprocess.run(
        with_files(files, sys.executable, "-m", "silkline", *arguments),
        cwd=ROOT,
        env={**ENVIRONMENT, **ours},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_the_command_crawls_many_slow_hosts_with_few_files(tmp_path: Path, slow_hosts: SyntheticWeb) -> None:
    (tmp_path / "seeds").write_text("\n".join(seeds(slow_hosts)))
    options = ("--scope", "any", "--depth", "0", "--speed", "max", "--allow-private", "127.0.0.0/8")
    done = silkline(
        tmp_path, 256, "crawl", "--seeds", str(tmp_path / "seeds"), "--concurrency", "2000", "--fetchers", "2", *options
    )
    assert done.returncode == 0, done.stderr
    with closing(open_database(f"sqlite:///{tmp_path / 'data' / 'silkline.db'}")) as database:
        job = jobs.find(database, "last")
        assert job.attempt == 1
        assert urls.counts(database, job.id).done == HOSTS
        said = "\n".join(line.message for line in logs.page(database, job.id))
    assert "only 256 files may be open here: each fetcher sends" in said
    assert "not 2000" in said


def test_a_command_with_too_few_files_is_refused_before_a_job_exists(tmp_path: Path) -> None:
    refused = silkline(tmp_path, 100, "crawl", "http://127.0.0.1:1/")
    assert refused.returncode == 2
    assert "the limit of open files is 100" in refused.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("sizes", [{"fetchers": 1}, {"fetchers": 2, "parsers": 1}])
def test_running_out_of_files_is_waited_out(tmp_path: Path, slow_hosts: SyntheticWeb, sizes: dict[str, int]) -> None:
    with closing(Crawl(tmp_path)) as crawl:
        crawl.enqueue(urls=seeds(slow_hosts), scope="any", depth=0, concurrency=50, **sizes)
        crawl.command = with_files(200, sys.executable, str(ROOT / "tests" / "crawl" / "run_site_without_files.py"))
        crawl.start()
        assert crawl.finish() == "completed"
        ledger = crawl.ledger()
        assert {row.state for row in ledger.values() if row.depth == 0} == {"done"}
        assert {row.attempts for row in ledger.values() if row.depth == 0} == {1}
        crawl.assert_books_balance()

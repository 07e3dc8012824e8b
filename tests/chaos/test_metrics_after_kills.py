"""The metrics of a crawl whose processes were all killed once equal its ledger, to the page."""

from __future__ import annotations

import os
import signal
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from silkline.model.job import NewJob, Status
from silkline.process_usage import LEADER, below, by_role, children_by_parent, usage_of
from silkline.store import jobs, results, urls
from tests.crawl.harness import SyntheticWeb, closing
from tests.support.daemon import free_port
from tests.support.supervisors import Yard, eventually
from tests.support.supervisors import yard as open_yard

Figures = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(port: int) -> Figures:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    families = list(text_string_to_metric_families(text))
    return {(each.name, frozenset(each.labels.items())): each.value for family in families for each in family.samples}


def figure_of(figures: Figures, name: str, **labels: str) -> float:
    return figures.get((name, frozenset(labels.items())), 0.0)


def sum_of(figures: Figures, name: str) -> float:
    return sum(value for (found, _), value in figures.items() if found == name)


def children(runner: int, role: str) -> list[psutil.Process]:
    """The living children of this role. Any of them may end while it is looked at."""
    found = []
    with suppress(psutil.NoSuchProcess):
        for child in psutil.Process(runner).children():
            with suppress(psutil.NoSuchProcess):
                if role in child.cmdline():
                    found.append(child)
    return found


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    """On SQLite only: tests/store shows on both databases that the counts are part of the checkpoint."""
    with open_yard(f"sqlite:///{tmp_path}/metrics.db", tmp_path) as place:
        yield place


def test_counters_equal_the_ledger_after_each_process_was_killed_once(yard: Yard) -> None:
    port = free_port()
    payload = {"speed": "max", "allow_private": ["127.0.0.0/8"], "content": "none", "scope": "any"}
    with closing(SyntheticWeb(hosts=30, pages=12, latency=0.01)) as web:
        reachable = web.reachable()
        sizes = {"fetchers": 3, "parsers": 2, "concurrency": 12}
        job, _ = jobs.enqueue(yard.database, NewJob("site", {**payload, **sizes, "url": web.start}, max_retries=10))
        web.slow_after(60)
        yard.start(metrics_port=port)
        runner = yard.runner_of(job.id)
        for role in ("parser", "fetcher"):
            eventually(f"two {role}s run", lambda role=role: len(children(runner, role)) == 2)
            named = by_role(usage_of(below(runner, children_by_parent()), runner, LEADER))
            assert (role, 2) in [(each.role, each.processes) for each in named], "the log and the fleet name them so"
            before = urls.counts(yard.database, job.id).done
            eventually("pages are stored", lambda before=before: urls.counts(yard.database, job.id).done > before)
            killed = children(runner, role)
            assert len(killed) == 2
            for process in killed:
                os.kill(process.pid, signal.SIGKILL)
            web.slow_after(60)
        lease = yard.job(job.id).run_lease
        # A killed process is listed for a moment longer.
        eventually("both fetchers were replaced", lambda: len(set(children(runner, "fetcher")) - set(killed)) == 2)
        os.kill(runner, signal.SIGKILL)  # fetcher 0, the leader
        yard.runner_of(job.id, after=lease)
        web.slow_after(None)
        yard.wait_for(job.id, Status.COMPLETED)
        fetched = sum(path != "/robots.txt" for _, _, path in web.log())

    counts, figures = urls.counts(yard.database, job.id), scrape(port)
    assert counts.done == len(reachable) >= 300
    for state in ("done", "unchanged", "failed", "skipped"):
        assert figure_of(figures, "silkline_urls_settled_total", state=state) == getattr(counts, state)
    assert figure_of(figures, "silkline_urls_discovered_total") == counts.discovered
    assert figure_of(figures, "silkline_page_bytes_total") == counts.bytes
    assert figure_of(figures, "silkline_results_total") == results.count(yard.database, job.id)
    assert figure_of(figures, "silkline_checkpoints_total") == counts.checkpoints
    # Work is counted where it happens, also work that was done again. Only a request in flight when its process was
    # killed ended for nobody.
    requests = figure_of(figures, "silkline_requests_total", purpose="page", status="2xx")
    assert counts.done <= requests <= fetched
    assert figure_of(figures, "silkline_fetch_seconds_count") == requests
    assert sum_of(figures, "silkline_parse_seconds_count") >= counts.done
    assert figure_of(figures, "silkline_process_deaths_total", role="parser") == 2
    assert figure_of(figures, "silkline_process_deaths_total", role="fetcher") == 2
    assert figure_of(figures, "silkline_crashes_total", reason="signal_9") == 1
    assert figure_of(figures, "silkline_attempts_total", kind="site", outcome="completed") == 1
    # The crawl is over: what its processes showed last does not count any more.
    assert figure_of(figures, "silkline_in_flight") == figure_of(figures, "silkline_unsaved_pages") == 0
    assert figure_of(figures, "silkline_processes", role="fetcher") == 0
    assert figure_of(figures, "silkline_processes", role="supervisor") == 1

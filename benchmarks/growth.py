"""Measures the cost of a page while the ledger grows from a thousand URLs to a million and more, in one crawl.

    make bench BENCH=growth ARGS="--pages 30000"

Uses the pages of benchmarks/crawl.py, one fetcher, links only. The cost is the CPU time of the crawling process between
two moments, divided by the pages that were stored between them. The end of the crawl (URLs that are skipped at the
limit, the index) has its own line. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import bisect
import os
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from benchmarks import crawl

BOUNDS = [10**3, 10**4, 10**5, 3 * 10**5, 10**6]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=30_000)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    with crawl.nginx("1") as web:
        for _ in range(options.rounds):
            crawl_once(web["http"], options.pages)


def crawl_once(start: str, wanted: int) -> None:
    """Store a job, and crawl it in its own process, which measures itself."""
    from silkline.model.job import NewJob
    from silkline.store import jobs
    from silkline.store.opening import open_database

    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/crawl.db"
        with closing(open_database(url)) as database:
            payload = {"url": start, "scope": "any", "speed": "max", "ignore_robots": True, "limit": wanted}
            payload |= {"content": "none", "fetchers": 1, "parsers": 0, "allow_private": ["127.0.0.0/8"]}
            job, _ = jobs.enqueue(database, NewJob("site", payload))
        environment = {**os.environ, "PYTHONPATH": f"{crawl.ROOT / 'src'}:{crawl.ROOT}"}
        command = ["taskset", "-c", "0", sys.executable, "-P", __file__, url, job.id]
        subprocess.run(command, env=environment, check=True)


def child(database: str, job: str) -> None:
    """Run the crawl and measure it in the same process."""
    from silkline.crawl.recorder import Recorder

    seen: list[tuple[int, int, float]] = []
    deliver = Recorder.deliver

    def watched(self: Recorder, *arguments: Any) -> None:
        deliver(self, *arguments)
        seen.append((self.next_id, self.stored, time.process_time()))

    Recorder.deliver = watched  # type: ignore[method-assign]
    sys.argv = ["crawl_silkline.py", database, job]
    runpy.run_path(str(crawl.HERE / "crawl_silkline.py"), run_name="__main__")
    print("| URLs in the ledger | pages | CPU-ms a page |\n|---|---|---|")
    for line in bands(seen):
        print(line)
    urls, pages, cpu = seen[-1]
    print(f"| the end, for {urls:,} | {pages:,} | {1000 * (time.process_time() - cpu) / pages:.2f} |")


def bands(seen: list[tuple[int, int, float]]) -> Iterator[str]:
    at = [bisect.bisect_left(seen, bound, key=lambda each: each[0]) for bound in BOUNDS]
    for bound, first, last in zip(BOUNDS, at, [*at[1:], len(seen) - 1], strict=True):
        if last <= first:
            continue
        (_, before, start), (urls, after, end) = seen[first], seen[min(last, len(seen) - 1)]
        if after > before:
            yield f"| {bound:,} to {urls:,} | {after - before:,} | {1000 * (end - start) / (after - before):.2f} |"


if __name__ == "__main__":
    if len(sys.argv) == 3 and "://" in sys.argv[1]:
        child(*sys.argv[1:])
    else:
        main()

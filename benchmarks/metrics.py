"""What metrics cost: one call of each instrument, everything that one page counts, and prometheus-client beside it.

    python -m benchmarks.metrics

CPU time, the best of seven rounds. Nothing is asserted.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

CALLS, ROUNDS = 20_000, 7


def microseconds(call: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(CALLS):
            call()
        best = min(best, time.process_time() - began)
    return best / CALLS * 1e6


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder  # read when it is imported
        import prometheus_client as theirs

        from silkline.crawl.fetcher_gauges import FetcherGauges
        from silkline.metrics import instruments as ours
        from silkline.metrics import process

        process.attach(Path(folder) / "data", "fetcher")
        counter, gauge = theirs.Counter("a", "a"), theirs.Gauge("b", "b", multiprocess_mode="livesum")
        labelled = theirs.Counter("c", "c", ["purpose", "status"])
        histogram = theirs.Histogram("d", "d", buckets=ours.FETCH_SECONDS.family.buckets)
        gauges = FetcherGauges(0.0)

        def page() -> None:
            ours.CACHE_LOOKUPS.add(1, "robots", "hit")
            ours.CACHE_LOOKUPS.add(1, "dns", "hit")
            ours.REQUESTS.add(1, "page", "2xx")
            ours.RECEIVED_BYTES.add(16_000)
            ours.FETCH_SECONDS.observe(0.05)
            ours.PARSE_SECONDS.observe(0.0007, "fetcher")
            gauges.page()
            gauges.show(1.0, in_flight=300, frontier=5000, unsaved=100, unsaved_bytes=1_000_000, parsers=0)

        for name, mine, other in (
            ("counter", ours.ROBOTS_REFUSALS.add, counter.inc),
            (
                "counter with labels",
                lambda: ours.REQUESTS.add(1, "page", "2xx"),
                lambda: labelled.labels("page", "2xx").inc(),
            ),
            ("gauge", lambda: ours.IN_FLIGHT.set(3), lambda: gauge.set(3)),
            ("histogram", lambda: ours.FETCH_SECONDS.observe(0.2), lambda: histogram.observe(0.2)),
        ):
            print(f"{name}: {microseconds(mine):.2f} µs; prometheus-client {microseconds(other):.2f} µs")
        print(f"everything of one page: {microseconds(page):.1f} µs")
        process.detach()


if __name__ == "__main__":
    main()

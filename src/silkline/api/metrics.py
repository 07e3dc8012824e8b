"""Metrics for Prometheus: jobs and workers from the database, and the response times of this process."""

from __future__ import annotations

import time
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from silkline.model.database import Database
from silkline.store import jobs, workers

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class FromDatabase:
    """Reads counts at every scrape. No query takes longer if there are more URLs."""

    def __init__(self, database: Database, stale_after: float) -> None:
        self._database = database
        self._stale_after = stale_after

    def describe(self) -> Iterator[Metric]:
        return iter(())

    def collect(self) -> Iterator[Metric]:
        by_status = GaugeMetricFamily("silkline_jobs", "Jobs by status.", labels=["status"])
        for status, number in jobs.counts(self._database).items():
            by_status.add_metric([status.value], number)
        yield by_status
        pending = jobs.pending_total(self._database)
        yield GaugeMetricFamily("silkline_urls_pending", "Queued URLs of running crawls.", pending)
        alive = workers.alive(self._database, self._stale_after)
        yield GaugeMetricFamily("silkline_workers_alive", "Workers with a recent heartbeat.", len(alive))
        slots = sum(worker.slots for worker in alive)
        yield GaugeMetricFamily("silkline_worker_slots", "Jobs that all live workers can run at once.", slots)


class Metrics:
    """The registry of one process."""

    def __init__(self, database: Database, stale_after: float) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(FromDatabase(database, stale_after))
        labels = ("method", "route")
        self._seconds = Histogram(
            "silkline_http_seconds", "Time to answer.", labels, buckets=BUCKETS, registry=self._registry
        )
        self._answers = Counter(
            "silkline_http_answers", "Answers by status.", (*labels, "status"), registry=self._registry
        )

    def text(self) -> bytes:
        return generate_latest(self._registry)

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        self._seconds.labels(method, route).observe(seconds)
        self._answers.labels(method, route, str(status)).inc()


class Watching:
    """Measures the time to the first byte of every answer. The label is the pattern of the route, not the path."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                method = scope["method"] if scope["method"] in ("GET", "HEAD", "POST", "DELETE") else "other"
                self._metrics.observe(method, _route_of(scope), message["status"], time.perf_counter() - began)
            await send(message)

        await self._app(scope, receive, noting)


def _route_of(scope: Scope) -> str:
    route = scope.get("route")
    return str(getattr(route, "path", "none"))

"""The state of the service: health, readiness, workers and metrics."""

from __future__ import annotations

from fastapi import APIRouter, Response

from silkline.api.answer_models import Answer, Health, ListPage, WorkerView, add_route, problems
from silkline.api.problems import Problem
from silkline.api.views import worker_view
from silkline.config import Settings
from silkline.metrics.exposition import MEDIA_TYPE
from silkline.metrics.instruments import tell_cpu
from silkline.model.database import Database
from silkline.runner.metrics_text import MetricsText
from silkline.runner.readiness import why_not_ready
from silkline.store import workers
from silkline.store.fleet import FleetView, fleet

TEXT = {"text/plain": {"schema": {"type": "string"}}}


class SystemRoutes:
    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._metrics = MetricsText(
            database, settings.data, watermark=settings.disk_free_min, stale_after=settings.stale_after
        )
        self.router = APIRouter(tags=["service"])
        add_route(self.router, "GET", "/healthz", self.alive, "Is the process running?")
        add_route(self.router, "GET", "/readyz", self.ready, "Can the server use its database?")
        self.router.add_api_route(
            "/metrics",
            self.metrics,
            methods=["GET"],
            summary="Metrics for Prometheus",
            response_class=Response,
            responses={
                200: {"description": "Metrics in the text format of Prometheus.", "content": TEXT},
                **problems(),
            },
        )
        add_route(self.router, "GET", "/v1/workers", self.workers, "List workers")
        add_route(self.router, "GET", "/v1/fleet", self.fleet, "Show machines, queue and running jobs")

    def fleet(self) -> Answer[FleetView]:
        """Machines with their load, memory and jobs, the queue by kind, and the processes of running jobs.

        What machines and processes use is as old as the last heartbeat.
        """
        return Answer(fleet(self._database, workers.alive(self._database, self._settings.stale_after)))

    async def alive(self) -> Answer[Health]:
        """Does not check the database."""
        return Answer(Health("ok"))

    def ready(self) -> Answer[Health]:
        """503 if the server cannot reach the database, or if the database has another schema revision."""
        if why_not := why_not_ready(self._database):
            raise Problem("unavailable", why_not)
        return Answer(Health("ready"))

    def metrics(self) -> Response:
        """The processes of this machine, and the jobs of the database. docs/reference/metrics.md lists all metrics."""
        tell_cpu()
        return Response(self._metrics.text(), media_type=MEDIA_TYPE)

    def workers(self) -> Answer[ListPage[WorkerView]]:
        """Workers whose last heartbeat is not older than the setting `stale_after`."""
        found = [worker_view(worker) for worker in workers.alive(self._database, self._settings.stale_after)]
        return Answer(ListPage(found, None))

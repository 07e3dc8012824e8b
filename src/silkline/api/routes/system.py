"""The state of the service: health, readiness, workers and metrics."""

from __future__ import annotations

from fastapi import APIRouter, Response

from silkline.api.answer_models import Answer, Health, ListPage, WorkerView, add_route, problems
from silkline.api.metrics import MEDIA_TYPE, Metrics
from silkline.api.problems import Problem
from silkline.api.views import worker_view
from silkline.config import Settings
from silkline.errors import StoreError
from silkline.model.database import Database
from silkline.store import migrate, workers

TEXT = {"text/plain": {"schema": {"type": "string"}}}


class SystemRoutes:
    def __init__(self, database: Database, settings: Settings, metrics: Metrics) -> None:
        self._database = database
        self._settings = settings
        self._metrics = metrics
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

    async def alive(self) -> Answer[Health]:
        """Does not check the database."""
        return Answer(Health("ok"))

    def ready(self) -> Answer[Health]:
        """503 if the server cannot reach the database, or if the database has another schema revision."""
        try:
            here, wanted = migrate.revision(self._database), migrate.newest(self._database)
        except StoreError as error:
            raise Problem("unavailable", "the database cannot be reached right now") from error
        if here != wanted:
            raise Problem("unavailable", f"the database has schema revision {here}, this server needs {wanted}")
        return Answer(Health("ready"))

    def metrics(self) -> Response:
        """Jobs by status, queued URLs, live workers, and the response times of this process."""
        return Response(self._metrics.text(), media_type=MEDIA_TYPE)

    def workers(self) -> Answer[ListPage[WorkerView]]:
        """Workers whose last heartbeat is not older than the setting `stale_after`."""
        found = [worker_view(worker) for worker in workers.alive(self._database, self._settings.stale_after)]
        return Answer(ListPage(found, None))

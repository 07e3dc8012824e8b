"""The service itself: is it alive, is it ready, its workers, its figures."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from silkline.api import shapes
from silkline.api.metrics import MEDIA_TYPE, Metrics
from silkline.api.problems import Problem
from silkline.api.shapes import problems
from silkline.api.views import answer, worker_view
from silkline.config import Settings
from silkline.errors import StoreError
from silkline.store import migrate, workers
from silkline.store.database import Database

TEXT = {"text/plain": {"schema": {"type": "string"}}}


class SystemRoutes:
    def __init__(self, database: Database, settings: Settings, metrics: Metrics) -> None:
        self._database = database
        self._settings = settings
        self._metrics = metrics
        self.router = APIRouter(tags=["service"])
        add = self.router.add_api_route
        health: dict[int | str, dict[str, Any]] = {200: {"model": shapes.Health}}
        add(
            "/healthz",
            self.alive,
            methods=["GET"],
            summary="Is the process running?",
            responses={**health, **problems()},
        )
        add(
            "/readyz",
            self.ready,
            methods=["GET"],
            summary="Can the server use its database?",
            responses={**health, **problems()},
        )
        add(
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
        add(
            "/v1/workers",
            self.workers,
            methods=["GET"],
            summary="List workers",
            responses={200: {"model": shapes.ListPage[shapes.WorkerShape]}, **problems()},
        )

    async def alive(self) -> Response:
        """Does not check the database."""
        return answer({"status": "ok"})

    def ready(self) -> Response:
        """503 if the server cannot reach the database, or if the database has another schema revision."""
        try:
            here, wanted = migrate.revision(self._database), migrate.newest(self._database)
        except StoreError as error:
            raise Problem("unavailable", "the database cannot be reached right now") from error
        if here != wanted:
            raise Problem("unavailable", f"the database has schema revision {here}, this server needs {wanted}")
        return answer({"status": "ready"})

    def metrics(self) -> Response:
        """Jobs by status, queued URLs, live workers, and the response times of this process."""
        return Response(self._metrics.text(), media_type=MEDIA_TYPE)

    def workers(self) -> Response:
        """Workers whose last heartbeat is not older than the setting `stale_after`."""
        found = [worker_view(worker) for worker in workers.alive(self._database, self._settings.stale_after)]
        return answer({"items": found, "next_cursor": None})

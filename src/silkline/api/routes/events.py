"""Server-sent events: the changes of one job, and of all jobs."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from silkline.api.answer_models import problems
from silkline.api.caller_limit import caller_of
from silkline.api.event_sources import Cursor, microseconds, read_cursor, read_job
from silkline.api.events import Hub
from silkline.model.database import Database
from silkline.model.job import ENDED
from silkline.store import logs

Responses = dict[int | str, dict[str, Any]]
MEDIA_TYPE = "text/event-stream"
EXAMPLE = 'id: 17.4.1789560000000000\nevent: progress\ndata: {"discovered": 12, "done": 4}\n\n'
STREAM: Responses = {
    200: {"description": "The stream.", "content": {MEDIA_TYPE: {"schema": {"type": "string"}, "example": EXAMPLE}}}
}


class EventRoutes:
    def __init__(self, database: Database, hub: Hub) -> None:
        self._database = database
        self._hub = hub
        self.router = APIRouter(prefix="/v1", tags=["events"])
        self.router.add_api_route(
            "/jobs/{id}/events",
            self.of_job,
            methods=["GET"],
            summary="Follow a job",
            response_class=StreamingResponse,
            responses={
                **STREAM,
                204: {"description": "The job has ended and you have received every event."},
                **problems("not-found", "too-many-streams", "too-many"),
            },
        )
        self.router.add_api_route(
            "/events",
            self.of_all,
            methods=["GET"],
            summary="Follow changes of all jobs",
            response_class=StreamingResponse,
            responses={**STREAM, **problems("too-many-streams", "too-many")},
        )

    async def of_job(
        self,
        request: Request,
        id: str,
        header: Annotated[str, Header(alias="Last-Event-ID", max_length=100)] = "",
        last_event_id: Annotated[
            str, Query(max_length=100, description="The same as the header, for clients that cannot set headers.")
        ] = "",
    ) -> Response:
        """Events: `status` (the whole job) after each change, `progress` at most once a second, `logs`, and `end`.

        Reconnect with the id of the last event: you get every log line exactly once.
        """
        self._hub.admit(request.scope)
        seen = read_cursor(header or last_event_id)
        caller = caller_of(request.scope)
        self._hub.turns.admit(caller)
        async with self._hub.turns.turn(caller):
            complete = await run_in_threadpool(self._has_all, id, seen)
        if complete:
            return Response(status_code=204)
        stream = self._hub.follow(id, seen, request.scope["still_valid"], caller)
        return StreamingResponse(stream, media_type=MEDIA_TYPE)

    def _has_all(self, id: str, seen: Cursor | None) -> bool:
        """Whether the job has ended, and its listener has received every event."""
        job, counts, _ = read_job(self._database, id)
        if seen is None or job.status not in ENDED or seen.changed != microseconds(job.updated_at):
            return False
        newest = logs.tail(self._database, id, 1)
        return seen.line >= (newest[-1].id if newest else 0) and seen.checkpoints == counts.checkpoints

    async def of_all(self, request: Request) -> Response:
        """The event `jobs` has the number of jobs in each state. It comes at most once a second."""
        self._hub.admit(request.scope)
        stream = self._hub.overview(request.scope["still_valid"], caller_of(request.scope))
        return StreamingResponse(stream, media_type=MEDIA_TYPE)

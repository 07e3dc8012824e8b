"""The application: every route, and the layers around them."""

from __future__ import annotations

from typing import Any

import anyio.to_thread
from fastapi import FastAPI
from pydantic import TypeAdapter
from starlette.types import ASGIApp

import silkline
from silkline.api import problems
from silkline.api.address import is_loopback
from silkline.api.answer_limit import AnswerLimit, AnswerRoom
from silkline.api.auth import Doorkeeper
from silkline.api.body_limits import BodyLimit
from silkline.api.downloads import Downloads
from silkline.api.events import Hub
from silkline.api.ledger_counts import LedgerCounts
from silkline.api.long_answers import LongAnswers
from silkline.api.metrics import Watching
from silkline.api.read_turns import ReadLimit
from silkline.api.request_gate import AllowedHosts, RequestGate
from silkline.api.request_id import RequestIds
from silkline.api.routes.events import EventRoutes
from silkline.api.routes.exports import ExportRoutes
from silkline.api.routes.external import ExternalRoutes
from silkline.api.routes.fetch import FetchRoutes
from silkline.api.routes.jobs import JobRoutes
from silkline.api.routes.ledger import LedgerRoutes
from silkline.api.routes.system import SystemRoutes
from silkline.api.routes.tokens import TokenRoutes
from silkline.api.web import site
from silkline.api.write_turns import WriteLimit, write_turns
from silkline.config import Settings
from silkline.model.database import Database

# Each may hold a connection to the database. At most `read_turns.READS` of them read, and `write_turns.WRITES` write.
# The others are for short requests such as a login, and the request gate has its own.
THREADS = 12
ABOUT = """Silkline crawls web sites in jobs that survive crashes. Errors are RFC 9457 problem documents. Their field
`retryable` says whether the same request may succeed later. If the server requires a token, send
`Authorization: Bearer TOKEN`."""


def create_app(settings: Settings, database: Database, hub: Hub, host: str, port: int) -> ASGIApp:
    """The application as it is served at one address."""
    app = FastAPI(
        title="Silkline",
        version=silkline.__version__,
        description=ABOUT,
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
    )
    ledger_counts = LedgerCounts(database)
    turns, writes, room = hub.turns, write_turns(), AnswerRoom()
    downloads = Downloads(
        turns,
        most=settings.api_downloads,
        most_each=settings.api_downloads_each,
        check_every=settings.api_stream_check,
    )
    for routes in (
        JobRoutes(database, settings, hub, turns, LongAnswers(room)),
        LedgerRoutes(database, ledger_counts, downloads),
        ExportRoutes(database, settings, downloads),
        EventRoutes(database, hub),
        FetchRoutes(database, settings, hub, writes),
        ExternalRoutes(database, settings),
        TokenRoutes(database),
        SystemRoutes(database, settings),
    ):
        app.include_router(routes.router)
    doorkeeper = Doorkeeper(database, settings.api_token, open=is_loopback(host) and not settings.api_token)
    page = site.install(app, settings, database, doorkeeper, ledger_counts, with_sample=is_loopback(host))
    problems.install(app, page)
    describe(app)
    limited = AnswerLimit(BodyLimit(ReadLimit(WriteLimit(app, writes), turns), settings.api_body_limit), room)
    gate = RequestGate(limited, AllowedHosts(host, port, settings.api_hosts), doorkeeper)
    return RequestIds(Watching(gate))


class _lifespan:
    def __init__(self, app: Any) -> None: ...

    async def __aenter__(self) -> None:
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS

    async def __aexit__(self, *_: object) -> None: ...


def describe(app: FastAPI) -> None:
    """The OpenAPI description, with the problem document and the token that the routes refer to."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = made()
            schema["components"]["schemas"]["ProblemDocument"] = TypeAdapter(problems.ProblemDocument).json_schema()
            schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            schema["security"] = [{"token": []}, {}]
            _without_own_validation(schema)
        return app.openapi_schema or {}

    app.openapi = openapi  # type: ignore[method-assign]


def _without_own_validation(schema: dict[str, Any]) -> None:
    """The framework describes errors of its own kind; ours are problem documents everywhere."""
    for name in ("HTTPValidationError", "ValidationError"):
        schema["components"]["schemas"].pop(name, None)

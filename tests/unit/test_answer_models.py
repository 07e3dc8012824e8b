"""The documented answers of the API are the classes that its routes return, and the command line gives the same job."""

import dataclasses
import json
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.testclient import TestClient

from silkline.api import answer_models
from silkline.api.answer_limit import AnswerRoom
from silkline.api.answer_models import Answer, answers_of, to_json
from silkline.api.app import describe
from silkline.api.downloads import Downloads
from silkline.api.events import Hub
from silkline.api.ledger_counts import LedgerCounts
from silkline.api.long_answers import LongAnswers
from silkline.api.problems import KINDS, Problem, ProblemDocument
from silkline.api.read_turns import read_turns
from silkline.api.routes.events import EventRoutes
from silkline.api.routes.exports import ExportRoutes
from silkline.api.routes.external import ExternalRoutes
from silkline.api.routes.fetch import FetchRoutes
from silkline.api.routes.jobs import JobRoutes
from silkline.api.routes.ledger import LedgerRoutes
from silkline.api.routes.system import SystemRoutes
from silkline.api.routes.tokens import TokenRoutes
from silkline.api.views import MOST_REASONS, reason_views
from silkline.cli import views
from silkline.config import Settings
from silkline.model.database import Database
from silkline.model.job import NewJob
from silkline.model.ledger import Counts
from silkline.store import jobs, url_view
from silkline.store.job_view import JobView, KeptHtmlView, ProgressView, job_view
from silkline.store.opening import open_database

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOT_JSON = {
    "/v1/jobs/{id}/events",
    "/v1/events",
    "/v1/jobs/{id}/export",
    "/v1/jobs/{id}/files/{url_id}/{name}",
    "/metrics",
}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = open_database(f"sqlite:///{tmp_path / 'silkline.db'}")
    yield database
    database.close()


def routes_of(database: Database) -> list[APIRoute]:
    settings, hub = Settings(), Hub(database)
    groups = (
        JobRoutes(database, settings, hub, read_turns(), LongAnswers(AnswerRoom())),
        LedgerRoutes(database, LedgerCounts(database), Downloads(read_turns())),
        ExportRoutes(database, settings, Downloads(read_turns())),
        EventRoutes(database, hub),
        FetchRoutes(database, settings, hub, read_turns()),
        ExternalRoutes(database, settings),
        TokenRoutes(database),
        SystemRoutes(database, settings),
    )
    return [route for group in groups for route in group.router.routes if isinstance(route, APIRoute)]


BODIES: dict[str, dict[str, object]] = {
    "/v1/jobs": {"kind": "page", "url": "https://example.com/"},
    "/v1/fetch": {"url": "https://example.com/"},
    "/v1/jobs/{id}/results": {"pages": [{"url": "https://example.com/"}]},
    "/v1/jobs/{id}/finish": {"end": "completed"},
    "/v1/tokens": {"name": "one"},
}


def test_no_route_warns_when_it_reads_a_body(database: Database) -> None:
    """It would be noise in the log of an operator."""
    routes = [route for route in routes_of(database) if route.body_field is not None]
    assert set(BODIES) < {route.path for route in routes}
    client = TestClient(FastAPI(routes=routes), raise_server_exceptions=False)  # there is no gate that names a caller
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for route in routes:
            client.post(route.path.replace("{id}", "x"), json=BODIES.get(route.path, {}))
    assert [str(each.message) for each in heard] == []


def classes() -> list[type]:
    named = [*vars(answer_models).values(), *vars(url_view).values()]
    found = {each for each in named if isinstance(each, type) and dataclasses.is_dataclass(each)}
    ours = [each for each in found if each.__module__.endswith(("answer_models", "_view"))]
    return sorted([*ours, ProblemDocument], key=lambda each: each.__name__)


def test_every_route_documents_the_classes_that_it_returns(database: Database) -> None:
    """mypy checks what is returned against the signature; here the signature is checked against the documentation."""
    for route in routes_of(database):
        returned = answers_of(route.endpoint)
        documented = [each["model"] for each in route.responses.values() if "model" in each]
        assert set(map(str, documented)) == set(map(str, returned)), route.path
        if not returned:
            assert route.path in NOT_JSON or route.methods == {"DELETE"}, f"{route.path} answers something unknown"
        for option in get_args(get_type_hints(route.endpoint)["return"]) if len(returned) > 1 else ():
            assert get_origin(option) is Answer or issubclass(option, Response)


@pytest.mark.parametrize("each", classes(), ids=lambda each: each.__name__)
def test_no_field_may_be_missing_and_none_may_be_added(each: Any, database: Database) -> None:
    app = FastAPI()
    app.add_api_route("/", lambda: None, response_model=None, responses={200: {"model": each}})
    describe(app)
    (schema,) = [found for found in app.openapi()["components"]["schemas"].values() if found["title"] == each.__name__]
    names = [field.name for field in dataclasses.fields(each)]
    assert list(schema["properties"]) == names
    assert sorted(schema["required"]) == sorted(names), "a field with a default may be missing from the answer"
    assert schema["additionalProperties"] is False
    assert schema["description"], "a class without a docstring is documented by its field list"


def test_the_fields_of_an_answer_are_those_of_its_class() -> None:
    progress = ProgressView(1, 1, 0, 0, 0, 0, 0, 0, 0, 0.0, None, None, None, {}, KeptHtmlView(0, 0, 0))
    answer = Answer(answer_models.Recorded(1, 2, progress), 201, {"Location": "/"})
    assert (answer.status_code, answer.headers["location"]) == (201, "/")
    told = json.loads(answer.body)
    assert list(told) == ["recorded", "known", "progress"]
    assert list(told["progress"]) == [field.name for field in dataclasses.fields(ProgressView)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_problem_is_the_documented_document(kind: str) -> None:
    problem = Problem(kind, "because")
    told = json.loads(problem.response().body)
    assert ProblemDocument(**told) == problem.document()
    assert told["type"] == f"urn:silkline:problem:{kind}"


def test_the_command_line_and_the_api_give_the_same_job(database: Database) -> None:
    payload = {"url": "https://example.com/?token=hush", "headers": {"Authorization": "Bearer secret-word"}}
    job, _ = jobs.enqueue(database, NewJob("page", payload, "https://example.com/?token=hush", {"key": "order 17"}))
    at_api = json.loads(to_json(job_view(job, Counts(), NOW)))
    at_command_line = json.loads(json.dumps(views.as_value(job, Counts(), NOW), default=lambda at: at.isoformat()))
    assert list(at_command_line) == list(at_api) == [field.name for field in dataclasses.fields(JobView)]
    same = {name for name in at_api if not name.endswith("_at")}
    assert {name: at_command_line[name] for name in same} == {name: at_api[name] for name in same}
    assert "hush" not in str(at_api)
    assert "secret-word" not in str(at_api)
    assert at_api["metadata"] == {"key": "order 17"}, "it belongs to the caller, who gets it back as it was"


def test_an_answer_has_few_reasons() -> None:
    """An external worker may give each of its pages a reason of its own."""
    reasons = [("failed", f"reason-{number}", 1) for number in range(MOST_REASONS + 1)]
    assert [view.reason for view in reason_views(reasons)] == [reason for _, reason, _ in reasons[:-1]]

"""The description of the API is true: whatever is sent, the answer is one that it names, and never a 5xx."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from silkline.model.job import NewJob
from silkline.store import jobs
from silkline.store.opening import open_database
from tests.support.effort import examples
from tests.support.served import Client, Served
from tests.support.supervisors import PATIENCE

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
EXAMPLES = {"sqlite": examples(6, 100), "postgres": examples(3, 30)}
ENDLESS = r"/events$"  # streams are followed in test_events.py


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def described(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A server that nobody else uses, with a few jobs and nobody to run them."""
    folder = tmp_path_factory.mktemp("described")
    url = f"sqlite:///{folder / 'silkline.db'}"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres").create_database()
    with closing(Served(url, folder, slots=0)) as server:
        client = server.ready()
        with closing(open_database(url)) as database:
            for kind in ("page", "extension", "extension"):
                jobs.enqueue(database, NewJob(kind, {"url": "https://example.com/"}))
        yield client


@pytest.fixture(scope="session")
def schema_of_the_api(described: Client) -> Any:
    address = f"http://127.0.0.1:{described.port}/openapi.json"
    return schemathesis.openapi.from_url(address, timeout=PATIENCE).exclude(path_regex=ENDLESS)


@pytest.mark.timeout(900)  # seen: 118 s for one of the four on two cores with a load of 20
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_every_answer_is_described_and_none_is_a_failure(
    schema_of_the_api: Any, mode: GenerationMode, request: pytest.FixtureRequest
) -> None:
    """Requests as the description wants them, and as it does not; fewer where only the database is another."""
    examples = EXAMPLES[request.node.callspec.params["described"]]
    operations = [found.ok() for found in schema_of_the_api.get_all_operations()]
    assert len(operations) >= 25
    answered: set[int] = set()
    for operation in operations:
        search(operation, mode, answered, examples)
    assert answered >= ({200, 201, 404} if mode is GenerationMode.POSITIVE else {404, 422}), "the search was no search"


def search(operation: Any, mode: GenerationMode, answered: set[int], examples: int) -> None:
    @settings(
        max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: schemathesis.Case) -> None:
        query = dict(case.query or {})
        for name in ("wait", "timeout"):
            if name in query or (name == "timeout" and case.path.endswith("/fetch")):
                query[name] = 0  # nobody runs the jobs: waiting for them would only take time
        case.query = query
        answered.add(case.call_and_validate(checks=CHECKS, timeout=PATIENCE).status_code)

    try:
        ask()
    except Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE, f"nothing can be asked of {operation.label}"


def test_everything_is_described(described: Client) -> None:
    found = described.get("/openapi.json").json
    assert len(found["paths"]) >= 20
    for path, operations in found["paths"].items():
        for method, operation in operations.items():
            place = f"{method} {path}"
            assert operation["summary"], place
            assert operation["description"], place
            assert operation["tags"], place
            assert {"401", "422", "503"} <= set(operation["responses"]), place
    assert "HTTPValidationError" not in json.dumps(found)


def test_the_routes_of_the_design_are_there(described: Client) -> None:
    paths = described.get("/openapi.json").json["paths"]
    verbs = [f"/v1/jobs/{{id}}/{verb}" for verb in ("pause", "resume", "stop", "cancel", "retry")]
    lists = [f"/v1/jobs/{{id}}/{name}" for name in ("results", "urls", "errors", "logs", "explain", "events")]
    outside = ["/v1/claims", *(f"/v1/jobs/{{id}}/{name}" for name in ("heartbeat", "results", "finish"))]
    for path in [
        "/v1/fetch",
        "/v1/jobs",
        "/v1/jobs/{id}",
        *verbs,
        *lists,
        *outside,
        "/v1/workers",
        "/v1/fleet",
        "/healthz",
        "/readyz",
    ]:
        assert path in paths, path
    assert set(paths["/v1/jobs/{id}"]) == {"get", "delete"}
    assert set(paths["/v1/jobs/{id}/results"]) == {"get", "post"}


def test_examples_are_accepted(described: Client) -> None:
    body = described.get("/openapi.json").json["paths"]["/v1/jobs"]["post"]["requestBody"]["content"][
        "application/json"
    ]
    assert len(body["examples"]) >= 2
    for example in body["examples"].values():
        assert described.post("/v1/jobs", example["value"]).status == 201


@pytest.mark.parametrize("method", ["PUT", "PATCH", "BREW"])
def test_other_methods_are_refused(described: Client, method: str) -> None:
    answer = described.ask(method, "/v1/jobs")
    answer.problem(405, "method-not-allowed")
    assert "allow" in answer.headers

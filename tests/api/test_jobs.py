"""Jobs over HTTP: asked for, listed, waited for, wished, repeated, removed."""

import json
import threading
import uuid
from typing import Any
from urllib.parse import urlencode

import pytest

from silkline.api import submission
from silkline.config import Settings
from silkline.errors import SpecError
from silkline.model.database import Database
from tests.support.served import STATES, Client, Served


def test_a_job_is_queued_at_once_and_runs_elsewhere(client: Client) -> None:
    answer = client.post("/v1/jobs", {"kind": "diagnostic", "do": "work", "steps": 5, "metadata": {"mine": [1]}})
    assert answer.status == 201
    job = answer.json
    assert (job["status"], job["message"]) == ("queued", "Waiting for a worker…")
    assert answer.headers["location"] == f"/v1/jobs/{job['id']}" == job["links"]["self"]
    ended = client.get(f"/v1/jobs/{job['id']}?wait=60").json
    assert (ended["status"], ended["reason"], ended["attempt"]) == ("completed", "completed", 1)
    assert ended["metadata"] == {"mine": [1]}
    assert ended["progress"]["discovered"] == ended["progress"]["done"] == 5
    assert ended["progress"]["discovered"] == sum(ended["progress"][state] for state in STATES)


def test_waiting_ends_when_its_time_is_over(client: Client) -> None:
    id = client.job(do="sleep", seconds=600)
    assert client.get(f"/v1/jobs/{id}?wait=0.3").json["status"] in ("queued", "running")
    client.get("/v1/jobs/" + id + "?wait=61").problem(422, "invalid", "wait")
    assert client.post(f"/v1/jobs/{id}/cancel").status == 200
    client.wait_for(id, "cancelled")


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"kind": "site", "url": "https://example.com", "limitt": 3}, 422, ["unknown field 'limitt'", "'limit'"]),
        ({"kind": "sight", "url": "https://example.com"}, 422, ["unknown kind 'sight'", "'site'"]),
        ({"url": "https://example.com"}, 422, ["kind"]),
        ({"kind": "site"}, 422, ["a url is needed"]),
        ({"kind": "site", "url": "file:///etc/passwd"}, 422, ["http"]),
        ({"kind": "site", "url": "javascript:alert(1)"}, 422, ["http"]),
        ({"kind": "site", "url": "https://host:99999/"}, 422, ["web address"]),
        ({"kind": "site", "url": "https://example.com", "proxy": "foo"}, 422, ["proxy", "http://HOST:PORT"]),
        ({"kind": "page", "url": "https://example.com", "priority": 2**40}, 422, ["priority"]),
        ({"kind": "page", "url": "https://example.com", "run_at": "9999-12-31T23:59:59Z"}, 422, ["run_at"]),
        ({"kind": "page", "url": "https://example.com", "metadata": {"n": 1e308 * 10}}, 400, ["Infinity"]),
        (b'{"kind": "page", "kind": "site"}', 400, ["twice"]),
        (b"[]", 400, ["object"]),
        (b"{", 400, ["not JSON"]),
        (b'{"kind": "page", "metadata": {"x": "\\ud800"}}', 400, ["half of a surrogate pair"]),
        (b"[" * 100_000, 400, []),
        (b'{"kind": "page", "priority": ' + b"9" * 10_000 + b"}", 400, []),
        (b"\xff\xfe", 400, ["UTF-8"]),
        (b"", 400, ["must be a JSON object"]),
    ],
    ids=lambda value: str(value)[:40] if not isinstance(value, list) else "",
)
def test_what_makes_no_sense_is_refused_with_the_reason(
    client: Client, body: object, status: int, words: list[str]
) -> None:
    answer = client.post("/v1/jobs", body, Content_Type="application/json")
    answer.problem(status, "invalid" if status == 422 else "bad-request", *words)


def test_only_json_is_taken(client: Client) -> None:
    body = b'{"kind": "diagnostic"}'
    client.post("/v1/jobs", body, Content_Type="text/plain").problem(415, "unsupported-media-type")
    client.post("/v1/jobs", body).problem(415, "unsupported-media-type")


def test_every_wish_over_http(client: Client) -> None:
    id = client.job(do="work", steps=100_000, seconds=0.01)
    client.wait_for(id, "running")
    assert client.post(f"/v1/jobs/{id}/pause").json["status"] in ("pausing", "paused")
    client.wait_for(id, "paused")
    assert client.post(f"/v1/jobs/{id}/pause").status == 200, "asking twice is the same as asking once"
    assert client.post(f"/v1/jobs/{id}/resume").json["status"] in ("queued", "running")
    client.wait_for(id, "running")
    client.post(f"/v1/jobs/{id}/stop")
    stopped = client.wait_for(id, "stopped")
    client.post(f"/v1/jobs/{id}/pause").problem(409, "refused", "ended")
    assert client.post(f"/v1/jobs/{id}/retry").status == 200
    client.wait_for(id, "running")
    client.ask("DELETE", f"/v1/jobs/{id}").problem(409, "refused", "cancel it first")
    client.post(f"/v1/jobs/{id}/cancel")
    ended = client.wait_for(id, "cancelled")
    assert ended["progress"]["done"] >= stopped["progress"]["done"], "what was done stays done"
    client.post(f"/v1/jobs/{id}/retry").problem(409, "refused")
    assert client.ask("DELETE", f"/v1/jobs/{id}").status == 204
    client.get(f"/v1/jobs/{id}").problem(404, "not-found")


@pytest.mark.parametrize(
    "path", ["", "/results", "/urls", "/errors", "/logs", "/events", "/explain?url=https://x.test/"]
)
@pytest.mark.parametrize("id", ["00000000-0000-7000-8000-000000000000", "nonsense", "%00", "last"])
def test_a_job_that_is_not_there(client: Client, path: str, id: str) -> None:
    client.get(f"/v1/jobs/{id}{path}").problem(404, "not-found")


def test_a_list_goes_on_where_its_cursor_says(client: Client) -> None:
    mark = uuid.uuid4().hex
    made = [client.post("/v1/jobs", _page(mark, number)).json["id"] for number in range(7)]
    found: list[str] = []
    cursor = ""
    while True:
        answer = client.get(f"/v1/jobs?limit=3&q={mark.upper()}&kind=page&status=paused{cursor}").json
        found += [job["id"] for job in answer["items"]]
        if answer["next_cursor"] is None:
            break
        cursor = f"&cursor={answer['next_cursor']}"
    assert found == made[::-1]
    assert client.get(f"/v1/jobs?q={mark}&status=running").json["items"] == []
    plain = client.get("/v1/jobs?limit=2").json
    assert len(plain["items"]) == 2
    assert plain["items"][0]["id"] > plain["items"][1]["id"]


@pytest.mark.parametrize("query", ["stauts=running", "status=asleep", "limit=0", "limit=501", "cursor=x", "kind=%00"])
def test_a_wrong_filter_is_refused_not_ignored(client: Client, query: str) -> None:
    client.get(f"/v1/jobs?{query}").problem(422, "invalid")


def test_a_text_with_wildcards_is_searched_as_it_stands(client: Client) -> None:
    mark = uuid.uuid4().hex
    client.post("/v1/jobs", _page(f"{mark}/100%25_x", 1))
    assert len(client.get(f"/v1/jobs?q={mark}/100%2525_").json["items"]) == 1
    assert client.get(f"/v1/jobs?q={mark}/%25_x").json["items"] == []


def test_a_repeated_post_gets_the_first_answer(client: Client) -> None:
    key, body = uuid.uuid4().hex, {"kind": "diagnostic", "do": "nothing"}
    first = client.post("/v1/jobs", body, Idempotency_Key=key)
    assert "idempotent-replayed" not in first.headers
    client.get(f"/v1/jobs/{first.json['id']}?wait=60")
    again = client.post("/v1/jobs", dict(reversed(body.items())), Idempotency_Key=key)
    assert (again.status, again.json) == (201, first.json)
    assert again.headers["idempotent-replayed"] == "true"
    client.post("/v1/jobs", {**body, "priority": 1}, Idempotency_Key=key).problem(422, "key-reused")
    client.post("/v1/fetch", {"url": "https://example.com"}, Idempotency_Key=key).problem(422, "key-reused")
    client.post("/v1/jobs", body, Idempotency_Key="k" * 256).problem(422, "invalid")


def test_the_answer_for_a_key_is_deleted_with_its_job(client: Client, database: Database) -> None:
    key, body = uuid.uuid4().hex, {"kind": "diagnostic", "do": "nothing"}
    first = client.post("/v1/jobs", body, Idempotency_Key=key).json["id"]
    client.wait_for(first, "completed")
    assert client.ask("DELETE", f"/v1/jobs/{first}").status == 204
    assert database.rows("idempotency.forget", job_id=first, wanted=9) == []
    second = client.post("/v1/jobs", body, Idempotency_Key=key)
    assert (second.status, second.json["id"] != first) == (201, True)


def test_many_at_once_with_one_key_make_one_job(client: Client) -> None:
    key, answers = uuid.uuid4().hex, []
    start = threading.Barrier(8)

    def post() -> None:
        start.wait()
        answers.append(client.post("/v1/jobs", {"kind": "diagnostic"}, Idempotency_Key=key))

    threads = [threading.Thread(target=post) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.status for answer in answers] == [201] * 8
    assert len({answer.json["id"] for answer in answers}) == 1
    assert sum("idempotent-replayed" not in answer.headers for answer in answers) == 1


def test_a_live_job_with_the_same_dedupe_key_is_the_answer(client: Client) -> None:
    body = {**_page("dedupe", 1), "dedupe_key": uuid.uuid4().hex}
    first, second = client.post("/v1/jobs", body), client.post("/v1/jobs", body)
    assert (first.status, second.status) == (201, 200)
    assert first.json["id"] == second.json["id"]


@pytest.mark.parametrize(
    "field", [{"allow_private": ["10.0.0.0/8"]}, {"proxy": "http://10.0.0.1:3128"}, {"seeded": True}]
)
def test_a_job_from_outside_cannot_let_itself_in(client: Client, field: dict[str, object]) -> None:
    name = next(iter(field))
    body = {"kind": "site", "url": "https://example.com", **field}
    client.post("/v1/jobs", body).problem(422, "invalid", f"the API does not accept {name}")


@pytest.mark.parametrize(
    ("asked", "fine"),
    [
        ("10.1.0.0/16", True),
        ("10.1.2.3:80", True),
        ("10.1.0.0/16:443", True),
        ("10.0.0.0/8", False),
        ("0.0.0.0/0", False),
        ("::/0", False),
        ("::ffff:10.1.2.3", False),
        ("127.0.0.1:3000", True),
        ("127.0.0.1", False),
        ("127.0.0.1:3001", False),
        ("169.254.169.254", False),
    ],
)
def test_only_the_private_addresses_that_the_operator_named(asked: str, fine: bool) -> None:
    named = Settings(api_allow_private=True, api_private_ranges=("10.1.0.0/16", "127.0.0.1:3000"))
    body = {"kind": "page", "url": "https://example.com/", "allow_private": [asked]}
    if fine:
        assert submission.read(body, named).payload["allow_private"] == [asked]
    else:
        with pytest.raises(SpecError, match=r"the operator allows only 10\.1\.0\.0/16, 127\.0\.0\.1:3000"):
            submission.read(body, named)
    with pytest.raises(SpecError, match="the API does not accept proxy"):
        submission.read({**body, "allow_private": [], "proxy": "http://10.9.9.9:3128"}, named)


def test_the_operator_may_allow_private_addresses() -> None:
    body = {"kind": "page", "url": "https://example.com", "allow_private": ["10.0.0.0/8"]}
    assert submission.read(body, Settings(api_allow_private=True)).payload["allow_private"] == ["10.0.0.0/8"]
    with pytest.raises(SpecError, match="seeded"):
        submission.read({"kind": "site", "seeded": True}, Settings(api_allow_private=True))


def test_a_page_that_takes_too_long_is_answered_with_its_job(client: Client) -> None:
    answer = client.post("/v1/fetch?timeout=0", {"url": "https://example.com/", "paused": True})
    assert answer.status == 202
    assert answer.json["kind"] == "page"
    assert answer.headers["location"] == f"/v1/jobs/{answer.json['id']}"
    client.post("/v1/fetch", {"url": "https://a.test", "urls": ["https://b.test"]}).problem(422, "invalid", "one url")


def test_health_readiness_metrics_and_workers(client: Client, served: Served) -> None:
    assert client.get("/healthz").json == {"status": "ok"}
    assert client.get("/readyz").json == {"status": "ready"}
    workers = client.get("/v1/workers").json["items"]
    assert [worker["pid"] for worker in workers if worker["alive"]] == [served.process.pid]
    (machine,) = client.get("/v1/fleet").json["machines"]
    assert machine["workers"] == [worker["id"] for worker in workers]
    text = client.get("/metrics").text
    for figure in ('silkline_jobs{status="completed"}', "silkline_urls_pending", "silkline_workers_alive 1.0"):
        assert figure in text
    assert 'silkline_http_seconds_bucket{le="0.05",method="GET",route="/healthz"}' in text
    assert json.loads(client.get("/openapi.json").body)["openapi"].startswith("3.")


def _page(mark: str, number: int) -> dict[str, object]:
    return {"kind": "page", "url": f"https://example.com/{mark}/{number}", "paused": True}


@pytest.mark.parametrize("path", ["/v1/jobs", "/"])
def test_a_cursor_that_is_none_is_refused(client: Client, path: str) -> None:
    for query in ("cursor=nonsense", "cursor=%F1%99%A5%AB", "cursor=nonsense&q=example", "cursor=1&status=queued"):
        assert client.get(f"{path}?{query}").status == 422, query


@pytest.mark.parametrize("kind", ["page", "site", "map"])
@pytest.mark.parametrize("address", ["http://127.0.0.1:8000/", "http://localhost/", "http://[fd00::1]/"])
def test_a_private_address_is_refused_with_the_remedy(client: Client, kind: str, address: str) -> None:
    remedy = "SILKLINE_API_ALLOW_PRIVATE=true"
    client.post("/v1/jobs", {"kind": kind, "url": address}).problem(422, "invalid", "private address", remedy)
    body = {"kind": kind, "url": "https://example.com", "allow_private": ["10.0.0.0/8"]}
    client.post("/v1/jobs", body).problem(422, "invalid", "the API does not accept allow_private", remedy)


@pytest.mark.parametrize("kind", ["extension", "youtube"])
def test_a_private_address_is_refused_for_kinds_without_allow_private_too(client: Client, kind: str) -> None:
    body = {"kind": kind, "urls": ["https://example.com/", "http://127.0.0.1:18790/admin"]}
    client.post("/v1/jobs", body).problem(422, "invalid", "private address", "SILKLINE_API_ALLOW_PRIVATE=true")
    assert submission.read(body, Settings(api_allow_private=True)).payload["urls"] == body["urls"]


@pytest.mark.parametrize("kind", ["page", "site", "map", "extension", "youtube", "crawl4ai"])
@pytest.mark.parametrize("address", ["http://%31%32%37.0.0.1/", "http:///127.0.0.1/", "http://\\127.0.0.1/"])
def test_a_private_address_is_refused_in_every_notation(client: Client, kind: str, address: str) -> None:
    """`tests/unit/test_web_forms.py` has more notations."""
    for body in ({"kind": kind, "url": address}, {"kind": kind, "urls": ["https://example.com/", address]}):
        client.post("/v1/jobs", body).problem(422, "invalid", "private address")
    if kind == "page":
        client.post("/v1/fetch", {"url": address}).problem(422, "invalid", "private address")
    if kind in ("page", "site", "map"):
        form = urlencode({"kind": kind, "url": address}).encode()
        answer = client.post("/jobs", form, Content_Type="application/x-www-form-urlencoded")
        assert answer.status == 422
        assert "is a private address" in answer.text


def test_external_workers_get_only_the_private_addresses_that_the_operator_named() -> None:
    named = Settings(api_allow_private=True, api_private_ranges=("10.1.0.0/16",))
    fine = {"kind": "extension", "url": "http://10.1.2.3/"}
    assert submission.read(fine, named).payload["url"] == fine["url"]
    with pytest.raises(SpecError, match=r"10\.2\.0\.1/ is a private address: the operator allows only 10\.1\.0\.0/16"):
        submission.read({"kind": "extension", "url": "http://10.2.0.1/"}, named)


def test_a_private_address_that_is_none_is_refused() -> None:
    body = {"kind": "page", "url": "https://example.com", "allow_private": ["intranet"]}
    with pytest.raises(SpecError, match=r"'intranet' is not an address: write 10\.0\.0\.0/8"):
        submission.read(body, Settings(api_allow_private=True))


@pytest.mark.parametrize("pattern", ["(" * 2000 + ")" * 2000, "(?=a)", r"(a)\1", "["])
def test_a_pattern_that_cannot_be_matched_is_refused(client: Client, pattern: str) -> None:
    answer = client.post("/v1/jobs", {"kind": "site", "url": "https://a.test/", "include": [pattern]})
    assert answer.status == 422
    assert "include" in str(answer.json)


def test_what_would_be_repeated_in_every_list_is_small(client: Client) -> None:
    body = {"kind": "page", "url": "https://example.com/", "paused": True}
    found = client.post("/v1/jobs", {**body, "metadata": {"a": "x" * 70_000}})
    found.problem(422, "invalid", "metadata", "65,536 are allowed")
    found = client.post("/v1/jobs", {**body, "metadata": {"a": "\N{GRINNING FACE}" * 20_000}})
    found.problem(422, "invalid", "metadata", "80,009 bytes")
    assert client.post("/v1/jobs", {**body, "metadata": {"a": "x" * 60_000}}).status == 201


@pytest.mark.parametrize("more", [{"user_agent": "x\r\nHost: evil"}, {"cookies": {"a\r\nb": "c"}}])
def test_line_breaks_reach_no_header(client: Client, more: dict[str, Any]) -> None:
    client.post("/v1/jobs", {"kind": "page", "url": "https://example.com/", **more}).problem(422, "invalid")


def test_a_query_with_very_many_parameters_is_refused(client: Client) -> None:
    many = "&".join(f"a{number}" for number in range(15_000))
    client.get(f"/v1/jobs?{many}").problem(400, "bad-request", "at most 100 parameters")

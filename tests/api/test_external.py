"""Workers outside: they hold a job by a lease, and one that lost it can store nothing more."""

import threading
import uuid
from typing import Any

import pytest

from silkline.model.database import Database
from silkline.model.job import Decision, Status, Wish
from silkline.store import jobs, results
from tests.support.served import Client


def posted(client: Client, *urls: str) -> str:
    answer = client.post("/v1/jobs", {"kind": "extension", "urls": list(urls) or [f"https://a.test/{uuid.uuid4()}"]})
    assert answer.status == 201, answer
    id: str = answer.json["id"]
    return id


def claim(client: Client, id: str) -> str:
    """The lease of this job; jobs that other tests left behind are let go of."""
    while True:
        items = client.post("/v1/claims", {"kinds": ["extension"], "name": "test"}).json["items"]
        assert items, "the job is not to be had"
        lease: str = items[0]["lease"]
        if items[0]["job"]["id"] == id:
            return lease
        client.post(f"/v1/jobs/{items[0]['job']['id']}/finish", {"end": "permanent"}, Silkline_Lease=lease)


def page(url: str, **more: Any) -> dict[str, Any]:
    return {"url": url, "http_status": 200, "data": {"title": "T", "markdown": "# T"}, **more}


def test_a_job_from_claim_to_finish(client: Client) -> None:
    first, second = f"https://a.test/{uuid.uuid4()}", "https://b.test/2"
    id = posted(client, first, second, "https://b.test/never")
    lease = claim(client, id)
    assert client.get(f"/v1/jobs/{id}").json["status"] == "running"
    assert client.post(f"/v1/jobs/{id}/heartbeat", Silkline_Lease=lease).json == {"desired": "run"}
    body = {"pages": [page(first), page(second, success=False, error="timeout", http_status=None, data={})]}
    delivered = client.post(f"/v1/jobs/{id}/results", body, Silkline_Lease=lease)
    assert delivered.status == 200, delivered
    progress = delivered.json["progress"]
    assert (progress["discovered"], progress["done"], progress["failed"], progress["queued"]) == (3, 1, 1, 1)
    again = client.post(f"/v1/jobs/{id}/results", body, Silkline_Lease=lease).json
    assert (again["recorded"], again["known"]) == (0, 2), "a delivery may be repeated"
    ended = client.post(f"/v1/jobs/{id}/finish", {"end": "completed"}, Silkline_Lease=lease).json
    assert (ended["status"], ended["progress"]["skipped"]) == ("completed", 1)
    stored = client.get(f"/v1/jobs/{id}/results").json["items"]
    assert [(each["original_url"], each["success"]) for each in stored] == [(first, True), (second, False)]
    assert stored[0]["data"]["markdown"] == "# T"
    assert client.get(f"/v1/jobs/{id}/errors").json["reasons"][0] == {"state": "failed", "reason": "timeout", "urls": 1}


def test_a_worker_gets_urls_as_a_browser_writes_them(client: Client) -> None:
    """Otherwise a worker whose language parses URLs in another way would reach a host that nobody checked."""
    path = uuid.uuid4()
    written = (f"http:///%41.test\\{path}#/route", f"https://ⓑ.test:443/{path}", f"https://c.test/{path}?q=ä")
    plain = (f"http://a.test/{path}#/route", f"https://b.test/{path}", f"https://c.test/{path}?q=%C3%A4")
    answer = client.post("/v1/jobs", {"kind": "extension", "url": written[0], "urls": written[1:], "priority": 9})
    assert answer.status == 201, answer
    (claimed,) = client.post("/v1/claims", {"kinds": ["extension"], "name": "test"}).json["items"]
    assert claimed["job"]["id"] == answer.json["id"]
    spec = claimed["job"]["spec"]
    assert [spec["url"], *spec["urls"]] == list(plain)
    address, lease = f"/v1/jobs/{answer.json['id']}", claimed["lease"]
    body = {"pages": [page(url) for url in plain]}
    assert client.post(f"{address}/results", body, Silkline_Lease=lease).json["recorded"] == 3
    client.post(f"{address}/finish", {"end": "completed"}, Silkline_Lease=lease)


def test_a_page_that_nobody_asked_for_is_refused(client: Client) -> None:
    asked = f"https://a.test/{uuid.uuid4()}"
    id = posted(client, asked)
    lease = claim(client, id)
    for pages in ([page("https://other.test/")], [page(asked), page("https://other.test/")]):
        answer = client.post(f"/v1/jobs/{id}/results", {"pages": pages}, Silkline_Lease=lease)
        answer.problem(422, "invalid", "not one of the URLs", "nothing was stored")
    assert client.get(f"/v1/jobs/{id}/results").json["items"] == []
    body = {"pages": [page(asked), page(f"{asked}#same")]}
    assert client.post(f"/v1/jobs/{id}/results", body, Silkline_Lease=lease).json["recorded"] == 1
    found = client.get(f"/v1/jobs/{id}/urls").json["items"]
    assert [(url["url"], url["state"]) for url in found] == [(asked, "done")]


def test_files_that_a_worker_names_are_not_believed(client: Client) -> None:
    """Only our own browser makes files. The pages of the job and its export work whatever the worker said."""
    asked = f"https://a.test/{uuid.uuid4()}"
    id = posted(client, asked)
    lease = claim(client, id)
    files = {"screenshot": {"bytes": 1, "host": "elsewhere"}}
    body = {"pages": [page(asked, metadata={"files": files, "mine": 5})]}
    assert client.post(f"/v1/jobs/{id}/results", body, Silkline_Lease=lease).json["recorded"] == 1
    (stored,) = client.get(f"/v1/jobs/{id}/results").json["items"]
    assert "files" not in stored["metadata"]
    assert stored["metadata"]["mine"] == 5
    assert client.get(f"/jobs/{id}/page/1").status == 200
    assert client.get(f"/v1/jobs/{id}/export?format=md").status == 200


def test_what_an_external_worker_delivered_answers_for_nobody_else(client: Client) -> None:
    """Neither under the URL that was asked for, nor under the one it claims to have landed on."""
    asked, landed = f"https://a.test/{uuid.uuid4()}", f"https://bank.test/{uuid.uuid4()}"
    id = posted(client, asked)
    lease = claim(client, id)
    body = {"pages": [page(asked, final_url=landed)]}
    assert client.post(f"/v1/jobs/{id}/results", body, Silkline_Lease=lease).json["recorded"] == 1
    for url in (asked, landed):
        answer = client.post("/v1/fetch?timeout=0", {"url": url, "max_age": 3600})
        assert answer.status == 202 or not answer.json.get("cached"), answer


PRIVATE = [
    *("http://127.0.0.9/secret", "http://[fd00::1]/", "http://localhost:8080/", "http://127.0.0.1:0/"),
    *("http://[::1]:0/", "http://localhost:0/", "http://u:0@127.0.0.1:0/", "http://metadata.google.internal/"),
    *("http://METADATA:8080/x", "http://instance-data./"),
]
INVALID = ["", "file:///etc/passwd", "http://", f"http://127.0.0.1/?{'a' * 9000}", f"https://a.test/{'a' * 70_000}"]


@pytest.mark.parametrize("landed", [*PRIVATE, *INVALID])
def test_a_page_with_a_private_or_invalid_address_is_not_stored(client: Client, landed: str) -> None:
    """The page that a worker opened may have led it there. The other pages of the delivery are stored."""
    asked, other = f"https://a.test/{uuid.uuid4()}", "https://b.test/"
    id = posted(client, asked, other)
    led = page(asked, final_url=landed, data={"text": "SECRET"}, metadata={"detail": "SECRET"})
    body = {"pages": [led, page(other, final_url=f"{other}landed")]}
    assert client.post(f"/v1/jobs/{id}/results", body, Silkline_Lease=claim(client, id)).json["recorded"] == 2
    answer = client.get(f"/v1/jobs/{id}/results")
    stored, good = answer.json["items"]
    error = "address_blocked" if landed in PRIVATE else "bad_redirect"
    assert (stored["success"], stored["metadata"]["error"]) == (False, error)
    assert (stored["final_url"], stored["data"]) == (asked, {})
    assert b"SECRET" not in answer.body
    assert (good["success"], good["final_url"]) == (True, f"{other}landed")
    url = client.get(f"/v1/jobs/{id}/urls").json["items"][0]
    assert (url["state"], url["reason"]) == ("failed", error)


def test_a_token_for_workers_may_work_and_nothing_else(client: Client) -> None:
    """Here nobody needs a token; one that is sent counts all the same."""
    worker = client.with_token(client.post("/v1/tokens", {"name": "w", "scope": "worker"}).json["token"])
    asked = f"https://a.test/{uuid.uuid4()}"
    id, other = posted(client, asked), posted(client)
    lease = claim(worker, id)
    assert worker.post(f"/v1/jobs/{id}/heartbeat", Silkline_Lease=lease).json == {"desired": "run"}
    assert worker.post(f"/v1/jobs/{id}/results", {"pages": [page(asked)]}, Silkline_Lease=lease).status == 200
    for verb in ("pause", "resume", "stop", "cancel", "retry"):
        worker.post(f"/v1/jobs/{other}/{verb}").problem(403, "forbidden", "needs the scope write")
    for path in ("", f"/{other}", f"/{other}/results", f"/{other}/logs", f"/{other}/events"):
        worker.get(f"/v1/jobs{path}").problem(403, "forbidden", "needs the scope read")
    for path in ("/metrics", "/openapi.json", "/v1/workers", "/"):
        worker.get(path).problem(403, "forbidden", "needs the scope read")
    worker.post("/v1/jobs", {"kind": "extension", "url": asked}).problem(403, "forbidden", "needs the scope write")
    worker.post("/v1/fetch", {"url": asked}).problem(403, "forbidden", "needs the scope write")
    worker.ask("DELETE", f"/v1/jobs/{other}").problem(403, "forbidden", "needs the scope write")
    worker.get("/v1/tokens").problem(403, "forbidden", "needs the scope admin")
    worker.post(f"/v1/jobs/{other}/heartbeat", Silkline_Lease=lease).problem(409, "lease-lost")
    assert (
        worker.post(f"/v1/jobs/{id}/finish", {"end": "completed"}, Silkline_Lease=lease).json["status"] == "completed"
    )
    reader = client.with_token(client.post("/v1/tokens", {"name": "r", "scope": "read"}).json["token"])
    reader.post("/v1/claims", {}).problem(403, "forbidden", "needs the scope worker")


def rescued(database: Database, id: str) -> None:
    """The watchdog gave the job to somebody else."""
    job = jobs.get(database, id)
    decision = Decision(Status.QUEUED, Wish.RUN, database.now(), 0, 1, "supervisor lost", None)
    assert jobs.rescue(database, job, decision)


def test_a_stale_lease_can_do_nothing(client: Client, database: Database) -> None:
    id = posted(client)
    lease = claim(client, id)
    rescued(database, id)
    asked = [("heartbeat", None), ("results", {"pages": [page("https://a.test/")]}), ("finish", {"end": "completed"})]
    for verb, body in asked:
        client.post(f"/v1/jobs/{id}/{verb}", body, Silkline_Lease=lease).problem(409, "lease-lost")
    assert results.count(database, id) == 0
    newer = claim(client, id)
    assert client.post(f"/v1/jobs/{id}/heartbeat", Silkline_Lease=newer).status == 200
    client.post(f"/v1/jobs/{id}/finish", {"end": "completed"}, Silkline_Lease=lease).problem(409, "lease-lost")


@pytest.mark.parametrize(
    "forged", ["1", "1.test-x", f"1.test-{'0' * 32}", f"999.external-test-{'0' * 32}", "x", "1.vm-1-abc"]
)
def test_a_forged_lease_is_refused(client: Client, forged: str) -> None:
    id = posted(client)
    claim(client, id)
    answer = client.post(f"/v1/jobs/{id}/heartbeat", Silkline_Lease=forged.encode().decode("latin-1"))
    answer.problem(409, "lease-lost")


def test_what_readers_see_is_no_lease(client: Client, database: Database) -> None:
    """A job shows its worker. With that and another token for workers, nobody can deliver pages for it."""
    asked = f"https://a.test/{uuid.uuid4()}"
    id = posted(client, asked)
    lease = claim(client, id)
    other = client.with_token(client.post("/v1/tokens", {"name": "other", "scope": "worker"}).json["token"])
    reader = client.with_token(client.post("/v1/tokens", {"name": "eyes", "scope": "read"}).json["token"])
    seen = "".join(reader.get(path).text for path in (f"/v1/jobs/{id}", f"/v1/jobs/{id}/logs", f"/jobs/{id}/details"))
    assert lease.rpartition("-")[2] not in seen, "the secret of the lease"
    shown = reader.get(f"/v1/jobs/{id}").json["worker_id"]
    assert shown == jobs.get(database, id).worker_id
    number = jobs.get(database, id).run_lease
    for forged in (f"{number}.{shown}", f"{number}.{shown.removeprefix('external-')}"):
        for verb, body in (
            ("heartbeat", None),
            ("results", {"pages": [page(asked)]}),
            ("finish", {"end": "completed"}),
        ):
            other.post(f"/v1/jobs/{id}/{verb}", body, Silkline_Lease=forged).problem(409, "lease-lost")
    assert client.post(f"/v1/jobs/{id}/results", {"pages": [page(asked)]}, Silkline_Lease=lease).json["recorded"] == 1


def test_a_lease_has_to_be_sent(client: Client) -> None:
    id = posted(client)
    client.post(f"/v1/jobs/{id}/heartbeat").problem(428, "lease-missing")
    client.post(f"/v1/jobs/{id}/results", {"pages": [page("https://a.test/")]}).problem(428, "lease-missing")
    client.post(f"/v1/jobs/{id}/finish", {"end": "completed"}).problem(428, "lease-missing")


def test_the_lease_of_one_job_is_not_for_another(client: Client) -> None:
    mine, other = posted(client), posted(client)
    lease = claim(client, mine)
    client.post(f"/v1/jobs/{other}/heartbeat", Silkline_Lease=lease).problem(409, "lease-lost")


def test_a_wish_reaches_an_external_worker(client: Client) -> None:
    id = posted(client)
    lease = claim(client, id)
    assert client.post(f"/v1/jobs/{id}/pause").json["status"] == "pausing"
    assert client.post(f"/v1/jobs/{id}/heartbeat", Silkline_Lease=lease).json == {"desired": "pause"}
    ended = client.post(f"/v1/jobs/{id}/finish", {"end": "paused"}, Silkline_Lease=lease).json
    assert ended["status"] == "paused"


@pytest.mark.parametrize(("end", "status"), [("temporary", "failed"), ("permanent", "failed"), ("released", "queued")])
def test_how_an_attempt_may_end(client: Client, end: str, status: str) -> None:
    id = posted(client)
    body = {"end": end, "reason": "because", "message": "it was closed", "wait": 0}
    ended = client.post(f"/v1/jobs/{id}/finish", body, Silkline_Lease=claim(client, id)).json
    assert (ended["status"], ended["reason"], ended["message"]) == (status, "because", "it was closed")


@pytest.mark.parametrize(
    "body",
    [
        {"kinds": ["site"]},
        {"kinds": ["nonsense"]},
        {"kinds": []},
        {"wanted": 0},
        {"name": "a b"},
        {"kind": "extension"},
    ],
)
def test_only_jobs_for_external_workers_are_given_out(client: Client, body: dict[str, Any]) -> None:
    client.post("/v1/claims", body).problem(422, "invalid")


@pytest.mark.parametrize(
    "pages",
    [
        [],
        [{"url": "javascript:x"}],
        [{"url": "https://a.test/", "http_status": 7}],
        [{"url": "https://a.test/", "x": 1}],
        [{"url": "https://a.test/", "metadata": {"redirected_from": 7}}],
        [{"url": "https://a.test/", "metadata": {"redirected_from": ["x", {}]}}],
        [{"url": "https://a.test/", "metadata": {"bytes": "many"}}],
        [{"url": "https://a.test/", "metadata": {"http_status": "200"}}],
        [{"url": "https://a.test/", "metadata": {"seconds": True}}],
        [{"url": "https://a.test/", "data": {"title": {"a": 1}}}],
        [{"url": "https://a.test/", "data": {"markdown": ["x"]}}],
        [{}],
    ],
    ids=str,
)
def test_a_broken_delivery_stores_nothing(client: Client, pages: list[dict[str, Any]]) -> None:
    id = posted(client)
    lease = claim(client, id)
    client.post(f"/v1/jobs/{id}/results", {"pages": pages}, Silkline_Lease=lease).problem(422, "invalid")
    assert client.get(f"/v1/jobs/{id}/results").json["items"] == []


def test_deliveries_side_by_side_do_not_collide(client: Client) -> None:
    id = posted(client, *(f"https://side.test/{number}/{each}" for number in range(6) for each in range(5)))
    lease, seen = claim(client, id), []

    def deliver(number: int) -> None:
        body = {"pages": [page(f"https://side.test/{number}/{each}") for each in range(5)]}
        seen.append(client.post(f"/v1/jobs/{id}/results", body, Silkline_Lease=lease).json["recorded"])

    threads = [threading.Thread(target=deliver, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [5] * 6
    assert client.get(f"/v1/jobs/{id}").json["progress"]["done"] == 30

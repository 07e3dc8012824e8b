"""`POST /v1/fetch`: the page itself where it can be had in time, from the cache where that will do, else the job."""

import threading
import uuid
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest

from silkline.sample.server import SampleServer
from silkline.sample.site import SampleAnswer as Page
from silkline.sample.site import answer as answer_of
from tests.support.served import Answer, Client

HOUR = 3_600


def fetch(client: Client, site: SampleServer, path: str, *, timeout: float = 60, **more: Any) -> Answer:
    body = {"url": f"{site.url}{path}", "allow_private": ["127.0.0.0/8"], "speed": "max", **more}
    return client.post(f"/v1/fetch?timeout={timeout}", body)


def asked(site: SampleServer, path: str) -> int:
    return site.requests.count(f"/{path}")


def test_a_page_is_fetched_and_then_comes_from_the_cache(trusting: Client, site: SampleServer) -> None:
    before = asked(site, "birds/puffin")
    fresh = fetch(trusting, site, "birds/puffin", max_age=HOUR)
    assert fresh.status == 200, fresh
    assert fresh.json["cached"] is False
    assert "Puffins dig." in fresh.json["result"]["data"]["markdown"]
    assert fresh.json["result"]["final_url"] == f"{site.url}birds/puffin"
    assert fresh.json["job"]["kind"] == "page"
    assert asked(site, "birds/puffin") == before + 1
    requests = len(site.requests)
    cached = fetch(trusting, site, "birds/puffin", max_age=HOUR)
    assert cached.status == 200, cached
    assert cached.json["cached"] is True
    assert cached.json["result"] == fresh.json["result"]
    assert cached.json["job"]["id"] == fresh.json["job"]["id"], "no job was made for it"
    assert len(site.requests) == requests, "nothing was asked of the site"


def test_the_cache_is_found_under_both_addresses_of_a_redirect(trusting: Client, site: SampleServer) -> None:
    fresh = fetch(trusting, site, "directions", max_age=HOUR)
    assert fresh.json["result"]["original_url"] == f"{site.url}directions"
    requests = len(site.requests)
    for path in ("directions", "visit/getting-there"):
        assert fetch(trusting, site, path, max_age=HOUR).json["cached"] is True, path
    assert len(site.requests) == requests


def test_a_page_from_the_cache_comes_with_the_short_form_of_its_job(trusting: Client, site: SampleServer) -> None:
    """The job may be one of another caller, with a request of 16 MB."""
    origins = [f"https://h{number}.example" for number in range(5_000)]
    for fields, cached in (({"headers_for": origins}, False), ({"max_age": HOUR}, True)):
        shown = fetch(trusting, site, "birds/arctic-tern", **fields)
        assert shown.json["cached"] is cached
        assert shown.json["job"]["spec"]["headers_for"] is None
        assert len(shown.body) < 50_000


def test_without_an_age_every_page_is_fresh(trusting: Client, site: SampleServer) -> None:
    for _ in range(2):
        before = asked(site, "birds/eider")
        assert fetch(trusting, site, "birds/eider").json["cached"] is False
        assert asked(site, "birds/eider") == before + 1


def test_what_was_asked_for_with_a_cookie_is_for_nobody_else(trusting: Client, site: SampleServer) -> None:
    mine = fetch(trusting, site, "light/lens", max_age=HOUR, cookies={"session": "mine"})
    assert mine.json["cached"] is False
    assert fetch(trusting, site, "light/lens", max_age=HOUR).json["cached"] is False


@pytest.mark.parametrize(
    ("path", "words"), [("nowhere", "http_404"), ("shop", "http_410"), ("private/accounts", "robots")]
)
def test_a_page_that_cannot_be_had_says_why(trusting: Client, site: SampleServer, path: str, words: str) -> None:
    answer = fetch(trusting, site, path)
    found = answer.problem(502, "fetch-failed", words)
    assert f"{site.url}{path}" in found["detail"], "it names the page"
    assert found["retryable"] is False, "that will not change by itself"
    ended = "completed" if words == "robots" else "failed"  # what robots.txt forbids is no failure
    assert trusting.get(answer.headers["location"]).json["status"] == ended


def test_a_host_that_is_not_there(trusting: Client, site: SampleServer) -> None:
    with SampleServer() as gone:
        address = gone.url
    body = {"url": address, "allow_private": ["127.0.0.0/8"], "speed": "max", "ignore_robots": True}
    key = {"Idempotency_Key": f"gone-{address}"}
    answer = trusting.post("/v1/fetch?timeout=60", body, **key)
    while answer.status == 202:  # it is tried a few times, and a loaded machine takes its time
        answer = trusting.post("/v1/fetch?timeout=60", body, **key)
    found = answer.problem(502, "fetch-failed", "connect_failed", address)
    assert found["retryable"] is True
    assert answer.headers["retry-after"]


def test_an_address_that_nobody_allowed(trusting: Client, site: SampleServer) -> None:
    requests = len(site.requests)
    found = trusting.post("/v1/fetch?timeout=60", {"url": site.url}).problem(502, "fetch-failed", "address_blocked")
    assert "List the address in allow_private" in found["detail"]
    assert len(site.requests) == requests, "it was not even asked for its robots.txt"


def test_a_private_address_is_refused_with_the_remedy(client: Client) -> None:
    remedy = "SILKLINE_API_ALLOW_PRIVATE=true"
    client.post("/v1/fetch", {"url": "http://127.0.0.1:9/"}).problem(422, "invalid", "private address", remedy)


def test_nobody_learns_which_address_a_name_leads_to(trusting: Client) -> None:
    body = {"url": "http://localhost:9/", "ignore_robots": True}
    found = trusting.post("/v1/fetch?timeout=60", body).problem(502, "fetch-failed")
    assert "address_blocked (refused: the name leads to a private address)" in found["detail"]
    assert "List the address in allow_private" in found["detail"]
    assert "127.0.0.1" not in found["detail"]


def test_an_address_inside_is_not_told(trusting: Client, site: SampleServer) -> None:
    """Neither in the answer nor in ledger, errors, logs, explanation or page: names of a network stay inside."""
    port = urlsplit(site.url).port
    url = f"http://localhost:{port}/"
    answer = trusting.post("/v1/fetch?timeout=60", {"url": url})
    answer.problem(502, "fetch-failed", "address_blocked")
    page = answer.headers["location"].rpartition("/")[2]
    crawl = trusting.post("/v1/jobs", {"kind": "site", "url": url}).json["id"]
    trusting.wait_for(crawl, "completed", "failed")
    texts = [answer.text]
    for id in (page, crawl):
        for part in ("", "/urls", "/errors", "/logs", "/results", "/hosts", f"/explain?url={url}"):
            texts.append(trusting.get(f"/v1/jobs/{id}{part}").text)
        for part in ("", "/errors", "/logs", "/pages"):
            texts.append(trusting.get(f"/jobs/{id}{part}", Accept="text/html").text)
    assert any("address_blocked" in text for text in texts)
    assert [text for text in texts if "127.0.0.1" in text or "::1" in text] == []


def test_a_page_that_takes_too_long_is_a_job_to_wait_for(trusting: Client) -> None:
    gate = threading.Event()

    def respond(target: str, origin: str) -> Page:
        gate.wait(60)
        return answer_of(target, origin)

    with SampleServer(respond=respond) as slow:
        answer = fetch(trusting, slow, "birds/arctic-tern", timeout=0)
        assert answer.status == 202, answer
        gate.set()
        id = answer.json["id"]
        assert answer.headers["location"] == f"/v1/jobs/{id}"
        assert trusting.wait_for(id, "completed")["progress"]["done"] == 1
    (result,) = trusting.get(f"/v1/jobs/{id}/results").json["items"]
    assert "tern" in result["data"]["markdown"]


def test_the_same_key_gives_the_same_page(trusting: Client, site: SampleServer) -> None:
    body = {"url": f"{site.url}visit/tickets", "allow_private": ["127.0.0.0/8"], "speed": "max"}
    first = trusting.post("/v1/fetch?timeout=60", body, Idempotency_Key=f"tickets-{site.url}")
    requests = len(site.requests)
    again = trusting.post("/v1/fetch?timeout=60", body, Idempotency_Key=f"tickets-{site.url}")
    assert (first.status, again.status) == (200, 200)
    assert again.json["job"]["id"] == first.json["job"]["id"]
    assert len(site.requests) == requests


def test_a_dedupe_key_gives_only_the_page_of_the_same_request(client: Client) -> None:
    """Another job has the key: an external worker has delivered a page of it that nobody checked."""
    key, url = uuid.uuid4().hex, f"https://a.test/{uuid.uuid4()}"
    other = client.post("/v1/jobs", {"kind": "extension", "url": url, "dedupe_key": key}).json["id"]
    claimed = client.post("/v1/claims", {"kinds": ["extension"], "wanted": 50, "name": "test"}).json["items"]
    lease = next(each["lease"] for each in claimed if each["job"]["id"] == other)
    page = {"url": url, "final_url": url, "data": {"markdown": "forged"}}
    assert client.post(f"/v1/jobs/{other}/results", {"pages": [page]}, Silkline_Lease=lease).status == 200
    for headers in ({}, {"Idempotency_Key": key}, {"Idempotency_Key": key}):
        answer = client.post("/v1/fetch?timeout=0", {"url": url, "dedupe_key": key}, **headers)
        answer.problem(409, "dedupe-key-in-use", other, "Use another dedupe_key")


@pytest.mark.both_databases
def test_an_idempotency_key_works_again_when_the_job_with_the_dedupe_key_has_ended(client: Client) -> None:
    key, body = uuid.uuid4().hex, {"url": f"https://a.test/{uuid.uuid4()}", "paused": True}
    other = client.post("/v1/jobs", {**body, "kind": "page", "content": "text", "dedupe_key": key}).json["id"]
    ask = partial(client.post, "/v1/fetch?timeout=0", {**body, "dedupe_key": key}, Idempotency_Key=key)
    ask().problem(409, "dedupe-key-in-use", other)
    assert client.post(f"/v1/jobs/{other}/cancel").status == 200
    answer = ask()
    assert (answer.status, answer.json["id"] != other) == (202, True)
    assert ask().json["id"] == answer.json["id"]


@pytest.mark.parametrize("size", [0, 40_000], ids=["short", "long"])
def test_a_dedupe_key_gives_the_job_of_the_same_request(client: Client, size: int) -> None:
    body = {"url": f"https://a.test/{uuid.uuid4()}", "dedupe_key": uuid.uuid4().hex, "paused": True}
    body["headers_for"] = ["https://a.test", *(f"https://h{number}.test" for number in range(size // 20))]
    first, second = (client.post("/v1/fetch?timeout=0", body, Idempotency_Key=uuid.uuid4().hex) for _ in range(2))
    assert (first.status, second.status) == (202, 202)
    assert client.post("/v1/fetch?timeout=0", body).json["id"] == first.json["id"] == second.json["id"]
    others = (
        {"url": "https://b.test/"},
        {"content": "text"},
        {"headers_for": [*body["headers_for"], "https://b.test"]},
    )
    for other in others:
        client.post("/v1/fetch?timeout=0", {**body, **other}).problem(409, "dedupe-key-in-use", first.json["id"])
    moved = {**body, "url": "https://b.test/", "tenant": uuid.uuid4().hex}
    assert client.post("/v1/fetch?timeout=0", moved).status == 202, "other tenants have other keys"

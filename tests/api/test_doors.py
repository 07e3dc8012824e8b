"""What a request may cost before anybody knows that it is good: it is refused early, and leaves nothing behind."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from silkline.model.database import Database
from silkline.model.job import Status
from silkline.store import jobs
from tests.support.served import Client, Served
from tests.support.supervisors import eventually

LEASE = "1.a-" + "0" * 32


def memory(served: Served) -> int:
    """Megabytes of the process of the API."""
    status = Path(f"/proc/{served.api_pid()}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) // 1024


def test_wrong_items_in_great_number_take_little_memory(served: Served, client: Client) -> None:
    client.post("/v1/jobs", {"kind": "site", "url": "https://example.com/", "include": "("}).problem(422, "invalid")
    before = memory(served)
    body = b'{"kind": "site", "url": "https://example.com/", "%s": [' + b'"(",' * 250_000 + b'"("]}'
    for name in (b"include", b"keep", b"facts", b"headers"):
        answer = client.post("/v1/jobs", body % name, Content_Type="application/json")
        assert len(answer.body) < 5_000
        assert answer.status == 422
    assert memory(served) < before + 150


def test_a_form_that_is_refused_is_answered_with_little_text(client: Client) -> None:
    form = b"kind=site&url=https%3A%2F%2Fexample.com&include=" + b"(%0A" * 200_000
    answer = client.post("/jobs", form, Content_Type="application/x-www-form-urlencoded")
    assert answer.status == 422
    assert len(answer.body) < 200_000
    assert "not shown again" in answer.text


def test_a_delivery_without_the_lease_is_refused_before_its_pages_are_read(client: Client) -> None:
    wrong = b'{"pages": [' + b"1," * 1_000 + b"1]}"
    client.post("/v1/jobs/x/results", wrong, Content_Type="application/json").problem(428, "lease-missing")
    answer = client.post("/v1/jobs/x/results", wrong, Content_Type="application/json", Silkline_Lease=LEASE)
    answer.problem(404, "not-found")
    job = client.post("/v1/jobs", {"kind": "page", "url": "https://example.com/", "paused": True}).json["id"]
    answer = client.post(f"/v1/jobs/{job}/results", wrong, Content_Type="application/json", Silkline_Lease=LEASE)
    answer.problem(409, "lease-lost")


def test_a_name_that_no_lease_can_have_is_refused_at_the_claim(client: Client) -> None:
    for name in ("wörker", "名", "a b", "a\n"):
        client.post("/v1/claims", {"name": name}).problem(422, "invalid", "name")


@pytest.mark.parametrize("mode", ["no-cors", "cors"])
@pytest.mark.parametrize("path", ["/v1/jobs", "/", "/v1/jobs/x/export?format=csv"])
def test_a_page_of_another_site_makes_the_server_read_nothing(client: Client, path: str, mode: str) -> None:
    client.get(path, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode=mode, Sec_Fetch_Dest="image").problem(
        403, "cross-site"
    )
    client.get(path, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="iframe").problem(
        403, "cross-site"
    )


def test_a_link_from_another_site_leads_to_our_page(client: Client) -> None:
    visit = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}
    assert client.get("/", **visit).status == 200
    ours = {"Sec_Fetch_Site": "same-origin", "Sec_Fetch_Mode": "no-cors", "Sec_Fetch_Dest": "style"}
    assert client.get("/v1/jobs", **ours).status == 200


def ids_of(client: Client, part: str) -> list[str]:
    """All jobs with this part in their URL. A page of the list has few jobs with long metadata."""
    ids: list[str] = []
    cursor = ""
    while cursor is not None:
        page = client.get(f"/v1/jobs?limit=200&q={part}{cursor and '&cursor='}{cursor}").json
        ids += [job["id"] for job in page["items"]]
        cursor = page["next_cursor"]
    return ids


def fetch_head(port: int, body: bytes) -> bytes:
    lines = ("POST /v1/fetch HTTP/1.1", f"Host: 127.0.0.1:{port}", "Content-Type: application/json")
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


def test_fetches_that_are_refused_store_no_job(client: Client) -> None:
    mark = "flood-of-fetches"
    later = {"run_at": "2100-01-01T00:00:00Z"}

    def fetch(number: int) -> int:
        return client.post("/v1/fetch?timeout=5", {"url": f"http://{mark}-{number}.invalid/", **later}).status

    with ThreadPoolExecutor(130) as threads:
        statuses = list(threads.map(fetch, range(130)))
    stored = client.get(f"/v1/jobs?limit=500&q={mark}").json["items"]
    assert set(statuses) == {202, 429}
    assert len(stored) == statuses.count(202), "each job was told to the caller who asked for it"
    for job in stored:
        client.post(f"/v1/jobs/{job['id']}/cancel")


def test_fetches_that_wait_for_their_page_hold_little_memory(
    served: Served, client: Client, database: Database
) -> None:
    metadata = {"a": [{"a": {}}] * 5_400}
    body = {"url": "http://held-fetches.invalid/", "run_at": "2100-01-01T00:00:00Z", "metadata": metadata}
    sent = fetch_head(client.port, json.dumps(body, separators=(",", ":")).encode())
    before, queued = memory(served), jobs.counts(database)[Status.QUEUED]
    connections = [socket.create_connection((client.host, client.port)) for _ in range(80)]
    try:
        for connection in connections:
            connection.sendall(sent)

        def stored() -> bool:
            return jobs.counts(database)[Status.QUEUED] == queued + len(connections)  # a list would read all of them

        eventually("every fetch has stored its job", stored)
        assert memory(served) < before + 60, "a megabyte and more for each, if it kept what was parsed"
    finally:
        for connection in connections:
            connection.close()
    for id in ids_of(client, "held-fetches"):
        client.post(f"/v1/jobs/{id}/cancel")

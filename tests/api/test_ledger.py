"""What a job brought, page by page and as a stream, why URLs failed, and another chance for them."""

import json
import struct
import uuid
from collections.abc import Sequence

import pytest

from silkline.model.database import Database
from silkline.model.job import Decision, Job, NewJob, Status, Wish
from silkline.model.ledger import Checkpoint, NewResult, NewUrl, PageLinks, Settled
from silkline.model.url import url_key
from silkline.store import jobs, logs, urls
from tests.support.served import Client

ROOT = "https://ledger.test/"


def crawl(
    database: Database,
    pages: int,
    *,
    status: Status = Status.PAUSED,
    size: int = 10,
    failed: int = 0,
    dedupe_key: str | None = None,
) -> Job:
    """A job whose ledger holds a root, its pages, and some that failed in turn with a timeout or a 404.

    Every page links to everything that failed, and to an address that is not to be followed.
    """
    new = NewJob("site", {"url": ROOT}, request_url=ROOT, paused=True, dedupe_key=dedupe_key)
    job, _ = jobs.enqueue(database, new)
    with database.transaction() as transaction:
        addresses = [ROOT, *(f"{ROOT}{number}" for number in range(1, pages + failed))]
        found = [
            NewUrl(id, url_key(url), url, "ledger.test", int(id > 1), found_on=1 if id > 1 else None)
            for id, url in enumerate(addresses, 1)
        ]
        settled = [Settled(each.id, "done", http_status=200) for each in found[:pages]]
        settled += [
            Settled(
                each.id, "failed", "timeout" if each.id % 2 else "http_404", "it was", 2, None if each.id % 2 else 404
            )
            for each in found[pages:]
        ]
        results = [
            NewResult(each.id, each.url, each.url_key, each.url, each.url_key, _data(each.id, size), True, "{}")
            for each in found[:pages]
        ]
        keys = struct.pack(f">{failed + 1}q", *(each.url_key for each in found[pages:]), 1)
        links = [PageLinks(each.id, keys) for each in found[:pages]]
        checkpoint = Checkpoint(found=found, settled=settled, results=results, links=links)
        urls.write(transaction, job.id, checkpoint, database.now())
    return ended(database, job, status)


def ended(database: Database, job: Job, status: Status) -> Job:
    """Resumed and claimed in one transaction: the server's own supervisor would take a job that is queued."""
    if status is Status.PAUSED:
        return job
    with database.transaction() as transaction:
        transaction.rows(
            "jobs.change",
            id=job.id,
            seen_status="paused",
            seen_desired="pause",
            run_lease=job.run_lease,
            status="queued",
            desired="run",
            run_at=database.now(),
            fresh_retries=0,
            finished_at=None,
            now=database.now(),
        )
        transaction.rows("jobs.claim_one", id=job.id, worker_id="test", host="test", now=database.now())
    job = jobs.get(database, job.id)
    if status is Status.RUNNING:
        return job
    decision = Decision(status, Wish.RUN, database.now(), 0, 0, "test", None)
    assert jobs.finish_many(database, [(job, decision)]) == 1
    return jobs.get(database, job.id)


def _data(id: int, size: int) -> str:
    return json.dumps({"title": f"Page {id}", "markdown": "x" * size})


def every(client: Client, path: str) -> list[dict]:
    items: list[dict] = []
    cursor = "0"
    while cursor is not None:
        answer = client.get(f"{path}{'&' if '?' in path else '?'}cursor={cursor}").json
        items += answer["items"]
        cursor = answer["next_cursor"]
    return items


def test_results_page_by_page_and_as_a_stream_are_the_same(client: Client, database: Database) -> None:
    job = crawl(database, 95)
    paged = every(client, f"/v1/jobs/{job.id}/results?limit=30")
    assert [result["url_id"] for result in paged] == list(range(1, 96))
    stream = client.get(f"/v1/jobs/{job.id}/results", Accept="application/x-ndjson")
    assert stream.headers["content-type"].startswith("application/x-ndjson")
    assert [json.loads(line) for line in stream.text.splitlines()] == paged
    named = {"id", "job_id", "url_id", "original_url", "final_url", "data", "success", "metadata", "created_at"}
    assert set(paged[0]) == named
    short = client.get(f"/v1/jobs/{job.id}/results?content=false&limit=1").json["items"]
    assert short[0]["data"] == {"title": "Page 1"}


def test_a_page_of_large_results_ends_early_and_goes_on(client: Client, database: Database) -> None:
    job = crawl(database, 30, size=1_000_000)
    first = client.get(f"/v1/jobs/{job.id}/results?limit=30")
    assert len(first.body) < 3_000_000
    assert first.json["next_cursor"] is not None
    assert [result["url_id"] for result in every(client, f"/v1/jobs/{job.id}/results?limit=30")] == list(range(1, 31))


def test_a_search_in_large_results_reads_some_of_them_and_goes_on(client: Client, database: Database) -> None:
    job = crawl(database, 20, size=3_000_000)
    path = f"/v1/jobs/{job.id}/results?where=sku"
    first = client.get(path).json
    assert first["items"] == []
    assert first["next_cursor"] is not None
    assert every(client, path) == []


def test_a_search_page_by_page_and_as_a_stream_is_the_same(client: Client, database: Database) -> None:
    new = NewJob("site", {"url": ROOT}, request_url=ROOT, paused=True)
    job, _ = jobs.enqueue(database, new)
    with database.transaction() as transaction:
        found = [NewUrl(id, id, f"{ROOT}{id}", "ledger.test", 0) for id in range(1, 96)]
        data = [json.dumps({"rows": [{"a": "x", "place": each.id}, {"a": "y"}]}) for each in found]
        stored = [
            NewResult(each.id, each.url, each.id, each.url, each.id, some, True, "{}")
            for each, some in zip(found, data, strict=True)
        ]
        settled = [Settled(each.id, "done", http_status=200) for each in found]
        urls.write(transaction, job.id, Checkpoint(found=found, settled=settled, results=stored), database.now())
    path = f"/v1/jobs/{job.id}/results?where=a~X&where=place%3E30"
    paged = every(client, f"{path}&limit=7")
    assert [result["url_id"] for result in paged] == list(range(31, 96))
    assert [json.loads(line) for line in client.get(f"{path}&format=jsonl").text.splitlines()] == paged
    assert client.get(f"/v1/jobs/{job.id}/results?format=jsonl&where=a=z").text == ""


def test_every_url_with_its_state_its_reason_and_who_named_it(client: Client, database: Database) -> None:
    job = crawl(database, 3, failed=4)
    found = every(client, f"/v1/jobs/{job.id}/urls?limit=2")
    assert [url["id"] for url in found] == list(range(1, 8))
    assert (found[0]["found_on"], found[1]["found_on"], found[1]["found_on_id"]) == (None, ROOT, 1)
    failed = every(client, f"/v1/jobs/{job.id}/urls?state=failed")
    assert [url["reason"] for url in failed] == ["http_404", "timeout"] * 2
    errors = client.get(f"/v1/jobs/{job.id}/errors?reason=timeout").json
    assert {(each["reason"], each["urls"]) for each in errors["reasons"]} == {("timeout", 2), ("http_404", 2)}
    assert [url["id"] for url in errors["items"]] == [5, 7]
    client.get(f"/v1/jobs/{job.id}/urls?state=lost").problem(422, "invalid")


def test_a_broken_link_names_the_pages_it_stands_on(client: Client, database: Database) -> None:
    job = crawl(database, 25, failed=30)
    errors = every(client, f"/v1/jobs/{job.id}/errors?limit=12")
    assert [url["id"] for url in errors] == list(range(26, 56))
    named = [{"id": 1, "url": ROOT, "kind": "page", "via": []}]
    named += [{"id": id, "url": f"{ROOT}{id - 1}", "kind": "page", "via": []} for id in range(2, 21)]
    assert all(url["links_in"] == {"count": 25, "sources": named} for url in errors)
    stream = client.get(f"/v1/jobs/{job.id}/errors?format=jsonl").text.splitlines()
    assert [json.loads(line) for line in stream] == errors
    told = client.get(f"/v1/jobs/{job.id}/explain?url={ROOT}").json
    assert told["links_in"] == {"count": 0, "sources": []}
    out = told["links_out"]
    assert (out["count"], out["unknown"], [url["id"] for url in out["urls"]]) == (31, 1, list(range(26, 56)))
    assert out["urls"][0]["found_on"] == ROOT
    page = client.get(f"/jobs/{job.id}/errors", Accept="text/html").text
    assert page.count("<summary>25 links</summary>") == 30
    assert "and 5 more" in page
    page = client.get(f"/jobs/{job.id}/page/1", Accept="text/html").text
    assert "No page of this crawl links here." in page
    assert "Crawlers must not follow 1 of these links" in page


def test_one_url_is_explained(client: Client, database: Database) -> None:
    job = crawl(database, 2, failed=1)
    told = client.get(f"/v1/jobs/{job.id}/explain?url=HTTPS://LEDGER.test/2%23part").json
    assert told["says"] == "It failed after 2 tries: timeout, it was."
    assert [url["url"] for url in told["path"]] == [ROOT, f"{ROOT}2"]
    assert told["result"] is None
    assert client.get(f"/v1/jobs/{job.id}/explain?url={ROOT}").json["result"]["url_id"] == 1
    client.get(f"/v1/jobs/{job.id}/explain?url={ROOT}nowhere").problem(404, "not-found", "is not in the ledger of job")
    client.get(f"/v1/jobs/{job.id}/explain?url=mailto:x").problem(422, "invalid")


def test_log_lines_by_level_and_text(client: Client, database: Database) -> None:
    job = crawl(database, 1)
    said: Sequence[tuple[str, str]] = [
        ("info", "100%_done"),
        ("debug", "100 x done"),
        ("warning", "slow"),
        ("error", "Broken"),
    ]
    logs.append(database, [logs.NewLine(job.id, 1, level, message, database.now()) for level, message in said])

    def lines(query: str) -> list[str]:
        return [line["message"] for line in every(client, f"/v1/jobs/{job.id}/logs?{query}limit=1")]

    assert lines("") == [message for _, message in said]
    assert lines("level=warning&") == ["slow", "Broken"]
    assert lines("q=%25_&") == ["100%_done"]
    assert lines("q=BROKEN&level=info&") == ["Broken"]


@pytest.mark.parametrize(
    ("status", "then"), [(Status.PAUSED, "paused"), (Status.FAILED, "queued"), (Status.STOPPED, "queued")]
)
def test_urls_that_failed_get_another_chance(client: Client, database: Database, status: Status, then: str) -> None:
    job = crawl(database, 2, failed=6, status=status)
    with_worker = client.post(f"/v1/jobs/{job.id}/retry", {"reason": "timeout"})
    assert with_worker.status == 200, with_worker
    assert with_worker.json["status"] in (then, "running")
    client.post(f"/v1/jobs/{job.id}/cancel")
    assert urls.reasons(database, job.id) == [("failed", "http_404", 3)] or status is not Status.PAUSED


def test_failures_of_a_completed_job_become_a_job_of_their_own(client: Client, database: Database) -> None:
    job = crawl(database, 2, failed=4, status=Status.COMPLETED)
    again = client.post(f"/v1/jobs/{job.id}/retry", {"reason": "timeout"}).json
    assert (again["parent_id"], again["kind"]) == (job.id, "page")
    assert again["spec"]["urls"] == [f"{ROOT}2", f"{ROOT}4"]
    assert jobs.get(database, job.id).status is Status.COMPLETED
    client.post(f"/v1/jobs/{job.id}/retry", {"reason": "no such reason"}).problem(409, "refused")
    client.post(f"/v1/jobs/{again['id']}/cancel")


def test_a_running_job_is_paused_before_its_ledger_is_touched(client: Client, database: Database) -> None:
    job = crawl(database, 2, failed=2, status=Status.RUNNING)
    client.post(f"/v1/jobs/{job.id}/retry", {"reason": "timeout"}).problem(409, "refused", "pause it first")
    for body in ({"why": "x"}, {"reason": ""}, {"reason": 1}, {"reason": "a", "b": 1}):
        client.post(f"/v1/jobs/{job.id}/retry", body).problem(422, "invalid")


@pytest.mark.parametrize("status", [Status.FAILED, Status.STOPPED])
def test_a_retry_that_is_refused_changes_nothing(client: Client, database: Database, status: Status) -> None:
    """Another live job has the dedupe key of the job."""
    key = str(uuid.uuid4())
    job = crawl(database, 2, failed=6, status=status, dedupe_key=key)
    live = crawl(database, 1, dedupe_key=key)
    before = urls.page(database, job.id), urls.counts(database, job.id), jobs.get(database, job.id)
    for path, body in ((f"/v1/jobs/{job.id}/retry", {"reason": "timeout"}), (f"/v1/jobs/{job.id}/retry", {})):
        client.post(path, body).problem(409, "refused", "another job with the dedupe key")
    assert (urls.page(database, job.id), urls.counts(database, job.id), jobs.get(database, job.id)) == before
    client.post(f"/v1/jobs/{live.id}/cancel")
    assert client.post(f"/v1/jobs/{job.id}/retry", {"reason": "timeout"}).status == 200
    client.post(f"/v1/jobs/{job.id}/cancel")


def test_deleting_removes_everything(client: Client, database: Database) -> None:
    job = crawl(database, 5, failed=5, status=Status.COMPLETED)
    assert client.ask("DELETE", f"/v1/jobs/{job.id}").status == 204
    assert urls.page(database, job.id) == []
    assert database.rows("count_history.all", job_id=job.id, wanted=9) == []
    client.ask("DELETE", f"/v1/jobs/{job.id}").problem(404, "not-found")

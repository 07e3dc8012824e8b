"""A crawl in several shards at the API and on the page: one crawl, and its shards where they are asked for."""

from datetime import timedelta
from typing import Any

from silkline.model.database import Database
from silkline.model.job import AttemptEnd, Backoff, End, NewJob, Verb, decide
from silkline.model.ledger import Checkpoint, NewUrl, Settled
from silkline.model.sharding import ids_before
from silkline.store import jobs, shards, urls
from tests.support.served import Client

SPEC: dict[str, Any] = {"url": "https://one.example/", "shards": 2}


def paused_crawl(database: Database, **more: Any) -> str:
    """A crawl whose shards exist and do not run: it was paused before it could start."""
    later = database.now() + timedelta(days=1)  # so that the worker of this server does not claim it
    new = NewJob("site", {**SPEC, **more}, request_url=SPEC["url"], run_at=later)
    id = jobs.enqueue(database, new)[0].id
    job = jobs.claim_one(database, "w", "here", id)
    jobs.wish(database, id, Verb.PAUSE)
    assert not shards.open_shards(database, job)
    ended, now = AttemptEnd(End.RELEASED), database.now()
    jobs.finish(database, job, lambda seen: decide(seen, ended, backoff=Backoff(), now=now, jitter=0.0))
    for number, shard in enumerate(shards.of(database, id)):
        first = ids_before(number) + 1
        found = [NewUrl(first + place, place, f"https://h{number}.example/{place}", "h", 0) for place in range(3)]
        checkpoint = Checkpoint(found=found, settled=[Settled(first, "failed", "http_404")])
        with database.transaction() as transaction:
            urls.write(transaction, shard.id, checkpoint, now)
    return id


def test_shards_have_the_short_form_of_a_long_request(client: Client, database: Database) -> None:
    if database.dialect == "sqlite":
        return
    id = paused_crawl(database, headers_for=["https://a.example"] * 5_000)
    for path in (f"/v1/jobs/{id}/shards", f"/jobs/{id}/shards"):
        answer = client.get(path)
        assert answer.status == 200
        assert len(answer.body) < 50_000
    large = {"kind": "site", "url": SPEC["url"], "headers_for": ["https://a.example"] * 50_000, "shards": 256}
    client.post("/v1/jobs", large).problem(422, "invalid", "shorten its longest field, headers_for")


def test_a_crawl_in_shards_is_one_crawl(client: Client, database: Database) -> None:
    if database.dialect == "sqlite":
        client.post("/v1/jobs", {"kind": "site", **SPEC}).problem(422, "invalid", "shards need PostgreSQL")
        return
    id = paused_crawl(database)
    shown = client.get(f"/v1/jobs/{id}").json
    counts = shown["progress"]
    assert (counts["discovered"], counts["queued"], counts["failed"]) == (6, 4, 2)
    assert (shown["status"], shown["shard"]) == ("paused", None)
    parts = client.get(f"/v1/jobs/{id}/shards").json["items"]
    assert [(part["shard"], part["status"], part["progress"]["discovered"]) for part in parts] == [
        (0, "paused", 3),
        (1, "paused", 3),
    ]
    first_page = client.get(f"/v1/jobs/{id}/urls?limit=4").json
    rest = client.get(f"/v1/jobs/{id}/urls?limit=4&cursor={first_page['next_cursor']}").json
    listed = [item["url"] for item in first_page["items"] + rest["items"]]
    assert listed == [f"https://h{number}.example/{place}" for number in range(2) for place in range(3)]
    failed = [item["url"] for item in client.get(f"/v1/jobs/{id}/errors").json["items"]]
    assert failed == ["https://h0.example/0", "https://h1.example/0"]
    ids = [job["id"] for job in client.get("/v1/jobs?limit=500").json["items"]]
    assert id in ids
    assert not {part["id"] for part in parts} & set(ids)
    assert client.get(f"/jobs/{id}/shards").text.count('data-name="shard"') == 2
    client.post(f"/v1/jobs/{parts[0]['id']}/resume", {}).problem(409, "refused", "shard 0 of the crawl")
    retry = f"/v1/jobs/{parts[0]['id']}/retry"
    client.post(retry, {"reason": "http_404"}).problem(409, "refused", "shard 0 of the crawl")
    assert client.get(f"/v1/jobs/{id}").json["progress"] == counts
    assert "Retry these" not in client.get(f"/jobs/{parts[0]['id']}/errors").text
    assert "Retry these" in client.get(f"/jobs/{id}/errors").text
    assert client.post(f"/v1/jobs/{id}/cancel", {}).json["status"] == "cancelled"
    assert {part["status"] for part in client.get(f"/v1/jobs/{id}/shards").json["items"]} == {"cancelled"}
    events = {name: data for _, name, data in client.events(f"/v1/jobs/{id}/events")}
    assert events["status"]["progress"]["discovered"] == 6
    assert "end" in events

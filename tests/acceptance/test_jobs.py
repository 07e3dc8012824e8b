"""A person adds jobs, looks at them, changes their mind, and removes them; on both databases."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from silkline.model.database import Database
from silkline.model.job import AttemptEnd, Backoff, End, Job, decide
from silkline.model.ledger import Checkpoint, NewResult, NewUrl, Settled
from silkline.store import jobs, urls
from silkline.store.opening import open_database
from tests.acceptance.conftest import PATIENCE, Silkline

UNKNOWN = "0123abcd"


def finish(database: Database, job: Job, end: End, message: str = "") -> None:
    jobs.finish(
        database,
        job,
        lambda now: decide(now, AttemptEnd(end, message=message), backoff=Backoff(), now=database.now(), jitter=0.5),
    )


def running(database: Database) -> Job:
    """The job that waits, taken by a worker."""
    return jobs.claim(database, "worker-1", "a-host", ["page", "site"], 1)[0]


def test_the_life_of_a_job_that_never_ran(on_both: Silkline) -> None:
    added = on_both("jobs", "add", "--kind", "page", "https://example.com/a")
    assert added.code == 0, added
    id = added.out.strip()
    assert "No worker is running" in added.err

    listed = on_both("jobs").out.splitlines()
    assert listed[0].split() == ["ID", "KIND", "STATUS", "PROGRESS", "AGE", "URL"]
    short, kind, status, *_, url = listed[1].split()
    assert (kind, status, url) == ("page", "queued", "https://example.com/a")
    assert id.startswith(short)

    paused = on_both("jobs", "pause", short)
    assert (paused.code, paused.out) == (0, "")
    assert paused.err == f"Job {id} is paused.\n"
    assert on_both("jobs", "resume", "last", "--json").json["status"] == "queued"
    on_both("jobs", "rm", id).refused(1, "queued", "cancel it first")
    assert on_both("jobs", "cancel", id).code == 0
    assert on_both("jobs", "show", id, "--json").json["status"] == "cancelled"
    assert on_both("jobs", "rm", id).code == 0
    on_both("jobs", "show", id).refused(5, id)


def test_a_wrong_id_and_an_impossible_wish_change_nothing(on_both: Silkline) -> None:
    on_both("jobs", "show", "last").refused(5, "no jobs yet")
    on_both("jobs", "add", "--kind", "page", "https://example.com/")
    with closing(open_database(on_both.database_url)) as database:
        finish(database, running(database), End.COMPLETED)
        before = jobs.find(database, "last")
        for verb in ("pause", "resume", "stop", "cancel", "retry"):
            on_both("jobs", verb, "last").refused(1, f"cannot {verb} job {before.id}", "completed")
        on_both("jobs", "pause", UNKNOWN).refused(5, UNKNOWN)
        assert jobs.find(database, "last") == before


def test_the_list_shows_progress_and_words_in_between(on_both: Silkline) -> None:
    on_both("jobs", "add", "--kind", "site", "https://example.com/", "--payload", '{"limit": 5}')
    with closing(open_database(on_both.database_url)) as database:
        job = running(database)
        found = [NewUrl(id, id, f"https://example.com/{id}", "example.com", 0) for id in (1, 2, 3, 4, 5)]
        settled = [
            Settled(1, "done"),
            Settled(2, "failed", "http_404", http_status=404),
            Settled(5, "skipped", "robots"),
        ]
        result = NewResult(1, found[0].url, 1, found[0].url, 1, '{"markdown": "x"}', True, "{}")
        urls.record(database, job, Checkpoint(found, settled, [result], bytes=2048, in_flight=1, seconds=1.5))
    assert on_both("jobs", "stop", "last").err == f"Job {job.id} is stopping.\n"

    row = on_both("jobs", "ls", "--status", "stopping").out.splitlines()[1]
    assert "1/4, 1 failed" in row, "as the web page counts: skipped URLs are no work"
    assert on_both("jobs", "ls", "--status", "pausing").err == "No jobs are pausing.\n"

    shown = on_both("jobs", "show", "last").out
    assert "5 discovered = 1 queued + 1 in flight + 1 done + 1 failed + 1 skipped" in shown
    assert "1 http_404" in shown
    assert "held by worker-1 on a-host" in shown

    value = on_both("jobs", "show", "last", "--json").json
    counts = value["progress"]
    parts = ("queued", "in_flight", "done", "unchanged", "failed", "skipped")
    assert counts["discovered"] == sum(counts[part] for part in parts) == 5
    assert (value["status"], value["desired"]) == ("stopping", "stop")
    failed, skipped = sorted(value["reasons"], key=lambda each: each["state"])
    assert failed == {"state": "failed", "reason": "http_404", "urls": 1}
    assert skipped == {"state": "skipped", "reason": "robots", "urls": 1}
    assert value["results"] == 1


def test_a_job_is_added_with_everything(on_both: Silkline, tmp_path: Path) -> None:
    payload = tmp_path / "spec.json"
    payload.write_text('{"urls": ["https://example.com/ü"], "content": "text"}')
    options = ("--priority", "7", "--tenant", "us", "--run-at", "2h", "--dedupe-key", "k", "--max-retries", "0")
    first = on_both("--json", "jobs", "add", "--kind", "page", "--payload", f"@{payload}", *options).json
    assert first["created"] is True
    assert first["spec"] == {"urls": ["https://example.com/ü"], "content": "text"}
    assert (first["priority"], first["tenant"], first["max_retries"], first["status"]) == (7, "us", 0, "pending")

    same = ("--tenant", "us", "--dedupe-key", "k")
    again = on_both("jobs", "add", "--kind", "page", *same, "--payload", "-", input='{"url":"http://b/"}')
    assert again.out.strip() == first["id"]
    assert "has the same key and has not ended" in again.err
    assert len(on_both("jobs", "ls", "--json").json) == 1


def test_the_operator_may_reach_the_address_they_typed(silkline: Silkline) -> None:
    options = ("jobs", "add", "--json", "--kind", "page")
    assert silkline(*options, "http://127.0.0.1:8000/").json["spec"]["allow_private"] == ["127.0.0.1:8000"]
    assert "allow_private" not in silkline(*options, "--payload", '{"url": "http://127.0.0.1:8000/"}').json["spec"]


def test_the_log_is_shown(silkline: Silkline, store: Database, enqueue: Callable[..., Job]) -> None:
    from silkline.store import logs

    job = enqueue()
    lines = [logs.NewLine(job.id, 1, "info", f"line {number}", store.now()) for number in range(5)]
    logs.append(store, lines)
    shown = silkline("logs", "last").out.splitlines()
    assert [line.split("INFO")[1].strip() for line in shown] == [f"line {number}" for number in range(5)]
    tail = silkline("logs", job.id, "-n", "2", "--json").out.splitlines()
    assert len(tail) == 2
    assert '"message": "line 4"' in tail[1]


def test_the_log_is_followed_until_the_job_ends(
    silkline: Silkline, store: Database, enqueue: Callable[..., Job]
) -> None:
    from silkline.store import logs

    enqueue()
    job = running(store)
    logs.append(store, [logs.NewLine(job.id, 1, "info", "first", store.now())])
    follower = silkline.start("logs", "-f", "last")
    assert follower.stdout is not None
    assert b"first" in follower.stdout.readline()
    logs.append(store, [logs.NewLine(job.id, 1, "info", "second", store.now())])
    assert b"second" in follower.stdout.readline()
    logs.append(store, [logs.NewLine(job.id, 1, "info", "third", store.now())])
    finish(store, job, End.COMPLETED)
    rest, complaints = follower.communicate(timeout=PATIENCE)
    assert b"third" in rest
    assert complaints == b""
    assert follower.returncode == 0


def test_who_is_alive(on_both: Silkline) -> None:
    from silkline.store import workers

    assert "No worker is alive" in on_both("workers").err
    with closing(open_database(on_both.database_url)) as database:
        workers.register(database, id="w-1", host="a-host", pid=42, boot_id="b", slots=3, version="0.1.0")
    row = on_both("workers").out.splitlines()[1].split()
    assert row[:4] == ["w-1", "a-host", "42", "running"]
    assert on_both("workers", "--json").json[0]["slots"] == 3


def test_db_upgrade_says_what_it_did(on_both: Silkline) -> None:
    first = on_both("db", "upgrade", "--json").json
    assert first["before"] == 0 < first["after"]
    assert on_both("db", "upgrade", "--json").json == {**first, "before": first["after"]}
    assert f"revision {first['after']}" in on_both("db", "upgrade").err

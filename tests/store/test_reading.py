"""Finding, listing, noting and deleting jobs."""

import dataclasses
import json
from datetime import timedelta

import pytest

from silkline.errors import NotFound, Refused, UsageError
from silkline.model.database import Database
from silkline.model.job import End, NewJob, Status, Verb
from silkline.model.ledger import Checkpoint
from silkline.store import job_removal, jobs, links, logs, results, urls
from tests.store.given import NOWHERE, finished, in_status, queued, result, running, settled, url


def test_there_is_no_such_job(database: Database) -> None:
    for id in (NOWHERE, "x", "", "%", "' OR 1=1 --", "\x00", "\ud800", NOWHERE.replace("-", "")):
        with pytest.raises(NotFound):
            jobs.get(database, id)


def test_a_job_is_found_by_its_id_its_beginning_or_last(database: Database) -> None:
    first, second = queued(database), queued(database)
    assert jobs.find(database, first.id) == first
    assert jobs.find(database, first.id.upper()) == first
    assert jobs.find(database, first.id.replace("-", "")) == first
    assert jobs.find(database, first.id[:-3]) == first
    assert jobs.find(database, second.id.replace("-", "")[:30]) == second
    assert jobs.find(database, "last") == second


def test_an_unclear_or_impossible_name_is_not_found(database: Database) -> None:
    with pytest.raises(NotFound, match="no jobs yet"):
        jobs.find(database, "last")
    first = queued(database)
    queued(database)
    with pytest.raises(NotFound, match="the ids of several jobs begin with"):
        jobs.find(database, first.id[:4])
    for name in ("zzz", "", "-", first.id + "0", "%", "_"):
        with pytest.raises(NotFound, match="no job"):
            jobs.find(database, name)
    with pytest.raises(NotFound, match="no job ffff; `silkline jobs` lists the jobs"):
        jobs.find(database, "ffff")


def test_pages_of_jobs_go_back_in_time_without_gap_or_overlap(database: Database) -> None:
    ids = jobs.enqueue_many(database, [NewJob("page", {})] * 25)
    seen: list[str] = []
    before = jobs.LAST_ID
    while page := jobs.page(database, before=before, wanted=10):
        seen += [job.id for job in page]
        before = page[-1].id
    assert seen == ids[::-1]


def test_jobs_are_listed_by_status_and_kind(database: Database) -> None:
    page, site = queued(database, "page"), queued(database, "site")
    busy = running(database, kind="site")
    assert [job.id for job in jobs.page(database, status=Status.QUEUED)] == [site.id, page.id]
    assert [job.id for job in jobs.page(database, kind="site")] == [busy.id, site.id]
    assert [job.id for job in jobs.page(database, status=Status.QUEUED, kind="site")] == [site.id]
    assert jobs.page(database, status=Status.FAILED, kind="site") == []
    assert [job.id for job in jobs.page(database, status=Status.QUEUED, before=site.id)] == [page.id]


def test_a_cursor_that_is_no_id_is_refused(database: Database) -> None:
    with pytest.raises(UsageError, match="'abc' is not a cursor"):
        jobs.page(database, before="abc")


def test_jobs_are_counted_by_status(database: Database) -> None:
    for status in (Status.QUEUED, Status.QUEUED, Status.COMPLETED, Status.PAUSED):
        in_status(database, status) if status is not Status.QUEUED else queued(database, paused=False)
    counted = jobs.counts(database)
    assert set(counted) == set(Status)
    assert {status: number for status, number in counted.items() if number} == {
        Status.QUEUED: 2,
        Status.COMPLETED: 1,
        Status.PAUSED: 1,
    }


def test_the_watchdog_sees_what_runs(database: Database) -> None:
    queued(database)
    mine = running(database)
    assert jobs.running(database) == [mine]


def test_metadata_is_replaced(database: Database) -> None:
    job = queued(database, metadata={"a": 1})
    jobs.note(database, job.id, {"b": [1, "ü"]})
    assert jobs.get(database, job.id).metadata == {"b": [1, "ü"]}
    with pytest.raises(NotFound):
        jobs.note(database, NOWHERE, {})


def test_retention_by_age_and_by_count(database: Database) -> None:
    done = [in_status(database, Status.COMPLETED) for _ in range(4)]
    queued(database)
    third = jobs.get(database, done[2].id).finished_at
    assert third is not None
    assert job_removal.finished_before(database, third) == [job.id for job in done[:2]]
    assert job_removal.finished_before(database, third, wanted=1) == [done[0].id]
    assert job_removal.finished_before(database, third - timedelta(days=1)) == []
    assert job_removal.finished_beyond(database, 1) == [done[2].id, done[1].id, done[0].id]
    assert job_removal.finished_beyond(database, 1, wanted=2) == [done[2].id, done[1].id]
    assert job_removal.finished_beyond(database, 4) == []


def test_a_job_that_is_retried_is_no_longer_finished(database: Database) -> None:
    job = in_status(database, Status.FAILED)
    jobs.wish(database, job.id, Verb.RETRY)
    assert job_removal.finished_beyond(database, 0) == []


def full_job(database: Database, pages: int = 7) -> str:
    """An ended job with rows in every table."""
    job = running(database)
    numbers = range(1, pages + 1)
    urls.record(
        database,
        job,
        Checkpoint([url(id) for id in numbers], [settled(id) for id in numbers], [result(id) for id in numbers]),
    )
    for id in numbers:
        with database.transaction() as transaction:
            links.append(transaction, job.id, [links.PageLinks(id, bytes(8))])
    logs.append(database, [logs.NewLine(job.id, 1, "info", f"line {id}", database.now()) for id in numbers])
    finished(database, job)
    urls.index(database, job.id)
    return job.id


def rows_of(database: Database, id: str) -> tuple[int, int, int, int, int, bool]:
    by_key = database.rows("urls.by_indexed_key", job_id=id, url_key=7, url=url(1).url)
    return (
        results.count(database, id),
        len(logs.page(database, id)),
        len(urls.page(database, id)),
        len(by_key),
        len(database.rows("links.page", job_id=id, after=0, wanted=100)),
        bool(database.rows("urls.states", job_ids=json.dumps([id]))),
    )


@pytest.mark.parametrize("chunk", [1, 3, 7, 2_000])
def test_a_deleted_job_leaves_nothing_behind(database: Database, chunk: int) -> None:
    job, neighbour = full_job(database), full_job(database)
    before = rows_of(database, neighbour)
    assert before == (7, 7, 7, 1, 7, True)
    job_removal.delete(database, job, chunk=chunk)
    assert rows_of(database, job) == (0, 0, 0, 0, 0, False)
    assert rows_of(database, neighbour) == before
    with pytest.raises(NotFound):
        job_removal.delete(database, job)
    assert job_removal.finish_deletions(database) == []


@pytest.mark.parametrize("status", [Status.QUEUED, Status.RUNNING, Status.PAUSED])
def test_a_live_job_is_not_deleted(database: Database, status: Status) -> None:
    job = in_status(database, status)
    before = jobs.get(database, job.id)
    with pytest.raises(Refused, match=f"is {status}: cancel it first"):
        job_removal.delete(database, job.id)
    assert jobs.get(database, job.id) == before
    assert job_removal.finish_deletions(database) == []


@pytest.mark.parametrize("step", ["results.forget", "logs.forget", "urls.forget_keys", "urls.forget", "links.forget"])
def test_a_deletion_goes_on_after_a_crash(database: Database, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    id = full_job(database)
    ask = database.rows
    asked: list[str] = []

    def crash_at_the_second(name: str, **parameters: object) -> object:
        asked.append(name)
        if name == step and asked.count(name) == 2:
            raise SystemExit(137)
        return ask(name, **parameters)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(database, "rows", crash_at_the_second)
        with pytest.raises(SystemExit):
            job_removal.delete(database, id, chunk=3)
    with pytest.raises(NotFound):
        jobs.get(database, id)
    assert rows_of(database, id) != (0, 0, 0, 0, 0, False)
    assert job_removal.finish_deletions(database, chunk=3) == [id]
    assert rows_of(database, id) == (0, 0, 0, 0, 0, False)
    assert job_removal.finish_deletions(database) == []


def test_ended_in_every_way_can_be_deleted(database: Database) -> None:
    for end, wish in (
        (End.COMPLETED, None),
        (End.PERMANENT, None),
        (End.STOPPED, Verb.STOP),
        (End.RELEASED, Verb.CANCEL),
    ):
        job = running(database)
        if wish:
            jobs.wish(database, job.id, wish)
        finished(database, job, end)
        job_removal.delete(database, job.id)
    assert jobs.page(database) == []


def test_lists_have_the_outlines_of_jobs_with_long_payloads(database: Database) -> None:
    """Short payloads are whole. Of a long one, long fields are left out, except those that tell secrets."""
    short = {"url": "https://a.example/", "urls": ["https://b.example/ü"], "depth": None, "warc": True, "delay": 0.5}
    headers = {f"x-{number}": "secret" * 50 for number in range(100)}
    long = {**short, "urls": [f"https://b.example/{'ü' * 500}{number}" for number in range(1_000)], "headers": headers}
    first, second = queued(database, payload=short), queued(database, payload=long)
    assert jobs.outline(database, first.id) == first
    outline = jobs.outline(database, second.id)
    assert outline.payload == {**long, "urls": None}
    assert outline == dataclasses.replace(second, payload=outline.payload)
    for found in (jobs.page(database), jobs.page(database, kind="page"), jobs.page(database, status=Status.QUEUED)):
        assert found == [outline, first]
    assert jobs.get(database, second.id).payload == long
    with pytest.raises(NotFound):
        jobs.outline(database, NOWHERE)


def test_only_a_payload_that_is_not_in_the_outline_has_a_long_size(database: Database) -> None:
    short, _ = jobs.enqueue(database, NewJob("page", {"urls": ["x"]}))
    long, _ = jobs.enqueue(database, NewJob("page", {"urls": ["x" * 1_000] * 1_000}))
    assert jobs.long_size(database, short.id) == 0
    assert jobs.outline(database, short.id) == jobs.get(database, short.id)
    assert 1_000_000 < jobs.long_size(database, long.id) < 1_010_000
    with pytest.raises(NotFound):
        jobs.long_size(database, "x")


def test_no_list_reads_a_long_payload(database: Database) -> None:
    """The short form is stored: a list shows it even if the payload is no object any more."""
    long = {"url": "https://a.example/", "urls": ["x" * 40_000]}
    job = queued(database, payload=long, paused=True)
    job = jobs.amend(database, job.id, {"limit": 5})
    with database.transaction() as transaction:
        transaction.script("UPDATE crawl_jobs SET payload = '\"unread\"'")
    shown = {"url": "https://a.example/", "urls": None, "limit": 5}
    assert jobs.outline(database, job.id).payload == shown
    assert [each.payload for each in jobs.page(database)] == [shown]
    assert jobs.get(database, job.id).payload == "unread"
    jobs.amend(database, queued(database, payload=long, paused=True).id, {"urls": []})
    assert jobs.page(database, wanted=1)[0].payload == {"url": "https://a.example/", "urls": []}


def test_the_states_of_running_jobs(database: Database) -> None:
    queued(database)
    job = running(database)
    jobs.wish(database, job.id, Verb.PAUSE)
    (state,) = jobs.running_states(database)
    assert (state.id, state.run_lease, state.desired) == (job.id, job.run_lease, "pause")

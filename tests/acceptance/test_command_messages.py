"""What commands say about a job: the sentence names the real cause, and the next step that helps."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from silkline.cli import views
from silkline.errors import FieldsMissing, SeedsFailed
from silkline.model.database import Database
from silkline.model.job import AttemptEnd, Backoff, End, Job, Status, decide
from silkline.model.ledger import Counts
from silkline.sample.server import SampleServer
from silkline.sample.site import SampleAnswer
from silkline.store import jobs
from tests.acceptance.conftest import Run, Silkline

EXTERNAL = "An external worker runs jobs of the kind extension (docs/how-to/external-workers.md)."


def ended(store: Database, job: Job, end: End, message: str = "", reason: str = "") -> None:
    """Let a worker claim the job and end it."""
    claimed = jobs.claim_one(store, "worker-1", "a-host", job.id)
    how = AttemptEnd(end, reason, message)
    jobs.finish(store, claimed, lambda now: decide(now, how, backoff=Backoff(), now=store.now(), jitter=0.5))


def test_a_job_for_an_external_worker_is_not_run_in_the_foreground(
    here: Run, store: Database, enqueue: Callable[..., Job]
) -> None:
    waiting, paused = enqueue(kind="extension"), enqueue(kind="extension", paused=True)
    for job in (waiting, paused):
        here("resume", job.id).refused(1, EXTERNAL)
    here("resume", "last").refused(1, EXTERNAL)
    found = [jobs.get(store, job.id) for job in (waiting, paused)]
    assert [(job.status, job.attempt) for job in found] == [(Status.QUEUED, 0), (Status.PAUSED, 0)]
    assert here("resume", paused.id, "--detach").err == f"Job {paused.id} is queued.\n", "an external worker claims it"


def test_last_leaves_out_the_jobs_of_external_workers(silkline: Silkline, enqueue: Callable[..., Job]) -> None:
    page = enqueue("http://127.0.0.1:9/", payload={"url": "http://127.0.0.1:9/"})
    enqueue(kind="extension")
    done = silkline("resume", "last")
    assert f"Using job {page.id}" in done.err
    assert "address_blocked" in done.err, done


def test_errors_of_a_job_that_failed_without_a_failed_url(
    here: Run, store: Database, enqueue: Callable[..., Job]
) -> None:
    enqueue()
    job = enqueue(kind="bluesky", payload={"search": "puffins"}, request_url="puffins")
    ended(store, job, End.PERMANENT, "the server needs a login.")
    done = here("errors", "last")
    assert (done.code, done.out) == (0, "")
    assert done.err == "The job failed: the server needs a login; no single URL failed.\n"
    assert here("errors", job.id, "--json").json == []
    again = enqueue()
    ended(store, again, End.COMPLETED)
    assert here("errors", again.id).err == "Nothing failed.\n"


def test_only_what_was_written_is_counted(here: Run, tmp_path: Path) -> None:
    with SampleServer() as site:
        assert here("fetch", site.url, f"{site.url}birds/puffin", f"{site.url}nowhere", "--speed", "max").code == 0
        assert here("fetch", f"{site.url}nowhere", "--speed", "max").code == 1
    assert here("results", "last", "--format", "md", "-o", "pages").err.endswith(
        "2 pages were written to pages; 1 failed result has no file.\n"
    )
    assert len(list((tmp_path / "pages").rglob("*.md"))) == 2
    assert here("results", "last", "-o", "map.xml").err.endswith(
        "2 pages were written to map.xml; 1 other result is not in it.\n"
    )
    assert (tmp_path / "map.xml").read_text().count("<loc>") == 2
    assert here("results", "last", "-o", "all.csv").err.endswith("3 results were written to all.csv.\n")
    assert here("results", "last", "--state", "done", "-o", "one.xml").err.endswith(
        "2 pages were written to one.xml.\n"
    )


def test_results_of_the_newest_job_that_has_some(here: Run) -> None:
    with SampleServer() as site:
        wrong, right = f"{site.url}nowhere", f"{site.url}birds/puffin"
        assert here("fetch", wrong, "--speed", "max").code == 1
        done = here("results", "last")
        assert json.loads(done.out)["metadata"]["error"] == "http_404", "no job has a successful result, so this one"
        here("fetch", right, "--speed", "max")
        here("fetch", wrong, "--speed", "max")
        done = here("results", "last")
        assert json.loads(done.out)["final_url"] == right
        assert f"({right}), the newest with a successful result.\n" in done.err
        failed = here("results", "last", "--state", "failed")
        assert (json.loads(failed.out)["final_url"], failed.err) == (wrong, "")


def test_results_say_that_none_matches(here: Run) -> None:
    with SampleServer() as site:
        here("fetch", site.url, "--speed", "max")
    for condition in (("--where", "price<20"), ("--match", "nowhere"), ("--status", "500")):
        done = here("results", "last", *condition)
        assert (done.code, done.out, done.err) == (0, "", "No result matches.\n")


def test_a_selector_that_finds_nothing_is_named(here: Run) -> None:
    with SampleServer() as site:
        done = here("fetch", site.url, "--keep", ".nothing", "--speed", "max")
    assert (done.code, done.out) == (0, "")
    assert done.err == f"{site.url}: --keep '.nothing' finds nothing on this page\n"


@pytest.mark.parametrize("more", [(), ("--links",)])
def test_a_map_of_a_host_that_cannot_be_reached_says_only_that(here: Run, more: tuple[str, ...]) -> None:
    done = here("map", "http://nowhere.invalid/", *more)
    assert (done.code, done.out) == (1, "")
    assert all("there is no such host" in line for line in done.err.splitlines()), done
    assert done.err


def test_a_redirect_that_failed_says_where_it_leads(here: Run) -> None:
    def respond(target: str, origin: str) -> SampleAnswer:
        return SampleAnswer(404 if "robots" in target else 302, "text/plain", b"", "/b" if target == "/a" else "/a")

    with SampleServer(respond=respond) as site:
        here("fetch", f"{site.url}a", "--speed", "max")
        assert f"    redirects to {site.url}" in here("errors", "last").out


def test_the_number_of_results_comes_before_the_next_commands(silkline: Silkline) -> None:
    with SampleServer() as site:
        done = silkline("crawl", site.url, "--limit", "3", "--speed", "max", "-o", "pages.jsonl")
    lines = done.err.splitlines()
    assert lines.index("3 results were written to pages.jsonl.") < lines.index("Next commands:")


def test_a_job_that_never_ran_is_not_resumed_but_run(here: Run, silkline: Silkline) -> None:
    with SampleServer() as site:
        id = here("jobs", "add", "--kind", "site", site.url, "--payload", '{"limit": 1}').out.strip()
        assert f"Running {site.url}, job {id}." in silkline("resume", id).err
    here("resume", id).refused(1, "only a paused, queued or running job can be resumed; this one is completed")


def test_a_new_job_without_a_worker_can_be_run_in_the_foreground(here: Run) -> None:
    added = here("jobs", "add", "--kind", "page", "https://example.com/")
    said = "No worker is running; start one with `silkline worker`."
    assert added.err == f"{said} To run it in the foreground: silkline resume {added.out.strip()}\n"
    later = here("jobs", "add", "--kind", "page", "https://example.com/", "--run-at", "2h")
    assert "To run it" not in later.err
    shown = [line.split(maxsplit=1) for line in here("jobs", "show", added.out.strip()).out.splitlines()]
    assert ["Queue", said] in shown


def test_a_new_job_for_an_external_worker_says_who_must_claim_it(here: Run) -> None:
    added = here("jobs", "add", "--kind", "extension", "https://example.com/")
    said = "Waiting for an external worker to claim it (docs/how-to/external-workers.md)."
    assert added.err == f"{said}\n"
    assert here("jobs", "show", "last", "--json").json["waits_for"] == said


@pytest.mark.parametrize("command", ["results", "urls", "errors", "explain", "logs", "extract", "resume"])
def test_the_help_says_what_an_id_is(here: Run, command: str) -> None:
    told = " ".join(here(command, "--help").out.split())
    assert "ID is the id of a job, its first characters, or `last` for the newest job" in told


def ending_of(store: Database, job: Job) -> str:
    return "\n".join(views.ending(jobs.get(store, job.id), Counts(), [], store.now()))


def test_a_retry_is_not_suggested_if_it_would_fail_again(store: Database, enqueue: Callable[..., Job]) -> None:
    fields, package, seeds, tries = (enqueue(max_retries=0 if last else 3) for last in (False, False, False, True))
    ended(store, fields, End.PERMANENT, "3 of 5 pages have no price", FieldsMissing.reason)
    ended(store, package, End.PERMANENT, "transcripts need youtube-transcript-api")
    ended(store, seeds, End.PERMANENT, "it could not be fetched", SeedsFailed.reason)
    ended(store, tries, End.TEMPORARY, "it cannot answer now")
    assert "jobs retry" not in ending_of(store, fields) + ending_of(store, package)
    for job in (seeds, tries):
        assert f"silkline jobs retry {job.id}" in ending_of(store, job)
        assert f"Job {job.id} has failed: " in ending_of(store, job)


def test_the_size_of_kept_html_is_compared_only_for_many_pages() -> None:
    def said(pages: int) -> list[str]:
        return views.extracted(Counts(live={"html": [pages, pages * 433, pages * 384]}))

    assert said(3) == ["HTML kept: 3 pages in 1.3 kB"]
    assert said(20) == ["HTML kept: 20 pages in 8.7 kB, 433 B a page (384 B uncompressed)"]


def test_a_missing_field_is_named(here: Run) -> None:
    here("jobs", "add", "--kind", "extract", "--payload", '{"content": "text"}').refused(
        2, "the field `job` is missing"
    )


def test_the_doctor_speaks_of_jobs_in_the_background(here: Run) -> None:
    here("jobs", "add", "--kind", "page", "https://example.com/")
    assert "workers: no worker is alive, so no job starts in the background\n" in here("doctor").out

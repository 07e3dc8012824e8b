"""What commands say about a job: the sentence names the real cause, and the next step that helps."""

from collections.abc import Callable

from silkline.model.database import Database
from silkline.model.job import Job, Status
from silkline.store import jobs
from tests.acceptance.conftest import Run, Silkline

EXTERNAL = "An external worker runs jobs of the kind extension (docs/how-to/external-workers.md)."


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

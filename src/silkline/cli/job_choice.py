"""Finds the job that an argument names: an id, its first characters, or `last` for the newest suitable job."""

from __future__ import annotations

from collections.abc import Callable

from silkline.cli.session import Session
from silkline.cli.terminal import safe
from silkline.errors import NotFound
from silkline.model.database import Database
from silkline.model.job import ENDED, Change, Job, Verb, answer
from silkline.model.redaction import without_password
from silkline.store import jobs

PAGE = 200
Fits = Callable[[Job], bool]


def any_job(_: Job) -> bool:
    return True


def has_ended(job: Job) -> bool:
    return job.status in ENDED


def can(verb: Verb) -> Fits:
    """Whether a verb would change something about a job."""

    def fits(job: Job) -> bool:
        change = answer(verb, job.status, job.desired)
        return isinstance(change, Change) and change != Change(job.status, job.desired)

    return fits


def chosen(
    session: Session,
    database: Database,
    name: str,
    fits: Fits = any_job,
    what: str = "",
    *,
    or_else: Fits | None = None,
) -> Job:
    """The job with this name. For `last`: the newest job that fits, with a message if a newer one does not fit.

    If no job fits, it is the newest one for which `or_else` is true, if any.
    """
    if name.strip().lower() != "last":
        return jobs.find(database, name.strip())
    before, newest, second = jobs.LAST_ID, None, None
    while page := jobs.page(database, before=before, wanted=PAGE):
        newest = newest or page[0]
        for job in page:
            if fits(job):
                if job.id != newest.id:
                    session.say(_using(job, f"the newest {what}"))
                return jobs.get(database, job.id)
            if second is None and or_else is not None and or_else(job):
                second = job
        before = page[-1].id
    if newest is None:
        raise NotFound("there are no jobs yet")
    if second is not None:
        session.say(_using(second, f"because there is none {what}"))
        return jobs.get(database, second.id)
    return jobs.get(database, newest.id)  # the command explains why it does not fit


def _using(job: Job, why: str) -> str:
    about = f" ({without_password(job.request_url)})" if job.request_url else ""
    return safe(f"Using job {job.id}{about}, {why}.")

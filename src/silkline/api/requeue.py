"""Retries the URLs of a job that failed for one reason, in every state of the job that allows it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from silkline.errors import Refused
from silkline.kinds import specs
from silkline.model.credential_origins import CREDENTIALS, credential_origins, origins_of
from silkline.model.database import Database
from silkline.model.job import Job, NewJob, Status, Verb
from silkline.model.spec import MAX_URLS, Fetching, PageSpec, Spec
from silkline.store import jobs, urls


def requeue(database: Database, job: Job, reason: str) -> Job:
    """Queue the URLs again. Returns the job that retries them: the same job, or a new one if it has completed.

    The job may be an outline: only a new job needs the whole spec. A retry is refused before the ledger changes.
    """
    if job.shard is not None:
        raise Refused(f"cannot retry job {job.id}: it is shard {job.shard} of the crawl {job.parent_id}")
    unchanged = partial(urls.check_status, job=job)
    match job.status:
        case Status.PAUSED:
            urls.requeue(database, job.id, reason, check=unchanged)
            return jobs.outline(database, job.id)
        case Status.FAILED | Status.STOPPED:
            jobs.check_dedupe_key(database, job)
            urls.requeue(database, job.id, reason, check=unchanged)
            return jobs.wish(database, job.id, Verb.RETRY)
        case Status.COMPLETED:
            return _again(database, jobs.get(database, job.id), reason)
    raise Refused(f"job {job.id} is {job.status}: pause it first, so that its ledger does not change")


def _again(database: Database, job: Job, reason: str) -> Job:
    """A new job for the failed URLs of a completed job. The completed job does not change."""
    failed = [url.url for url in urls.failures(database, job.id, reason=reason, wanted=MAX_URLS)]
    if not failed:
        raise Refused(f"no URL of job {job.id} failed with {reason!r}")
    # Failed URLs of a crawl become a page job: it follows no links, so it fetches no page twice.
    kind = "page" if job.kind == "site" else job.kind
    dropped = {"url", "urls", "limit"} | (job.payload.keys() - PageSpec.model_fields if kind == "page" else set())
    payload = {name: value for name, value in job.payload.items() if name not in dropped}
    again = NewJob(
        kind=kind,
        payload={**_with_own_credentials(kind, payload, job, failed), "urls": failed},
        request_url=failed[0],
        priority=job.priority,
        tenant=job.tenant,
        parent_id=job.id,
        max_retries=job.max_retries,
    )
    return jobs.enqueue(database, again)[0]


def _with_own_credentials(kind: str, payload: dict[str, Any], job: Job, failed: Sequence[str]) -> dict[str, Any]:
    """The payload of a retry. Its headers and cookies stay with the origins that the user gave them for.

    Some failed URLs may be on hosts that a page only linked to. A plug-in may not know `headers_for`: it gets the
    headers and cookies only if each failed URL is at one of these origins.
    """
    if not any(payload.get(name) for name in CREDENTIALS):
        return payload
    origins = credential_origins(job.payload)
    if issubclass(specs.BUILT_IN.get(kind, Spec), Fetching):
        return {**payload, "headers_for": list(origins)}
    if set(origins_of(failed)) <= set(origins):
        return payload
    return {name: value for name, value in payload.items() if name not in CREDENTIALS}

"""Repeats a job: fills in the form with its values, or submits the same job again.

Headers, cookies and proxies are never shown. The new job gets them only if its addresses are the same. Otherwise a user
who may start jobs could send them to a server of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from silkline.api import submission
from silkline.api.web import forms
from silkline.api.web.sample_crawl import SAMPLE
from silkline.config import Settings
from silkline.model.job import ENDED, Job, NewJob
from silkline.model.redaction import SECRET_FIELDS

OFFERED = ("site", "page", "map")
MOST_URLS = 1_000  # more than that are not put into a form
OPTIONS = ("priority", "tenant", "max_retries")
Way = Literal["", "form", "repeat", "sample"]


def way_of(job: Job, *, with_sample: bool) -> Way:
    """How a job can be repeated. Empty if it cannot: it has not ended, or its seeds came from a file."""
    if job.status not in ENDED or any(job.payload.get(name) for name in submission.NEVER):
        return ""
    if job.metadata.get(SAMPLE):
        return "sample" if with_sample else ""
    urls = job.payload.get("urls", ())  # None: left out of the outline of a job
    fits = job.kind in OFFERED and urls is not None and len(urls) <= MOST_URLS
    return "form" if fits else "repeat"


def filled_in(job: Job) -> dict[str, str]:
    """The form for the same crawl."""
    return {**forms.from_spec(job.kind, job.payload), "again": job.id, "kept": _kept_words(job)}


def _kept_words(job: Job) -> str:
    """The fields of the spec that the new job gets although the form does not show them."""
    hidden = [name for name in job.payload if name not in forms.FIELDS or name in SECRET_FIELDS]
    return ", ".join(sorted(hidden))


def completed_by(job: Job, body: dict[str, Any]) -> dict[str, Any]:
    """The fields of the form, and the fields of the repeated job that the form does not show."""
    if body.get("kind") != job.kind:
        return body
    kept = {name: value for name, value in job.payload.items() if name not in forms.FIELDS or name == "headers"}
    if not _same_addresses(job.payload, body):
        kept = {name: value for name, value in kept.items() if name not in {*SECRET_FIELDS, "headers_for"}}
    options = {"priority": job.priority, "tenant": job.tenant, "max_retries": job.max_retries}
    return {**options, **kept, **body}


def _same_addresses(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    def addresses(spec: Mapping[str, Any]) -> Any:
        return spec.get("url"), list(spec.get("urls") or ()), spec.get("scope", "host")

    return bool(addresses(before) == addresses(after))


def repeated(job: Job, settings: Settings) -> NewJob:
    """The same job once more."""
    options = {"priority": job.priority, "tenant": job.tenant, "max_retries": job.max_retries}
    return submission.read({**job.payload, **options, "kind": job.kind}, settings)

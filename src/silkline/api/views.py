"""Jobs, results, URLs and log lines as the API gives them. The names here are the contract; `shapes` describes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from fastapi import Response

from silkline.api.secrecy import secrets_of, shown_spec, without_secrets
from silkline.model.job import Job, Status, shown_status
from silkline.model.wait import Wait, in_words, moment, waits_in
from silkline.store import waiting
from silkline.store.backlinks import LinksIn, LinksOut
from silkline.store.logs import LogLine
from silkline.store.results import Result
from silkline.store.urls import Counts, Url, not_stored
from silkline.store.workers import Worker

_CONTENT = ("markdown", "text", "transcript", "html")
_encode = msgspec.json.Encoder().encode


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(_encode(value), status, headers, "application/json")


def to_json(value: Any) -> bytes:
    return _encode(value)


def job_view(job: Job, counts: Counts, now: datetime, alive: Sequence[Worker] | None = None) -> dict[str, Any]:
    """With `alive`, the workers that live, a job that waits says exactly what for."""
    secrets = secrets_of(job.payload)
    return {
        "id": job.id,
        "kind": job.kind,
        "status": shown_status(job.status, job.desired, job.run_at, now),
        "reason": without_secrets(job.exit_reason, secrets) if job.exit_reason else None,
        "message": message_of(job, now, alive) or nothing_stored(job, counts),
        "url": job.request_url,
        "spec": shown_spec(job.payload),
        "metadata": job.metadata,
        "progress": progress_view(job, counts, now),
        "attempt": job.attempt,
        "retries": job.retry_count,
        "crashes": job.crash_count,
        "max_retries": job.max_retries,
        "priority": job.priority,
        "tenant": job.tenant,
        "dedupe_key": job.dedupe_key,
        "parent_id": job.parent_id,
        "worker_id": job.worker_id,
        "host": job.host,
        "run_at": job.run_at,
        "created_at": job.created_at,
        "updated_at": job.updated_at,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
        "last_heartbeat": job.last_heartbeat,
        "deadline_at": job.deadline_at,
        "links": links_of(job.id),
    }


def nothing_stored(job: Job, counts: Counts) -> str | None:
    """That a job is completed does not mean that it brought anything."""
    if job.status is not Status.COMPLETED or not counts.discovered or counts.done or counts.unchanged:
        return None
    return f"Nothing was stored: all {counts.discovered:,} URLs were skipped or failed."


def message_of(job: Job, now: datetime, alive: Sequence[Worker] | None = None) -> str | None:
    """What there is to say to a person: what went wrong, or what it waits for."""
    if job.error_message:
        return without_secrets(job.error_message, secrets_of(job.payload))
    if alive is None and job.status is Status.QUEUED and job.run_at <= now:
        return waiting.SOON
    return waiting.why_it_waits(job, alive or (), now)


def progress_view(job: Job, counts: Counts, now: datetime) -> dict[str, Any]:
    """The counts that add up, how fast it goes, and when it may be over."""
    rate = rate_of(job, counts, now)
    return {
        "discovered": counts.discovered,
        "queued": counts.queued,
        "in_flight": counts.in_flight,
        "done": counts.done,
        "unchanged": counts.unchanged,
        "failed": counts.failed,
        "skipped": counts.skipped,
        "not_stored": not_stored(counts),
        "bytes": counts.bytes,
        "seconds": round(counts.seconds, 3),
        "rate": rate,
        "eta_seconds": eta_of(job, counts, rate),
        "updated_at": counts.updated_at,
    }


def eta_of(job: Job, counts: Counts, rate: float | None) -> float | None:
    """Seconds to the end: at this pace, with a limit no further than that; and no sooner than its slowest host."""
    left = counts.queued + counts.in_flight
    if job.status is not Status.RUNNING or not rate or not left:
        return None
    limit = job.payload.get("limit")
    if isinstance(limit, int):
        return round(max(0, min(left, limit - counts.done - counts.unchanged)) / rate, 1)
    return round(max([left / rate, *(wait.seconds_left for wait in waits_of(job, counts))]), 1)


def rate_of(job: Job, counts: Counts, now: datetime) -> float | None:
    """Pages stored a second: what the crawl says of itself, else the average so far. None while nothing is stored."""
    said = counts.live.get("rate")
    if job.status is Status.RUNNING and isinstance(said, int | float):
        return round(float(said), 2)
    stored = counts.done + counts.unchanged
    if not stored:
        return None
    seconds = counts.seconds
    if not seconds and job.started_at is not None:
        seconds = ((counts.updated_at or now) - job.started_at).total_seconds()
    return round(stored / seconds, 2) if seconds > 0 else None


def links_of(id: str) -> dict[str, str]:
    here = f"/v1/jobs/{id}"
    return {"self": here, "page": f"/jobs/{id}"} | {
        name: f"{here}/{name}" for name in ("results", "urls", "errors", "hosts", "logs", "events")
    }


def result_view(result: Result, *, content: bool = True) -> dict[str, Any]:
    data = result.data if content else {name: each for name, each in result.data.items() if name not in _CONTENT}
    return {
        "id": result.id,
        "job_id": result.job_id,
        "url_id": result.url_id,
        "original_url": result.original_url,
        "final_url": result.final_url,
        "data": data,
        "success": result.success,
        "metadata": result.metadata,
        "created_at": result.created_at,
    }


def url_view(url: Url, found_on: Mapping[int, Url]) -> dict[str, Any]:
    source = found_on.get(url.found_on) if url.found_on is not None else None
    return {
        "id": url.id,
        "url": url.url,
        "host": url.host,
        "depth": url.depth,
        "state": url.state,
        "reason": url.reason,
        "detail": url.detail,
        "http_status": url.http_status,
        "attempts": url.attempts,
        "found_via": url.found_via,
        "found_on": source.url if source else None,
        "found_on_id": url.found_on,
    }


def links_in_view(links: LinksIn) -> dict[str, Any]:
    sources = [{"id": each.id, "url": each.url, "kind": each.kind, "via": each.via} for each in links.sources]
    return {"count": links.count, "sources": sources}


def links_out_view(links: LinksOut, found_on: Mapping[int, Url]) -> dict[str, Any]:
    urls = [url_view(each, found_on) for each in links.urls]
    return {"count": links.count, "unknown": links.unknown, "urls": urls}


def reason_views(reasons: Sequence[tuple[str, str, int]]) -> list[dict[str, Any]]:
    return [{"state": state, "reason": reason, "urls": urls} for state, reason, urls in reasons]


def waits_of(job: Job, counts: Counts) -> list[Wait]:
    """Which hosts a job waits for; one that does not run waits for none."""
    return waits_in(counts.live) if job.status is Status.RUNNING else []


def wait_view(wait: Wait, now: datetime) -> dict[str, Any]:
    return {**wait._asdict(), "next_at": moment(wait), "says": in_words(wait, now)}


def line_view(line: LogLine, secrets: list[str]) -> dict[str, Any]:
    return {
        "id": line.id,
        "at": line.at,
        "attempt": line.attempt,
        "level": line.level,
        "message": without_secrets(line.message, secrets),
    }


def worker_view(worker: Worker) -> dict[str, Any]:
    """A worker that lives: the dead are not shown."""
    return {
        "id": worker.id,
        "host": worker.host,
        "pid": worker.pid,
        "state": worker.state,
        "alive": True,
        "slots": worker.slots,
        "jobs_held": worker.jobs_held,
        "kinds": list(worker.kinds) if worker.kinds is not None else None,
        "version": worker.version,
        "started_at": worker.started_at,
        "last_seen": worker.last_seen,
    }

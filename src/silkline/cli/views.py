"""How a job is shown to people and to programs."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from silkline.cli.terminal import as_json, duration, moment, safe, safe_lines, size
from silkline.errors import FieldsMissing, SeedsFailed
from silkline.model.field_counts import field_counts_in, in_words
from silkline.model.job import Job, Status, shown_status
from silkline.model.kept_html import kept_html_in
from silkline.model.ledger import Counts, not_stored
from silkline.model.progress import pages_of
from silkline.model.reasons import at_command_line
from silkline.model.redaction import redacted, shown_spec, without_password
from silkline.store.job_view import job_view
from silkline.store.usage_view import UsageView
from silkline.store.waiting import EXTERNAL, SOON

ENOUGH_PAGES = 20  # with fewer, the dictionary of the compression is most of what is stored
SHORT_LENGTHS = (13, 18, 23, 36)  # an id up to each of its hyphens
# `unchanged` is left out while nothing sets it; see `sum_of`.
STATES = ("queued", "in_flight", "done", "failed", "skipped")


def shown(job: Job, now: datetime) -> str:
    return shown_status(job.status, job.desired, job.run_at, now)


def as_value(job: Job, counts: Counts, now: datetime, usage: UsageView | None = None) -> dict[str, Any]:
    """The job for `--json`: the same fields as in the API."""
    return dataclasses.asdict(job_view(job, counts, now, usage=usage))


def short_ids(ids: Sequence[str]) -> list[str]:
    """Shorten ids as far as they stay different. An id starts with its time, so eight characters are not enough."""
    for length in SHORT_LENGTHS:
        cut = [id[:length] for id in ids]
        if len(set(cut)) == len(cut):
            break
    return cut if ids else []


def row(job: Job, short: str, counts: Counts, now: datetime) -> list[str]:
    """One line of the list."""
    url = without_password(job.request_url or "")
    kind = job.kind if job.shard is None else f"shard {job.shard}"
    return [short, kind, shown(job, now), progress(counts), duration(now - job.created_at), url]


def progress(counts: Counts) -> str:
    if not counts.discovered:
        return "-"
    pages, wanted = pages_of(counts)
    failed = f", {counts.failed:,} failed" if counts.failed else ""
    return f"{pages:,}/{wanted:,}{failed}"


def everything(
    job: Job,
    counts: Counts,
    reasons: Sequence[tuple[str, str, int]],
    results: int,
    log: str,
    now: datetime,
    waits_for: str | None = None,
    usage: UsageView | None = None,
) -> list[tuple[str, str]]:
    """Everything about a job, as pairs of name and value."""
    return [
        ("Job", job.id),
        ("Kind", safe(job.kind)),
        ("Status", shown(job, now)),
        ("Queue", safe(waits_for or "")),
        (_about(job), safe(without_password(job.request_url or ""))),
        ("Reason", safe(job.exit_reason or "")),
        ("Error", safe_lines(job.error_message or "")),
        ("Progress", _sum(counts)),
        *((f"  {state}", _reasons(reasons, state)) for state in ("failed", "skipped")),
        ("  not stored", not_stored_in_words(counts)),
        *(("  fields", line) for line in extracted(counts)),
        ("Fetched", f"{size(counts.bytes)} in {counts.seconds:,.1f} s of crawling" if counts.bytes else ""),
        ("Results", f"{results:,}"),
        ("Attempt", _attempts(job)),
        ("Lease", _lease(job, now)),
        ("CPU", cpus_in_words(usage) if usage else ""),
        ("Memory", memory_in_words(usage) if usage else ""),
        ("Processes", _processes(usage) if usage else ""),
        ("Priority", f"{job.priority}" + (f", tenant {safe(job.tenant)}" if job.tenant else "")),
        ("Key", safe(job.dedupe_key or "")),
        ("Parent", job.parent_id or ""),
        ("Created", moment(job.created_at)),
        ("Runs at", moment(job.run_at) if job.status is Status.QUEUED and job.run_at > now else ""),
        ("Started", moment(job.started_at)),
        ("Updated", moment(job.updated_at)),
        ("Ends by", moment(job.deadline_at)),
        ("Finished", moment(job.finished_at)),
        ("Spec", as_json(shown_spec(job.payload))),
        ("Metadata", as_json(redacted(job.metadata)) if job.metadata else ""),
        ("Log", safe(log)),
    ]


def cpus_in_words(usage: UsageView) -> str:
    """For example `0.7 of 2 cores, limited by affinity`."""
    if usage.cpus_limit is None:
        return f"{usage.cpus:.1f} cores, no limit"
    return f"{usage.cpus:.1f} of {usage.cpus_limit:g} cores, limited by {usage.cpus_limited_by}"


def memory_in_words(usage: UsageView) -> str:
    return size(usage.memory) + (f" of {size(usage.memory_limit)}" if usage.memory_limit else ", no limit")


def _processes(usage: UsageView) -> str:
    roles = Counter(each.role for each in usage.processes)
    each = ", ".join(f"{number} {role}" for role, number in roles.items())
    return f"{usage.process_count} with {usage.open_files:,} open files: {each}"


def _about(job: Job) -> str:
    """The label of the job's subject: URL, or Query for a job without one."""
    return "URL" if re.match(r"https?://", job.request_url or "", re.IGNORECASE) else "Query"


def about(job: Job) -> str:
    """What a job crawls, in a few words."""
    if not job.request_url:
        return "the seeds" if job.payload.get("seeded") else f"a {safe(job.kind)} job"
    urls = job.payload.get("urls", ())
    more = len(urls or ()) - 1
    others = " and many more" if urls is None else f" and {more:,} more" if more > 0 else ""
    return f"{safe(without_password(job.request_url))}{others}"


def ending(job: Job, counts: Counts, reasons: Sequence[tuple[str, str, int]], now: datetime) -> list[str]:
    """How a job ended, in a few lines."""
    state = "has failed" if job.status is Status.FAILED else f"is {shown(job, now)}"
    told = [f"Job {job.id} {state}: {_sum(counts)}."]
    told += [f"  {state}: {why}" for state in ("failed", "skipped") if (why := _reasons(reasons, state))]
    if more := not_stored_in_words(counts):
        told.append(f"  not stored: {more}")
    if job.status is Status.COMPLETED and counts.discovered and not counts.done and not counts.unchanged:
        told.append("  Nothing was stored.")
    told += [f"  {line}" for line in extracted(counts)]
    if any(reason == "address_blocked" for _, reason, _ in reasons):
        told.append(f"  address_blocked: {at_command_line('address_blocked')}")
    if job.status is Status.FAILED:
        told.append(f"  {safe_lines(job.error_message or job.exit_reason or '', indent='  ')}")
    if job.status is Status.QUEUED:
        told.append("It is in the queue: the next free worker continues it.")
    if job.status in (Status.PAUSED, Status.QUEUED):
        told.append(f"To resume it: silkline resume {job.id}")
    elif job.status is Status.STOPPED or (job.status is Status.FAILED and not _fails_again(job)):
        told.append(f"To continue from the checkpoint: silkline jobs retry {job.id}")
    return told


def _fails_again(job: Job) -> bool:
    """Whether the failure is permanent, so that a retry ends the same way. Seeds that failed may work later."""
    out_of_tries = job.retry_count >= job.max_retries or job.crash_count > job.max_retries
    return job.exit_reason == FieldsMissing.reason or (not out_of_tries and job.exit_reason != SeedsFailed.reason)


def extracted(counts: Counts) -> list[str]:
    """On how many pages each field was found, and how much HTML was kept."""
    told = [safe(line) for line in in_words(field_counts_in(counts.live))]
    kept = kept_html_in(counts.live)
    if kept.pages:
        pages = "1 page" if kept.pages == 1 else f"{kept.pages:,} pages"
        each, raw = size(kept.stored // kept.pages), size(kept.raw // kept.pages)
        compared = f", {each} a page ({raw} uncompressed)" if kept.pages >= ENOUGH_PAGES else ""
        told.append(f"HTML kept: {pages} in {size(kept.stored)}{compared}")
    return told


def next_commands(job: Job, counts: Counts, *, saved: bool = False) -> list[str]:
    """The commands that are useful after a crawl has ended. `saved`: its results are in a file already."""
    found = []
    if counts.done and not saved:
        found.append(f"silkline results {job.id} --format md -o pages/")
    if counts.failed:
        found.append(f"silkline errors {job.id}")
    if counts.skipped:
        found.append(f"silkline urls {job.id} --state skipped")
    return found


def _sum(counts: Counts) -> str:
    return f"{counts.discovered:,} discovered = {sum_of(counts)}"


def sum_of(counts: Counts) -> str:
    """The number of URLs in each state; their sum is the number of discovered URLs."""
    states = (*STATES, "unchanged") if counts.unchanged else STATES
    return " + ".join(f"{getattr(counts, state):,} {state.replace('_', ' ')}" for state in states)


def not_stored_in_words(counts: Counts) -> str:
    """The number of URLs that were not stored in the ledger, in words; empty if there are none."""
    number = not_stored(counts)
    return f"at least {number:,} more URLs beyond the budget of a host" if number else ""


def _reasons(reasons: Sequence[tuple[str, str, int]], state: str) -> str:
    return ", ".join(f"{urls:,} {safe(reason)}" for of, reason, urls in reasons if of == state)


def start_hint(job: Job, waits_for: str | None, now: datetime) -> str:
    """What a queued job waits for, and the command that runs it at once. Empty if a worker starts it soon."""
    if job.status is not Status.QUEUED or not waits_for or waits_for == SOON:
        return ""
    if job.kind == EXTERNAL or job.run_at > now:
        return waits_for
    return f"{waits_for} To run it in the foreground: silkline resume {job.id}"


def _attempts(job: Job) -> str:
    return f"{job.attempt} ({job.retry_count} retries and {job.crash_count} crashes, {job.max_retries} allowed)"


def _lease(job: Job, now: datetime) -> str:
    if job.worker_id is None:
        return f"{job.run_lease}, no owner"
    process = f", process {job.pid}" if job.pid else ""
    heard = f", last heartbeat {duration(now - job.last_heartbeat)} ago" if job.last_heartbeat else ""
    return f"{job.run_lease}, held by {safe(job.worker_id)} on {safe(job.host or '?')}{process}{heard}"

"""The pages of one job: its head, its tabs, its URLs, and the actions of its buttons."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, ConfigDict, Field

from silkline.api.answer_models import Answer
from silkline.api.ledger_counts import LedgerCounts
from silkline.api.problems import Problem
from silkline.api.remove import remove
from silkline.api.requeue import requeue
from silkline.api.routes.ledger import levels_from
from silkline.api.views import line_view, reason_views
from silkline.api.web import charts, forms
from silkline.api.web.again import repeated, way_of
from silkline.api.web.field_table import FIELD_DATA, field_table, fields_of_page
from silkline.api.web.page_list import PageQuery, page_list
from silkline.api.web.templates import Templates
from silkline.config import Settings
from silkline.export.download import offered
from silkline.kinds import registry
from silkline.model.database import Database
from silkline.model.host_wait import BUSY, LEVEL, TURN, Wait, event, seconds_to, what_next, why
from silkline.model.job import Change, Job, Status, Verb
from silkline.model.job import answer as answer_to
from silkline.model.ledger import Counts, Url
from silkline.model.redaction import secrets_of
from silkline.model.result_fields import number_in
from silkline.model.sharding import is_parent
from silkline.page_files import files_named, stored_files
from silkline.runner.job_commands import ask
from silkline.store import jobs, logs, pages, results, shards, urls, workers
from silkline.store.backlinks import into
from silkline.store.explain import explained, in_words
from silkline.store.job_view import job_view, progress_view, waits_of
from silkline.store.results import Result
from silkline.store.url_view import url_view
from silkline.store.usage_view import usage_of_job
from silkline.store.waiting import hold_up

TABS = ("overview", "pages", "fields", "errors", "skipped", "hosts", "shards", "logs", "details")
ROWS = 100
LINES = 500
MOST_FACTS = 500  # a plug-in or an external worker may have stored 300,000
MOST_TEXT = 1_000_000  # characters; each may take six in the page
MANY_LINKS = 10  # more than that are folded away
CONTENT = ("markdown", "text", "transcript", "html")
EXPORT_WORDS = {
    "jsonl": "JSON lines",
    "csv": "CSV",
    "md": "Markdown (zip)",
    "parquet": "Parquet",
    "sitemap": "Sitemap",
    "warc": "WARC",
    "links": "Links",
    "chunks": "Chunks",
}
NO_WAIT = frozenset({BUSY, TURN, LEVEL})  # the crawl itself is busy; it does not wait for the host
VERBS = (Verb.PAUSE, Verb.RESUME, Verb.STOP, Verb.CANCEL, Verb.RETRY)
Form = Annotated[dict[str, str], Depends(forms.fields)]


class TabQuery(BaseModel):
    """The query of the tabs: a cursor and filters."""

    model_config = ConfigDict(extra="ignore")

    cursor: int = Field(0, ge=0, lt=2**62)
    reason: str = Field("", max_length=200)
    level: str = Field("", pattern=r"^(debug|info|warning|error|)$")
    q: str = Field("", max_length=200)


class JobPages:
    def __init__(
        self,
        database: Database,
        settings: Settings,
        templates: Templates,
        ledger_counts: LedgerCounts,
        *,
        with_sample: bool,
    ) -> None:
        self._database = database
        self._settings = settings
        self._templates = templates
        self._ledger_counts = ledger_counts
        self._with_sample = with_sample
        self._read = {
            "overview": self._overview,
            "errors": self._failed,
            "skipped": self._skipped,
            "hosts": self._hosts,
            "fields": self._fields,
            "shards": self._shards,
            "logs": self._logs,
            "details": self._details,
        }
        self.router = APIRouter(prefix="/jobs/{id}", include_in_schema=False)
        add = self.router.add_api_route
        add("/head", self.head, methods=["GET"])
        add("/charts", self.charts, methods=["GET"])
        add("/page/{url_id}", self.page, methods=["GET"])
        add("/again", self.again, methods=["POST"])
        add("/repeat", self.repeat, methods=["POST"])
        add("/delete", self.delete, methods=["POST"])
        for verb in VERBS:
            add(f"/{verb}", self._pressing(verb), methods=["POST"])
        add("/pages", self.pages, methods=["GET"])
        add("/waiting", self.waiting, methods=["GET"])
        add("", self.show, methods=["GET"])
        add("/{tab}", self.show, methods=["GET"])

    def show(self, request: Request, id: str, query: Annotated[TabQuery, Query()], tab: str = "overview") -> Response:
        """The whole page, or just the tab when htmx asks for it."""
        if tab not in self._read:
            raise Problem("not-found", f"a job has no tab {tab[:40]!r}")
        job = jobs.outline(self._database, id)
        return self._tab(request, job, tab, query=query, **self._read[tab](job, query))

    def pages(self, request: Request, id: str, query: Annotated[PageQuery, Query()]) -> Response:
        """The tab that lists the pages, searched and sorted."""
        job = jobs.outline(self._database, id)
        return self._tab(request, job, "pages", **page_list(self._database, job, query))

    def _tab(self, request: Request, job: Job, tab: str, **values: Any) -> Response:
        name = "job.html"
        if request.headers.get("hx-target") in ("tab-place", "panels-place"):
            name = "_tab.html"
        hidden = {"fields": not job.payload.get("fields"), "shards": not is_parent(job)}
        tabs = [each for each in TABS if not hidden.get(each)]
        return self._templates.page(name, tab=tab, tabs=tabs, **self._head(job), **values)

    def waiting(self, id: str) -> Response:
        """What the job waits for, for the log tab."""
        return self._templates.page("_waiting.html", **self._head(jobs.outline(self._database, id)))

    def head(self, id: str) -> Response:
        return self._templates.page("_head.html", **self._head(jobs.outline(self._database, id)))

    def charts(self, id: str) -> Response:
        """What the charts draw."""
        job = jobs.outline(self._database, id)
        counts = urls.counts(self._database, id)
        return Answer(
            {
                "history": charts.history(self._database, job, counts),
                "responses": charts.responses(self._database, job),
                "eta": progress_view(job, counts, self._database.now()).eta_seconds,
            }
        )

    def page(self, id: str, url_id: int) -> Response:
        """One URL: its result, the pages that link to it, and its links."""
        job = jobs.outline(self._database, id)
        url = urls.by_id(self._database, id, url_id) if 0 < url_id < 2**62 else None
        if url is None:
            raise Problem("not-found", f"job {id} has no URL {url_id}")
        found = explained(self._database, url)
        return self._templates.page(
            "page.html",
            job=job_view(job, urls.counts(self._database, id), self._database.now()),
            url=url_view(url, {each.id: each for each in found.path}),
            says=in_words(url),
            many_links=MANY_LINKS,
            way=found.path[:-1],
            links_in=found.links_in,
            links_out=found.links_out,
            **content_of(found.result),
            **fields_of_page(found.result),
            files=files_of_page(found.result, self._settings.data),
            now=self._database.now(),
        )

    def _pressing(self, verb: Verb) -> Any:
        def press(request: Request, id: str) -> Response:
            job = ask(self._database, self._settings.data, id, verb)
            if "hx-request" in request.headers:
                return self._templates.page("_head.html", **self._head(job))
            return RedirectResponse(f"/jobs/{id}", 303)

        return press

    def again(self, id: str, form: Form) -> Response:
        """Retry the URLs that failed for one reason."""
        job = requeue(self._database, jobs.outline(self._database, id), form.get("reason", "").replace("\x00", ""))
        return RedirectResponse(f"/jobs/{job.id}", 303)

    def repeat(self, id: str) -> Response:
        """The same job once more."""
        job, _ = jobs.enqueue(self._database, repeated(jobs.get(self._database, id), self._settings))
        return RedirectResponse(f"/jobs/{job.id}", 303)

    def delete(self, id: str) -> Response:
        remove(self._database, self._settings, id)
        return RedirectResponse("/", 303)

    def _head(self, job: Job) -> dict[str, Any]:
        now = self._database.now()
        counts = urls.counts(self._database, job.id)
        return {
            "job": job_view(job, counts, now, usage=usage_of_job(self._database, job, counts.live)),
            "live": counts.live,
            "held_up_by": self._held_up_by(job, now),
            "waiting_hosts": host_rows([wait for wait in waits_of(job, counts) if wait.reason not in NO_WAIT], [], now),
            "can": _possible(job),
            "exports": self._exports(job),
            "again": way_of(job, with_sample=self._with_sample),
            "now": now,
        }

    def _exports(self, job: Job) -> list[tuple[str, str]]:
        """The downloads that a job offers, each with its words; none while nothing is stored."""
        if not pages.search(self._database, job.id, sort="size", wanted=1).ids:
            return []
        return [(form, EXPORT_WORDS[form]) for form in offered(self._settings.data, job.id)]

    def _held_up_by(self, job: Job, now: datetime) -> str:
        """What keeps a queued job from starting."""
        kind = registry.BUILT_IN.get(job.kind)
        if job.status is not Status.QUEUED or job.run_at > now or (kind is not None and kind.external):
            return ""
        return hold_up(workers.alive(self._database, self._settings.stale_after), job.kind)

    def _overview(self, job: Job, query: TabQuery) -> dict[str, Any]:
        statuses, reasons, hosts = self._ledger_counts.soon(job, charts.status_bars, urls.reasons, urls.hosts)
        return {
            "reasons": reason_views(reasons or ()),
            "statuses": statuses or (),
            **in_two(self._host_rows(job, hosts), most=8),
            "counting": None in (statuses, reasons, hosts),
        }

    def _failed(self, job: Job, query: TabQuery) -> dict[str, Any]:
        shown = self._by_reason(job, query, "failed")
        failed = urls.by_ids(self._database, job.id, [row.id for row in shown["rows"]])
        return {**shown, "links_in": into(self._database, job.id, list(failed.values()))}

    def _skipped(self, job: Job, query: TabQuery) -> dict[str, Any]:
        return self._by_reason(job, query, "skipped")

    def _by_reason(self, job: Job, query: TabQuery, state: str) -> dict[str, Any]:
        (reasons,) = self._ledger_counts.soon(job, urls.reasons)
        groups = reason_views(reasons or ())
        reason = query.reason.replace("\x00", "") or None
        found = urls.failures(self._database, job.id, state=state, reason=reason, after=query.cursor, wanted=ROWS + 1)
        groups = [each for each in groups if each.state == state]
        return {"state": state, "groups": groups, "counting": reasons is None, **self._rows(job, found)}

    def _hosts(self, job: Job, query: TabQuery) -> dict[str, Any]:
        (hosts,) = self._ledger_counts.soon(job, urls.hosts)
        return {**in_two(self._host_rows(job, hosts)), "counting": hosts is None, "most": urls.MOST_HOSTS}

    def _host_rows(self, job: Job, counted: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
        return host_rows(waits_of(job, urls.counts(self._database, job.id)), counted or [], self._database.now())

    def _shards(self, job: Job, query: TabQuery) -> dict[str, Any]:
        found, now = shards.of(self._database, job.id), self._database.now()
        counts = urls.counts_of(self._database, [shard.id for shard in found])
        return {"shards": [job_view(shard, counts.get(shard.id, Counts()), now) for shard in found]}

    def _logs(self, job: Job, query: TabQuery) -> dict[str, Any]:
        if query.q or query.level or query.cursor:
            found = logs.search(
                self._database,
                job.id,
                levels=levels_from(query.level or None),
                text=query.q,
                after=query.cursor,
                wanted=LINES,
            )
        else:
            found = logs.tail(self._database, job.id, wanted=LINES)
        secrets = secrets_of(job.payload)
        return {"lines": [line_view(line, secrets) for line in found], "more": len(found) == LINES}

    def _fields(self, job: Job, query: TabQuery) -> dict[str, Any]:
        return field_table(self._database, job, query.cursor, query.q.replace("\x00", "").strip())

    def _details(self, job: Job, query: TabQuery) -> dict[str, Any]:
        return {"results": results.count(self._database, job.id)}

    def _rows(self, job: Job, found: list[Url]) -> dict[str, Any]:
        shown = found[:ROWS]
        sources = urls.by_ids(self._database, job.id, [url.found_on for url in shown if url.found_on is not None])
        return {
            "rows": [url_view(url, sources) for url in shown],
            "next": shown[-1].id if len(found) > ROWS else None,
        }


def content_of(result: Result | None) -> dict[str, Any]:
    """The title, the text and all other facts of a result."""
    data, metadata = (result.data, result.metadata) if result else ({}, {})
    facts = [(name, value) for name, value in data.items() if name not in CONTENT and name not in FIELD_DATA]
    facts += [(name, value) for name, value in metadata.items() if name != "files"]
    text = next((data[name] for name in CONTENT if data.get(name)), "")
    text = text if isinstance(text, str) else json.dumps(text, indent=2, ensure_ascii=False)
    return {
        "result": result,
        "title": data.get("title") or "",
        "text": text[:MOST_TEXT],
        "more_text": max(0, len(text) - MOST_TEXT),
        "facts": facts[:MOST_FACTS],
        "more_facts": max(0, len(facts) - MOST_FACTS),
        "seconds": number_in(metadata, "seconds"),
        "bytes": number_in(metadata, "bytes"),
    }


def files_of_page(result: Result | None, data: Path) -> list[dict[str, Any]]:
    """The files of a page: what the result says about each, and where to get it or why it is missing."""
    if result is None:
        return []
    here = stored_files(data, result.job_id, result.url_id, result.metadata)
    shown = []
    for name, note in files_named(result.metadata).items():
        missing = note.error or ("" if name in here else f"it is in the data directory of {note.host}")
        href = f"/v1/jobs/{result.job_id}/files/{result.url_id}/{name}"
        shown.append({"name": name, "bytes": note.size, "error": missing, "href": href})
    return shown


def host_rows(waits: list[Wait], counted: list[dict[str, Any]], now: datetime) -> list[dict[str, Any]]:
    """Hosts that wait, the longest first, then the others by size. One that was not counted has no `counts`."""
    counts = {each["host"]: each for each in counted}
    rows = [
        {
            "host": wait.host,
            "counts": counts.pop(wait.host, None),
            "wait": wait,
            "why": why(wait),
            "event": event(wait),
            "left": seconds_to(wait, now),
            "next": what_next(wait, now),
        }
        for wait in waits
    ]
    return rows + [{"host": host, "counts": each, "wait": None} for host, each in counts.items()]


def in_two(rows: list[dict[str, Any]], most: int | None = None) -> dict[str, Any]:
    """The hosts of the crawl, and the hosts to which its pages only link."""
    outside = [row for row in rows if is_outside(row)]
    return {"hosts": [row for row in rows if not is_outside(row)][:most], "outside": outside}


def is_outside(row: dict[str, Any]) -> bool:
    counts = row["counts"]
    return row["wait"] is None and counts["discovered"] == counts["out_of_scope"]


def _possible(job: Job) -> list[str]:
    """The buttons that would do something. A shard has none: commands are for the whole crawl."""
    can = []
    for verb in VERBS if job.shard is None else ():
        change = answer_to(verb, job.status, job.desired)
        if isinstance(change, Change) and change != Change(job.status, job.desired):
            can.append(verb.value)
    return can

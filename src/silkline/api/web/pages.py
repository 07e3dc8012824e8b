"""The pages that are not about one job: the list, the fleet, signing in."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

import anyio
from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, ConfigDict, Field

from silkline.api import submission
from silkline.api.auth import COOKIE, SESSION_SECONDS, Doorkeeper
from silkline.api.private_addresses import ASK_OPERATOR, check_allowed, private_url
from silkline.api.problems import Problem
from silkline.api.routes.jobs import ID, LONGEST_NAME, JobListQuery, listed
from silkline.api.web import forms
from silkline.api.web.again import OFFERED, completed_by, filled_in, way_of
from silkline.api.web.sample_crawl import FirstCrawl
from silkline.api.web.templates import Templates
from silkline.config import Settings
from silkline.errors import UsageError
from silkline.kinds import registry
from silkline.model.client_network import network_of
from silkline.model.database import Database
from silkline.model.job import NewJob, Status
from silkline.store import jobs, workers
from silkline.store.fleet import fleet
from silkline.store.waiting import hold_up

Form = Annotated[dict[str, str], Depends(forms.fields)]
ORDER = ("running", "queued", "paused", "completed", "failed", "stopped", "cancelled")


class Filters(BaseModel):
    """The query of the list of jobs. Empty means all, because forms send empty values."""

    model_config = ConfigDict(extra="ignore")

    status: Status | str | None = Field("", pattern=r"^(queued|running|paused|stopped|cancelled|completed|failed|)$")
    kind: str = Field("", max_length=LONGEST_NAME, pattern=r"^[\w.-]*$")
    q: str = Field("", max_length=500)
    cursor: str = Field("", pattern=f"^({ID})?$")
    again: str = Field("", pattern=f"^({ID})?$")

    def listing(self) -> JobListQuery:
        asked = {"status": self.status, "kind": self.kind, "q": self.q.strip(), "cursor": self.cursor}
        return JobListQuery.model_validate({name: value for name, value in asked.items() if value})

    def address(self, **changed: str) -> str:
        values = {"status": self.status, "kind": self.kind, "q": self.q, **changed}
        query = urlencode({name: value for name, value in values.items() if value})
        return f"/?{query}" if query else "/"


class Pages:
    def __init__(
        self,
        database: Database,
        settings: Settings,
        templates: Templates,
        doorkeeper: Doorkeeper,
        first: FirstCrawl | None,
    ) -> None:
        self._database = database
        self._settings = settings
        self._templates = templates
        self._doorkeeper = doorkeeper
        self._login_thread: anyio.CapacityLimiter | None = None
        self._first = first
        self.router = APIRouter(include_in_schema=False)
        add = self.router.add_api_route
        add("/", self.home, methods=["GET"])
        add("/jobs", self.home, methods=["GET"])
        add("/jobs", self.start, methods=["POST"])
        add("/first", self.first, methods=["POST"])
        add("/fleet", self.fleet, methods=["GET"])
        add("/workers", self.fleet, methods=["GET"])  # the address of older versions
        add("/login", self.sign_in_page, methods=["GET"])
        add("/login", self.sign_in, methods=["POST"])
        add("/logout", self.sign_out, methods=["POST"])

    def home(self, request: Request, filters: Annotated[Filters, Query()]) -> Response:
        """The list of jobs; just the table when htmx asks for it."""
        fragment = request.headers.get("hx-target") == "jobs-place"
        form = self._form_of(filters.again) if filters.again and not fragment else {}
        return self._list("_jobs.html" if fragment else "jobs.html", filters, form=form)

    def _form_of(self, id: str) -> dict[str, str]:
        """The form for the same job; empty if the job does not fit into one. Then its whole request is not read."""
        outline = jobs.outline(self._database, id)
        shown = way_of(outline, with_sample=False) == "form"
        return filled_in(jobs.get(self._database, id)) if shown else {}

    def _list(self, name: str, filters: Filters, *, status: int = 200, **more: Any) -> Response:
        items, cursor = listed(self._database, filters.listing(), self._settings.stale_after)
        counts = jobs.counts(self._database)
        now = self._database.now()
        values = {
            "jobs": items,
            "next": cursor,
            "counts": {each: counts[Status(each)] for each in ORDER},
            "total": sum(counts.values()),
            "filters": filters,
            "kinds": sorted(registry.kinds(test_kinds=self._settings.test_kinds)),
            "offered": OFFERED,
            "held_up_by": hold_up(workers.alive(self._database, self._settings.stale_after)),
            "sample": self._first is not None,
            "problems": {},
            "form": {},
            "private": self._settings.api_allow_private,
            **more,
        }
        return self._templates.page(name, status=status, now=now, **values)

    def start(self, form: Form) -> Response:
        """Submit the job of the form. If it is not valid, show the form again with the errors."""
        try:
            job, _ = jobs.enqueue(self._database, self._asked(form))
        except (UsageError, forms.FormProblem) as error:
            shown, problems = forms.shown_again(form)
            for name, words in forms.problems_of(error).items():
                problems[name] = f"{words}. {problems[name]}" if name in problems else words
            return self._list("jobs.html", Filters.model_validate({}), status=422, problems=problems, form=shown)
        return RedirectResponse(f"/jobs/{job.id}", 303)

    def _asked(self, form: dict[str, str]) -> NewJob:
        body = forms.posted_job(form)
        if form.get("again"):
            body = completed_by(jobs.get(self._database, form["again"]), body)
        allowed = body.get("allow_private", [])
        if self._settings.api_allow_private:
            check_allowed(allowed)
        refused = private_url([body.get("url", ""), *body.get("urls", ())], allowed)
        if refused and self._settings.api_allow_private:
            raise forms.FormProblem(
                {"allow_private": f"{refused[:200]} is a private address: list it here to allow it"}
            )
        if refused:
            field = "url" if refused == body.get("url") else "urls"
            raise forms.FormProblem({field: f"{refused[:200]} is a private address. {ASK_OPERATOR}."})
        return submission.read(body, self._settings)

    def first(self) -> Response:
        """Submit a crawl of the sample site."""
        if self._first is None:
            raise Problem("not-found", "the sample site is available only if Silkline listens on loopback")
        job, _ = jobs.enqueue(self._database, self._first.job())
        return RedirectResponse(f"/jobs/{job.id}", 303)

    def fleet(self) -> Response:
        found = fleet(self._database, workers.alive(self._database, self._settings.stale_after))
        return self._templates.page("fleet.html", fleet=found, now=found.at)

    def sign_in_page(self, next: str = "/") -> Response:
        return self._templates.page("login.html", next=_inside(next), problem="")

    async def sign_in(self, request: Request, form: Form) -> Response:
        """A browser gets a cookie for a token. All logins share one thread: who signs in needs no token yet."""
        if self._login_thread is None:  # made on the event loop
            self._login_thread = anyio.CapacityLimiter(1)
        address = network_of(request.scope.get("client"))
        return await anyio.to_thread.run_sync(self._sign_in, form, address, limiter=self._login_thread)

    def _sign_in(self, form: dict[str, str], address: str) -> Response:
        target = _inside(form.get("next", "/"))
        caller = self._doorkeeper.by_token(form.get("token", "").strip(), address)
        if caller is None:
            return self._templates.page("login.html", status=401, next=target, problem="This token is not valid.")
        response = RedirectResponse(target, 303)
        response.set_cookie(
            COOKIE, self._doorkeeper.begin_session(caller), max_age=SESSION_SECONDS, httponly=True, samesite="strict"
        )
        return response

    def sign_out(self, request: Request) -> Response:
        self._doorkeeper.end_session(request.headers.get("cookie", ""))
        response = RedirectResponse("/login", 303)
        response.delete_cookie(COOKIE)
        return response


def _inside(target: str) -> str:
    """The target if it is a path of this server, else `/`. A login never redirects to another site."""
    return target if target.startswith("/") and not target.startswith(("//", "/\\")) else "/"

"""Installs the web page: pages, tabs, static files, and problems as pages."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI, Request, Response

from silkline.api.auth import Doorkeeper
from silkline.api.ledger_counts import LedgerCounts
from silkline.api.problems import AsPage, Problem
from silkline.api.web.job_pages import JobPages
from silkline.api.web.pages import Pages
from silkline.api.web.sample_crawl import FirstCrawl
from silkline.api.web.static_files import StaticFiles
from silkline.api.web.templates import Templates
from silkline.config import Settings
from silkline.model.database import Database

STATIC = Path(__file__).parent / "static"


def install(
    app: FastAPI,
    settings: Settings,
    database: Database,
    doorkeeper: Doorkeeper,
    ledger_counts: LedgerCounts,
    *,
    with_sample: bool,
) -> AsPage:
    """Add the pages to the application. Returns the function that renders a problem as a page."""
    templates = Templates()
    app.add_route("/static/{name:path}", StaticFiles(STATIC).serve, include_in_schema=False)
    first = FirstCrawl() if with_sample else None
    app.include_router(Pages(database, settings, templates, doorkeeper, first).router)
    app.include_router(JobPages(database, settings, templates, ledger_counts, with_sample=with_sample).router)

    def as_page(request: Request, problem: Problem) -> Response | None:
        """A problem as a page, if a browser asked for a page."""
        path = request.url.path
        by_person = "text/html" in request.headers.get("accept", "") and "hx-request" not in request.headers
        if not by_person or path.startswith("/v1/"):
            return None
        return templates.page("problem.html", status=problem.status, problem=problem)

    return as_page

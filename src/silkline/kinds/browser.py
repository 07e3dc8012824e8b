"""Whether and with which browser the pages of a job are rendered. Reports early if that is not possible."""

from __future__ import annotations

from pathlib import Path

from silkline.crawl.plan import Rendering
from silkline.errors import Permanent, UsageError
from silkline.fetch.render_program import WHAT_TO_INSTALL, find_browser
from silkline.fetch.render_proxy import Upstream
from silkline.model.kind import Context, KindSettings
from silkline.model.spec import Capturing, Fetching
from silkline.page_files import place_of

SWITCHED_OFF = "no page is rendered here: the setting max_concurrent_chrome is 0"


def rendering_for(spec: Fetching, context: Context[object]) -> Rendering | None:
    """How the pages of a spec are rendered; None: not at all. Raises `Permanent` if they must be rendered and cannot
    be."""
    if spec.render == "never":
        return None
    auto, settings = spec.render == "auto", context.settings
    problem = _problem(spec, settings)
    if problem and not auto:
        raise Permanent(problem)
    if problem:
        context.log.warning("%s; pages that need scripts are stored without running them", problem)
        if problem != WHAT_TO_INSTALL:
            return None
    return Rendering(
        auto=auto,
        count=settings.max_concurrent_chrome,
        places=str(Path(settings.data) / "browsers"),
        url=settings.renderer_url,
        job=context.progress.job.id,
        screenshot=getattr(spec, "screenshot", None) or "",
        pdf=getattr(spec, "pdf", False),
        files=place_of(Path(settings.data), context.progress.job) if wants_files(spec) else None,
    )


def wants_files(spec: Fetching) -> bool:
    """Whether each rendered page gets a screenshot or a PDF."""
    return isinstance(spec, Capturing) and bool(spec.screenshot or spec.pdf)


def _problem(spec: Fetching, settings: KindSettings) -> str:
    if settings.max_concurrent_chrome == 0:
        return SWITCHED_OFF
    if spec.proxy:
        try:
            Upstream(spec.proxy)
        except UsageError as error:
            return str(error)
    return "" if settings.renderer_url or find_browser() else WHAT_TO_INSTALL

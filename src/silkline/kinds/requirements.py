"""The packages that some options need and that are not always installed. Checked before a job is created.

Each error names what is missing, and the command that installs it.
"""

from __future__ import annotations

import importlib
from typing import Final

from silkline.config import Settings
from silkline.errors import UsageError
from silkline.kinds.registry import CRAWL4AI
from silkline.model.spec import Fetching, Spec

# For each extra of ours: what needs it, and the modules that it installs.
EXTRAS: Final = {
    "warc": ("--warc", ("warcio",)),
    "parquet": ("Parquet", ("pyarrow",)),
    "mcp": ("silkline mcp", ("mcp",)),
    "youtube": ("jobs of the kind youtube", ("youtube_transcript_api",)),
}


def installed(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def need(extra: str) -> None:
    """Raise `UsageError` if an extra is not installed."""
    what, modules = EXTRAS[extra]
    missing = [module for module in modules if not installed(module)]
    if missing:
        names = " and ".join(module.replace("_", "-") for module in missing)
        raise UsageError(f"{what} needs {names}, not installed here: pip install 'silkline[{extra}]'")


def check_packages(kind: str, spec: Spec, settings: Settings, *, here: bool = False) -> None:
    """Refuse a job that cannot run, before it is created.

    With `here` the job runs in this process tree. Otherwise it is checked only if all workers are on this machine, as
    with SQLite: another machine may have what is missing here.
    """
    if kind == CRAWL4AI and not settings.crawl4ai:
        raise UsageError(
            "the kind crawl4ai is switched off: its browser sends requests that Silkline does not check; if "
            "that is acceptable, set SILKLINE_CRAWL4AI=true (docs/how-to/crawl4ai.md)"
        )
    if not here and not settings.database.startswith("sqlite"):
        return
    if getattr(spec, "warc", False):
        need("warc")
    if kind == "youtube":
        need("youtube")
    if isinstance(spec, Fetching) and spec.render == "always" and not settings.renderer_url:
        from silkline.fetch.render_program import WHAT_TO_INSTALL, find_browser

        if settings.max_concurrent_chrome == 0:
            raise UsageError("--render always: the setting max_concurrent_chrome is 0, so no page is rendered here")
        if find_browser() is None:
            raise UsageError(f"--render always: {WHAT_TO_INSTALL}")

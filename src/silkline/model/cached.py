"""Whether a stored page can be used instead of fetching it again. Pure; `store.page_cache` looks the page up."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

# Fields that make the pages of a job private: credentials, or a way to the page that other jobs do not have.
EXTRACTED: Final = ("fields", "each", "facts", "keep_html")
"""The parts of a spec that say what is taken from a page besides its content."""
PERSONAL: Final = ("headers", "cookies", "proxy")
CAPTURED: Final = ("screenshot", "pdf")
"""The files of a page. They belong to one job, so a job that wants some uses no stored page."""
# Fields that change the content of a page. Such content is not used for other jobs.
SHAPING: Final = ("keep", "drop", "no_links", "no_images", "link_titles")
RULE_FIELDS: Final = frozenset(
    {*PERSONAL, *EXTRACTED, *SHAPING, "content", "render", "allow_private", "user_agent", "ignore_robots"}
)
"""All fields of a spec that the functions below read. Of the spec that asks for a page, they read no others either."""


def is_personal(payload: Mapping[str, Any]) -> bool:
    """Whether the pages of this job must not be used for other jobs."""
    return any(payload.get(name) for name in PERSONAL)


def is_for(payload: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    """Whether a site would have given a job with the spec `asked` the pages of the job `payload`.

    Many sites have other pages for other user agents. A job that obeys robots.txt gets no page that it may not fetch.
    """
    if payload.get("ignore_robots") and not asked.get("ignore_robots"):
        return False
    return (payload.get("user_agent") or "") == (asked.get("user_agent") or "")


def is_shaped(payload: Mapping[str, Any]) -> bool:
    """Whether the user of this job chose parts of the content."""
    return any(payload.get(name) for name in SHAPING)


def serves(
    data: Mapping[str, Any],
    metadata: Mapping[str, Any],
    payload: Mapping[str, Any],
    *,
    content: str,
    render: str,
    allowed: Collection[str] = (),
    extracted: Mapping[str, Any] | None = None,
) -> bool:
    """Whether a result (`data`, `metadata`) of a job (`payload`) can be used: it is public and has the right content.
    `is_for` must be true too.

    The results of a job with private addresses are used only for jobs that may reach the same ones (`allowed`).

    `extracted` has the fields, rows and facts that are wanted: the job must have asked for the same.

    A result without text, or with another form of text, does not count. An unrendered page does not count if rendering
    was required, or if `auto` was asked for and not tried.
    """
    if any(payload.get(name) != value for name, value in (extracted or {}).items() if value):
        return False
    if not set(payload.get("allow_private") or ()) <= set(allowed):
        return False
    if is_personal(payload) or not _scripts_ran(metadata, payload, render):
        return False
    stored = metadata.get("content") or payload.get("content") or "markdown"
    if stored != content and content != "none":
        return False
    if is_shaped(payload):
        return False
    return content == "none" or (content if content in ("text", "html") else "markdown") in data


def _scripts_ran(metadata: Mapping[str, Any], payload: Mapping[str, Any], render: str) -> bool:
    if render == "never" or metadata.get("rendered"):
        return True
    return render == "auto" and payload.get("render") == "auto" and "render_failed" not in metadata

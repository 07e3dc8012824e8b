"""Whether a stored page can answer for one that is asked for now. Pure; the look-up is `store.results.cached`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

# What makes a page somebody's own: credentials, or a way to the page that others do not have.
PERSONAL: Final = ("headers", "cookies", "proxy")


def is_personal(payload: Mapping[str, Any]) -> bool:
    """Whether what this job fetches is for its owner alone."""
    return any(payload.get(name) for name in PERSONAL)


def serves(
    data: Mapping[str, Any],
    metadata: Mapping[str, Any],
    payload: Mapping[str, Any],
    *,
    content: str,
    render: str,
    allowed: Collection[str] = (),
) -> bool:
    """Whether a result (`data`, `metadata`) of a job (`payload`) will do: nobody's own, with the content wanted.

    What a job brought that was allowed private addresses answers only for those who are allowed the same (`allowed`).

    A crawl that stored no text, or another sort of it, cannot answer; nor can a page without its scripts, where they
    must run, or where they must be looked for and never were.
    """
    if not set(payload.get("allow_private") or ()) <= set(allowed):
        return False
    if is_personal(payload) or not _scripts_ran(metadata, payload, render):
        return False
    stored = metadata.get("content") or payload.get("content") or "markdown"
    if stored != content and content != "none":
        return False
    return content == "none" or ("text" if content == "text" else "markdown") in data


def _scripts_ran(metadata: Mapping[str, Any], payload: Mapping[str, Any], render: str) -> bool:
    if render == "never" or metadata.get("rendered"):
        return True
    return render == "auto" and payload.get("render") == "auto" and "render_failed" not in metadata

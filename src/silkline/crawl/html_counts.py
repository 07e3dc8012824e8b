"""Counts the pages whose HTML a job has kept, over all its attempts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from silkline.model.kept_html import KEY, KeptHtml, NewHtml, kept_html_in


class HtmlCounts:
    """The counts become durable with the pages that they count."""

    def __init__(self) -> None:
        self._kept = KeptHtml()

    def load(self, live: Mapping[str, Any]) -> None:
        """Continue with the counts of an earlier attempt."""
        self._kept = kept_html_in(live)

    def add(self, html: NewHtml) -> None:
        pages, stored, raw = self._kept
        self._kept = KeptHtml(pages + 1, stored + len(html.html), raw + html.size)

    def live(self) -> dict[str, Any]:
        """For the live values of the job."""
        return {KEY: list(self._kept)} if self._kept.pages else {}

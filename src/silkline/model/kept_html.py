"""The HTML that a job keeps of its pages: the values of a checkpoint, and the counts. `store.html` writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

KEY: Final = "html"
"""The name of the counts in the live values of a job."""


class NewHtml(NamedTuple):
    """The compressed page of one URL. `dictionary` is the id of the dictionary it needs; 0: none."""

    url_id: int
    dictionary: int
    size: int
    html: bytes


class NewDictionary(NamedTuple):
    """A dictionary for the pages of a job."""

    id: int
    data: bytes


class KeptHtml(NamedTuple):
    """How many pages a job has kept, their compressed size in bytes, and their size before."""

    pages: int = 0
    stored: int = 0
    raw: int = 0


def kept_html_in(live: Mapping[str, Any]) -> KeptHtml:
    """The counts in the live values of a job. Values of another form are ignored."""
    stored = live.get(KEY)
    if isinstance(stored, list) and len(stored) == 3 and all(isinstance(number, int) for number in stored):
        return KeptHtml(*stored)
    return KeptHtml()

"""The interface of a page hook, a function of a plug-in that gets every page:

    def look(page: HookedPage) -> Additions | None:
        return Additions(data={"words": len(page.document.text.split())})

A plug-in registers it with the entry point group `silkline.page`. docs/how-to/write-a-page-hook.md shows how.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class HookedPage:
    """One page. `document` is a `turbohtml.Document`, before anything is removed from it: do not change it.

    `data` has what was found so far: the title, and the fields of the job.
    """

    url: str
    headers: Mapping[str, str]
    document: Any
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Additions:
    """What a hook adds to a page: data for its result, and links to follow. With a `refusal` the page is not stored."""

    data: Mapping[str, Any] = field(default_factory=dict)
    links: Sequence[str] = ()
    refusal: str = ""


Hook = Callable[[HookedPage], Additions | None]

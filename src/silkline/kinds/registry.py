"""The kinds of jobs: their names, without importing any of their code.

The API, the command line and the supervisor know the kinds only from this module. A plug-in registers a kind with the
entry point group `silkline.kinds`: the name of the entry point is the kind, its value is the code that runs it. This is
a function `run(context)` or a class with that method, with the spec as its attribute `spec`. A supervisor only reads
the names. A process that accepts jobs needs the spec too (kinds/specs.py). docs/how-to/write-a-kind.md shows all of
this.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any

from silkline.errors import Permanent, Refused, SpecError
from silkline.kinds.plugin_import import SECONDS, found_at
from silkline.model.job import End
from silkline.model.kind import Context
from silkline.time_limit import TookTooLong, interrupted_after

CRAWL4AI = "crawl4ai"
GROUP = "silkline.kinds"
Run = Callable[[Context[Any]], End | None]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of job: its name, and the place of its code (`module:function`). kinds/specs.py has its spec."""

    name: str
    target: str
    external: bool = False  # an external worker runs it, through the API; a supervisor never claims it
    crawl: bool = False  # may run for days: has the wall-clock limit of a site, not of a page


BUILT_IN = {
    kind.name: kind
    for kind in (
        Kind("page", "silkline.kinds.page:run"),
        Kind("site", "silkline.kinds.site:run", crawl=True),
        Kind("extract", "silkline.kinds.extract:run", crawl=True),
        Kind("map", "silkline.kinds.map:run"),
        Kind("youtube", "silkline.kinds.youtube:run"),
        Kind("bluesky", "silkline.kinds.bluesky:run"),
        Kind("crawl4ai", "silkline.kinds.crawl4ai:run"),
        Kind("extension", "", external=True),
    )
}
DIAGNOSTIC = Kind("diagnostic", "silkline.kinds.diagnostic:run")


def kinds(*, test_kinds: bool = False) -> dict[str, Kind]:
    """Every kind that this installation knows. A plug-in never replaces a built-in kind."""
    return {**_plugins(), **_own(test_kinds)}


def _own(test_kinds: bool) -> dict[str, Kind]:
    return {**BUILT_IN, DIAGNOSTIC.name: DIAGNOSTIC} if test_kinds else BUILT_IN


@functools.cache
def _plugins() -> dict[str, Kind]:
    """Cached: finding entry points reads the metadata of every installed package, 30 ms for a hundred of them."""
    return {point.name: Kind(point.name, point.value) for point in entry_points(group=GROUP)}


def kind_named(name: str, *, test_kinds: bool = False) -> Kind:
    own = _own(test_kinds)
    if name in own:
        return own[name]
    known = kinds(test_kinds=test_kinds)
    if name in known:
        return known[name]
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise SpecError(f"unknown kind {name!r}{hint} (known: {', '.join(sorted(known))})")


def claimable(*, test_kinds: bool = False, crawl4ai: bool = False) -> list[str]:
    """The kinds that a supervisor runs. `crawl4ai` does not use our fetcher with its checks: it is off by default."""
    known = kinds(test_kinds=test_kinds).items()
    return [name for name, kind in known if not kind.external and (crawl4ai or name != CRAWL4AI)]


def is_external(name: str) -> bool:
    """Whether external workers run jobs of this kind. Their results may contain anything."""
    return name in BUILT_IN and BUILT_IN[name].external


def refuse_external(name: str) -> None:
    """Refuse to run a job of an external kind in a process of ours: there is no code for it."""
    if is_external(name):
        raise Refused(f"An external worker runs jobs of the kind {name} (docs/how-to/external-workers.md).")


def is_crawl(name: str) -> bool:
    """Whether this kind may run for days, with the wall-clock limit of a site."""
    return name in BUILT_IN and BUILT_IN[name].crawl


def load(kind: Kind) -> Run:
    """Import the code of a kind. Only a runner does this."""
    try:
        with nullcontext() if kind in (*BUILT_IN.values(), DIAGNOSTIC) else interrupted_after(SECONDS):
            target = found_at(kind.target, "run")
    except TookTooLong:
        raise Permanent(
            f"the plug-in for kind {kind.name!r} cannot be loaded: its import took longer than {SECONDS:g} s"
        ) from None
    run: Run = target().run if isinstance(target, type) else target
    return run

"""Which kinds of job there are: names and specs, without importing any worker.

The one door through which the API, the command line and the supervisor know about workers. Plugins announce themselves
by the entry point group `silkline.workers`: the name of the entry point is the kind, its value the code that runs it,
with the spec as its attribute `spec`.
"""

from __future__ import annotations

import difflib
import functools
import importlib
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any

from silkline.errors import SpecError
from silkline.model import spec as specs

GROUP = "silkline.workers"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of job: its name, the place of its code (`module:function`), and its spec."""

    name: str
    target: str
    spec: type[specs.Spec] | None = None
    external: bool = False  # fulfilled by a program outside, through the API; a supervisor never claims it
    crawl: bool = False  # may run for days: has the wall-clock limit of a site, not of a page


BUILT_IN = {
    kind.name: kind
    for kind in (
        Kind("page", "silkline.workers.page:run", specs.PageSpec),
        Kind("site", "silkline.workers.site:run", specs.SiteSpec, crawl=True),
        Kind("map", "silkline.workers.map:run", specs.MapSpec),
        Kind("youtube", "silkline.workers.youtube:run", specs.YoutubeSpec),
        Kind("bluesky", "silkline.workers.bluesky:run", specs.BlueskySpec),
        Kind("crawl4ai", "silkline.workers.crawl4ai:run", specs.Crawl4aiSpec),
        Kind("extension", "", specs.ExtensionSpec, external=True),
    )
}
DIAGNOSTIC = Kind("diagnostic", "silkline.workers.diagnostic:run", specs.DiagnosticSpec)


def kinds(*, test_workers: bool = False) -> dict[str, Kind]:
    """Every kind this installation knows. A plugin never replaces a built-in kind."""
    return {**_plugins(), **_own(test_workers)}


def _own(test_workers: bool) -> dict[str, Kind]:
    return {**BUILT_IN, DIAGNOSTIC.name: DIAGNOSTIC} if test_workers else BUILT_IN


@functools.cache
def _plugins() -> dict[str, Kind]:
    """Looking for entry points reads the metadata of every installed package, 30 ms for a hundred of them."""
    return {point.name: Kind(point.name, point.value) for point in entry_points(group=GROUP)}


def kind_named(name: str, *, test_workers: bool = False) -> Kind:
    own = _own(test_workers)
    if name in own:
        return own[name]
    known = kinds(test_workers=test_workers)
    if name in known:
        return known[name]
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise SpecError(f"unknown worker {name!r}{hint} (known: {', '.join(sorted(known))})")


def claimable(*, test_workers: bool = False) -> list[str]:
    """The kinds that a supervisor runs itself."""
    return [name for name, kind in kinds(test_workers=test_workers).items() if not kind.external]


def is_crawl(name: str) -> bool:
    """Whether this kind may run for days, with the wall-clock limit of a site."""
    return name in BUILT_IN and BUILT_IN[name].crawl


def load(kind: Kind) -> Any:
    """Import the code behind a kind. Only a runner does this."""
    module, _, attribute = kind.target.partition(":")
    return getattr(importlib.import_module(module), attribute or "run")


def check_payload(kind: Kind, payload: dict[str, Any]) -> specs.Spec:
    """The payload as a validated spec."""
    return specs.validate(spec_of(kind), payload)


def spec_of(kind: Kind) -> type[specs.Spec]:
    if kind.spec is not None:
        return kind.spec
    spec: type[specs.Spec] = load(kind).spec
    return spec

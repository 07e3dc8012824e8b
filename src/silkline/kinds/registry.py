"""Which kinds of job there are: names and specs, without importing any of their code.

The one door through which the API, the command line and the supervisor know about them. Plugins announce themselves
by the entry point group `silkline.kinds`: the name of the entry point is the kind, its value the code that runs it, a
function `run(context)` or a class with that method, with the spec as its attribute `spec`. A supervisor only reads the
names. Who takes jobs in must know the spec too; a plugin whose code is heavy names its spec apart, in the group
`silkline.specs`, so that the API never imports the rest. docs/how-to/write-a-kind.md shows it all.
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
from silkline.model.kind import Run

CRAWL4AI = "crawl4ai"
GROUP = "silkline.kinds"
SPECS_GROUP = "silkline.specs"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of job: its name, the place of its code (`module:function`), and its spec."""

    name: str
    target: str
    spec: type[specs.Spec] | None = None
    external: bool = False  # done by an external worker, through the API; a supervisor never claims it
    crawl: bool = False  # may run for days: has the wall-clock limit of a site, not of a page


BUILT_IN = {
    kind.name: kind
    for kind in (
        Kind("page", "silkline.kinds.page:run", specs.PageSpec),
        Kind("site", "silkline.kinds.site:run", specs.SiteSpec, crawl=True),
        Kind("map", "silkline.kinds.map:run", specs.MapSpec),
        Kind("youtube", "silkline.kinds.youtube:run", specs.YoutubeSpec),
        Kind("bluesky", "silkline.kinds.bluesky:run", specs.BlueskySpec),
        Kind("crawl4ai", "silkline.kinds.crawl4ai:run", specs.Crawl4aiSpec),
        Kind("extension", "", specs.ExtensionSpec, external=True),
    )
}
DIAGNOSTIC = Kind("diagnostic", "silkline.kinds.diagnostic:run", specs.DiagnosticSpec)


def kinds(*, test_kinds: bool = False) -> dict[str, Kind]:
    """Every kind this installation knows. A plugin never replaces a built-in kind."""
    return {**_plugins(), **_own(test_kinds)}


def _own(test_kinds: bool) -> dict[str, Kind]:
    return {**BUILT_IN, DIAGNOSTIC.name: DIAGNOSTIC} if test_kinds else BUILT_IN


@functools.cache
def _plugins() -> dict[str, Kind]:
    """Looking for entry points reads the metadata of every installed package, 30 ms for a hundred of them."""
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
    """The kinds that a supervisor runs itself. `crawl4ai` goes its own way to the web, so it has to be switched on."""
    known = kinds(test_kinds=test_kinds).items()
    return [name for name, kind in known if not kind.external and (crawl4ai or name != CRAWL4AI)]


def is_external(name: str) -> bool:
    """Whether external workers do jobs of this kind. They may deliver anything."""
    return name in BUILT_IN and BUILT_IN[name].external


def is_crawl(name: str) -> bool:
    """Whether this kind may run for days, with the wall-clock limit of a site."""
    return name in BUILT_IN and BUILT_IN[name].crawl


def load(kind: Kind) -> Run:
    """Import the code behind a kind. Only a runner does this."""
    target = _import(kind.target, "run")
    run: Run = target().run if isinstance(target, type) else target
    return run


def check_payload(kind: Kind, payload: dict[str, Any]) -> specs.Spec:
    """The payload as a validated spec."""
    return specs.validate(spec_of(kind), payload)


def spec_of(kind: Kind) -> type[specs.Spec]:
    """What a job of this kind may be asked. A plugin without a proper one is of no use to anybody, and is told so."""
    if kind.spec is not None:
        return kind.spec
    apart = next((point.value for point in entry_points(group=SPECS_GROUP) if point.name == kind.name), None)
    try:
        spec = _import(apart, "spec") if apart else getattr(_import(kind.target, "run"), "spec", None)
    except Exception as error:
        raise SpecError(
            f"the plugin for kind {kind.name!r} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    if not (isinstance(spec, type) and issubclass(spec, specs.Spec)):
        raise SpecError(
            f"the plugin for kind {kind.name!r} has no spec: it needs a subclass of silkline.model.spec.Spec"
        )
    return spec


def _import(target: str, default: str) -> Any:
    module, _, attribute = target.partition(":")
    found: Any = importlib.import_module(module.strip())
    for name in (attribute.strip() or default).split("."):
        found = getattr(found, name)
    return found

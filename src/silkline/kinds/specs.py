"""The spec of each kind of job, without importing the code of a kind that is ours.

A process that accepts or runs jobs needs this; a supervisor does not. A plug-in with heavy code can register its spec
separately, in the entry point group `silkline.specs`, so that the API never imports the rest.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any, Final

from silkline.errors import SpecError
from silkline.kinds.plugin_import import ImportFailed, import_target
from silkline.kinds.registry import DIAGNOSTIC, Kind
from silkline.model import spec as specs

GROUP: Final = "silkline.specs"
BUILT_IN: Final[dict[str, type[specs.Spec]]] = {
    "page": specs.PageSpec,
    "site": specs.SiteSpec,
    "extract": specs.ExtractSpec,
    "map": specs.MapSpec,
    "youtube": specs.YoutubeSpec,
    "bluesky": specs.BlueskySpec,
    "crawl4ai": specs.Crawl4aiSpec,
    "extension": specs.ExtensionSpec,
}


def check_payload(kind: Kind, payload: dict[str, Any]) -> specs.Spec:
    """The payload as a validated spec."""
    return specs.validate(spec_of(kind), payload)


def spec_of(kind: Kind) -> type[specs.Spec]:
    """The spec of a kind. Raises `SpecError` for a plug-in that has no valid spec."""
    if kind is DIAGNOSTIC:
        return specs.DiagnosticSpec
    if kind.name in BUILT_IN:
        return BUILT_IN[kind.name]
    apart = next((point.value for point in entry_points(group=GROUP) if point.name == kind.name), None)
    try:
        spec = import_target(apart, "spec") if apart else getattr(import_target(kind.target, "run"), "spec", None)
    except ImportFailed as error:
        raise SpecError(f"the plug-in for kind {kind.name!r} cannot be loaded: {error}") from error
    if not (isinstance(spec, type) and issubclass(spec, specs.Spec)):
        raise SpecError(
            f"the plug-in for kind {kind.name!r} has no spec: it needs a subclass of silkline.model.spec.Spec"
        )
    return spec

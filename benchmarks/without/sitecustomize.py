"""Switches parts of Silkline off in every process of a benchmark, to measure what they cost. Never use it otherwise.

Python imports this file at its start, because benchmarks/crawl.py puts the folder first on PYTHONPATH. The variable
PYTHON_SILKLINE_WITHOUT says what to switch off: `safety` (marks, reading in isolation, confinement) or `metrics` (meters,
counts of checkpoints, and the log of the crawl). Silkline's processes keep variables whose names begin with PYTHON.
"""

import os
import sys
from collections.abc import Callable
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

Change = Callable[[Any], None]


def nothing(*_: object, **__: object) -> None:
    """Takes the place of a function that is switched off."""


def never(*_: object) -> bool:
    return False


def without_marks(module: Any) -> None:
    module.MarkSlot.begin = module.MarkSlot.end = nothing


def without_confinement(module: Any) -> None:
    for name in ("confine_reader", "confine_fetcher", "confine_runner", "confine_fork_server"):
        setattr(module, name, lambda *_: module.Confinement())
    module.refuse_rings = nothing


def without_isolation(module: Any) -> None:
    module.IsolatedReader.prepare = nothing


def without_risks(module: Any) -> None:
    module._risky = never


def without_meters(module: Any) -> None:
    module.Counter.add = module.Gauge.add = module.Gauge.set = module.Histogram.observe = nothing
    module.attach = nothing


def without_counts(module: Any) -> None:
    module.add = nothing


def without_crawl_log(module: Any) -> None:
    module.CrawlLog.look = never
    module.CrawlLog.begin = module.CrawlLog.started = module.CrawlLog.robots = module.CrawlLog.end = nothing


CHANGES: dict[str, dict[str, Change]] = {
    "safety": {
        "silkline.reading_marks": without_marks,
        "silkline.confine.roles": without_confinement,
        "silkline.crawl.isolated_reader": without_isolation,
        "silkline.crawl.guarded_reader": without_risks,
    },
    "metrics": {
        "silkline.metrics.process": without_meters,
        "silkline.store.checkpoint_counts": without_counts,
        "silkline.crawl.crawl_log": without_crawl_log,
    },
}


class ChangedLoader(Loader):
    """Loads a module as usual, then changes it."""

    def __init__(self, loader: Loader, change: Change) -> None:
        self.loader = loader
        self.change = change

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.loader.exec_module(module)
        self.change(module)


class ChangedModules(MetaPathFinder):
    def __init__(self, changes: dict[str, Change]) -> None:
        self.changes = changes

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        change = self.changes.get(name)
        spec = PathFinder.find_spec(name, path) if change is not None else None
        if change is not None and spec is not None and spec.loader is not None:
            spec.loader = ChangedLoader(spec.loader, change)
        return spec


if wanted := os.environ.get("PYTHON_SILKLINE_WITHOUT"):
    sys.meta_path.insert(0, ChangedModules(CHANGES[wanted]))

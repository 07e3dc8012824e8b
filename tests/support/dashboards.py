"""The queries of our dashboards."""

import importlib.util
import json
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
GRAFANA = ROOT / "deploy" / "grafana"
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"


def _program(name: str) -> ModuleType:
    """A program of deploy/grafana."""
    spec = importlib.util.spec_from_file_location(f"silkline_dashboards_{name}", GRAFANA / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def generated() -> dict[str, str]:
    """What deploy/grafana/generate.py writes, by the name of the file."""
    texts: dict[str, str] = _program("generate").texts()
    return texts


@cache
def drawing() -> ModuleType:
    """deploy/grafana/draw.py."""
    return _program("draw")


def queries() -> list[tuple[str, str]]:
    """Every query of every panel, with the name of its dashboard and panel."""
    return [
        (f"{path.stem}: {panel['title']}", target["expr"])
        for path in sorted(GRAFANA.glob("*.json"))
        for panel in json.loads(path.read_text())["panels"]
        for target in panel["targets"]
    ]

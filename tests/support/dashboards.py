"""The queries of our dashboards."""

import importlib.util
import json
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GRAFANA = ROOT / "deploy" / "grafana"
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"


@cache
def generated() -> dict[str, str]:
    """What deploy/grafana/generate.py writes, by the name of the file."""
    spec = importlib.util.spec_from_file_location("silkline_dashboards", GRAFANA / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    texts: dict[str, str] = module.texts()
    return texts


def queries() -> list[tuple[str, str]]:
    """Every query of every panel, with the name of its dashboard and panel."""
    return [
        (f"{path.stem}: {panel['title']}", target["expr"])
        for path in sorted(GRAFANA.glob("*.json"))
        for panel in json.loads(path.read_text())["panels"]
        for target in panel["targets"]
    ]

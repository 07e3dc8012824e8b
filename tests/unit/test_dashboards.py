"""The dashboards and alerts name only metrics and labels that exist, and each alert has its part of the runbook."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from silkline.metrics.families import BY_NAME
from silkline.metrics.family import Type
from tests.support.dashboards import ALERTS, GRAFANA, drawing, generated, queries

ROOT = Path(__file__).resolve().parents[2]
RUNBOOK = (ROOT / "docs" / "runbook.md").read_text()
PARTS = re.compile(r"_(bucket|sum|count)$")
# Labels that Prometheus adds.
ADDED = {"instance", "job", "le"}


def alerts() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def labels_of(metric: str) -> set[str] | None:
    """The labels of a series; None: no such series exists."""
    family = BY_NAME.get(metric) or BY_NAME.get(PARTS.sub("", metric))
    if family is None or (family.name != metric) != (family.type is Type.HISTOGRAM):
        return None
    return {*family.label_names, *ADDED}


def unknown(expression: str) -> set[str]:
    """The metrics and labels in an expression that do not exist. `up` is a metric of Prometheus itself."""
    found = set()
    allowed = set(ADDED)
    for metric, selectors in re.findall(r"(silkline_\w+)(?:\{([^}]*)\})?", expression):
        labels = labels_of(metric)
        if labels is None:
            found.add(metric)
            continue
        allowed |= labels
        found |= set(re.findall(r"(\w+)\s*=~?\s*\"", selectors)) - labels
    for grouped in re.findall(r"\bby \(([^)]*)\)", expression):
        found |= {label.strip() for label in grouped.split(",")} - allowed
    return found


@pytest.mark.parametrize("name", sorted(generated()))
def test_a_dashboard_is_what_the_generator_makes(name: str) -> None:
    assert (GRAFANA / name).read_text() == generated()[name], "run deploy/grafana/generate.py"


def test_all_four_dashboards_are_there() -> None:
    assert {path.name for path in GRAFANA.glob("*.json")} == set(generated())
    assert set(generated()) == {"overview.json", "crawl.json", "machine.json", "queue.json"}


@pytest.mark.parametrize(("panel", "query"), queries())
def test_a_panel_asks_for_metrics_and_labels_that_exist(panel: str, query: str) -> None:
    assert unknown(query) == set(), panel
    assert "silkline_" in query


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])
def test_an_alert_names_what_exists_and_has_its_part_of_the_runbook(alert: dict[str, Any]) -> None:
    assert unknown(alert["expr"]) == set()
    assert f"\n## {alert['alert']}\n\n" in RUNBOOK
    assert alert["annotations"]["runbook_url"].endswith(f"docs/runbook.md#{alert['alert'].lower()}")
    assert alert["labels"]["severity"] in {"critical", "warning"}
    tested = (ALERTS.parent / "alerts_test.yml").read_text()
    assert len(re.findall(rf"alertname: {alert['alert']}\b", tested)) >= 2


def test_the_runbook_has_no_alert_that_does_not_exist() -> None:
    assert re.findall(r"^## (\w+)$", RUNBOOK, re.MULTILINE) == [alert["alert"] for alert in alerts()]


def test_every_family_is_in_a_panel() -> None:
    """What nobody can see is not worth its cost."""
    text = json.dumps([query for _, query in queries()])
    shown = {PARTS.sub("", metric) if metric not in BY_NAME else metric for metric in re.findall(r"silkline_\w+", text)}
    assert set(BY_NAME) - shown == {"silkline_page_bytes_total", "silkline_urls_requeued_total"}


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [
        ("sum(silkline_pages)", {"silkline_pages"}),
        ('max(silkline_jobs{state="x"})', {"state"}),
        ("sum by (tenant) (silkline_jobs)", {"tenant"}),
        ("rate(silkline_fetch_seconds[1m])", {"silkline_fetch_seconds"}),
        ("sum by (le) (silkline_fetch_seconds_bucket)", set()),
    ],
)
def test_a_wrong_name_is_found(expression: str, wrong: set[str]) -> None:
    assert unknown(expression) == wrong


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0.0123, "percentunit", "1.23 %"),
        (1536, "bytes", "1.5 KiB"),
        (3 * 1024**3, "Bps", "3 GiB/s"),
        (0.00042, "s", "420 µs"),
        (0.25, "s", "250 ms"),
        (600, "s", "10 min"),
        (12345, "ops", "12.3 k/s"),
        (0, "none", "0"),
        (float("nan"), "s", "no value"),
    ],
)
def test_a_drawn_value_has_its_unit(value: float, unit: str, shown: str) -> None:
    assert drawing().in_unit(value, unit) == shown


def test_each_panel_is_drawn_at_its_place_with_its_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def ask(_: str, path: str, *, query: str, **more: float) -> dict[str, Any]:
        assert (path, more) == ("/api/v1/query_range", {"start": 0.0, "end": 240.0, "step": 1.0})
        asked.append(query)
        values = [[0, "1"], [1, "3"], [2, "NaN"], [100, "2"]]
        return {"result": [{"metric": {"state": "<done>"}, "values": values}] if "by (state)" in query else []}

    monkeypatch.setattr(drawing(), "ask", ask)
    page = drawing().page("http://prometheus", drawing().Span(0.0, 240.0, "20s"))
    wanted = [query.replace("$instance", ".*").replace("$__rate_interval", "20s") for _, query in queries()]
    assert sorted(asked) == sorted(wanted)
    panels = [panel for text in generated().values() for panel in json.loads(text)["panels"]]
    assert page.count('<div class=panel style="grid-column:') == len(panels)
    assert page.count("No data") == len(panels) - 1
    assert "&lt;done&gt; <b>2/s</b>" in page, "the name of the series is text, with its last value"
    (chart,) = re.findall(r"<svg.*?</svg>", page)
    assert len(re.findall("<polyline", chart)) == 1, "two values, then a gap"
    assert len(re.findall("<circle", chart)) == 1, "one value alone"

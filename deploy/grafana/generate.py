"""Generates the dashboards of Grafana in this folder: `python deploy/grafana/generate.py`.

A test fails if they are out of date. Values of processes and checkpoints are summed over the machines; values of the
database are the same on all machines, so their maximum is shown (docs/reference/metrics.md).
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
SOURCE = {"type": "prometheus", "uid": "silkline-prometheus"}
WIDTH, WIDE, HEIGHT, STAT_WIDTH, STAT_HEIGHT = 24, 8, 8, 4, 4
ON = 'instance=~"$instance"'
Query = tuple[str, str]  # the expression and the legend


def summed(expression: str, by: str) -> str:
    return f"sum by ({by}) ({expression})" if by else f"sum({expression})"


def rate(name: str, **where: str) -> str:
    selectors = [f'{label}=~"{value}"' if "|" in value else f'{label}="{value}"' for label, value in where.items()]
    return f"rate({name}{{{', '.join((*selectors, ON))}}}[$__rate_interval])"


def total(name: str, by: str = "", **where: str) -> str:
    """How much a counter grows in a second, on all machines."""
    return summed(rate(name, **where), by)


def in_an_hour(name: str, by: str = "") -> str:
    return summed(f"increase({name}{{{ON}}}[1h])", by)


def quantiles(name: str, by: str = "") -> list[Query]:
    labels = f"le, {by}" if by else "le"
    legend = f"{{{{{by}}}}} " if by else ""
    return [
        (f"histogram_quantile({share}, sum by ({labels}) ({rate(f'{name}_bucket')}))", f"{legend}{words}")
        for share, words in ((0.5, "half below"), (0.95, "95 % below"), (0.99, "99 % below"))
    ]


def gauge(name: str, by: str = "", *, how: str = "sum") -> str:
    return f"{how} by ({by}) ({name}{{{ON}}})" if by else f"{how}({name}{{{ON}}})"


def panel(kind: str, title: str, unit: str, queries: Sequence[Query], *, says: str = "") -> dict[str, Any]:
    targets = [
        {"datasource": SOURCE, "expr": expression, "legendFormat": legend, "refId": chr(ord("A") + number)}
        for number, (expression, legend) in enumerate(queries)
    ]
    custom = {"fillOpacity": 8, "lineWidth": 1, "showPoints": "never"} if kind == "timeseries" else {}
    return {
        "type": kind,
        "title": title,
        "description": says,
        "datasource": SOURCE,
        "targets": targets,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0, "custom": custom}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}} if kind == "timeseries" else {},
    }


def chart(title: str, unit: str, *queries: Query, says: str = "") -> dict[str, Any]:
    return panel("timeseries", title, unit, queries, says=says)


def number(title: str, unit: str, expression: str, says: str = "") -> dict[str, Any]:
    return panel("stat", title, unit, [(expression, "")], says=says)


def overview() -> Iterator[dict[str, Any]]:
    pages = total("silkline_urls_settled_total", state="done")
    failures = total("silkline_requests_total", purpose="page", status="5xx|none")
    requests = total("silkline_requests_total", purpose="page")
    yield number("Pages a second", "none", pages, "Stored with checkpoints, on all machines.")
    yield number("Running jobs", "none", 'max(silkline_jobs{status="running"})')
    yield number("Queued jobs", "none", 'max(silkline_jobs{status="queued"})')
    yield number("Workers", "none", "max(silkline_workers_alive)")
    yield number("Queued URLs", "short", "max(silkline_urls_pending)", "Of running crawls.")
    yield number(
        "Error share", "percentunit", f"{failures} / clamp_min({requests}, 0.001)", "Page requests: 5xx or no answer."
    )
    yield chart("Settled URLs a second", "ops", (total("silkline_urls_settled_total", "state"), "{{state}}"))
    yield chart(
        "Page requests a second by status",
        "reqps",
        (total("silkline_requests_total", "status", purpose="page"), "{{status}}"),
    )
    yield chart("Received", "Bps", (total("silkline_received_bytes_total"), "bytes a second"))
    yield chart("Jobs by status", "none", ("max by (status) (silkline_jobs)", "{{status}}"))
    yield chart("Attempts by outcome", "ops", (total("silkline_attempts_total", "outcome"), "{{outcome}}"))
    yield chart(
        "Crashes and rescues in an hour",
        "none",
        (in_an_hour("silkline_crashes_total", "reason"), "crash: {{reason}}"),
        (in_an_hour("silkline_rescues_total"), "rescues"),
    )
    yield chart("Age of the oldest heartbeat", "s", ("max(silkline_heartbeat_age_seconds)", "of a running job"))
    yield chart("API: time to answer", "s", *quantiles("silkline_http_seconds"))
    yield chart("API: answers by status", "reqps", (total("silkline_http_answers_total", "status"), "{{status}}"))


def crawl() -> Iterator[dict[str, Any]]:
    yield chart(
        "Pages a second by fetcher",
        "ops",
        (total("silkline_fetcher_pages_total", "fetcher"), "{{fetcher}}"),
    )
    yield chart("Pages a second now", "ops", (gauge("silkline_pages_per_second", "fetcher"), "{{fetcher}}"))
    yield chart("Discovered URLs a second", "ops", (total("silkline_urls_discovered_total"), "discovered"))
    yield chart(
        "Where URLs are",
        "short",
        (gauge("silkline_in_flight"), "in flight"),
        (gauge("silkline_frontier_urls"), "in the frontiers"),
        (gauge("silkline_unsaved_pages"), "not saved yet"),
        (gauge("silkline_parser_queue_pages"), "at the parsers"),
        (gauge("silkline_link_batches_waiting", "between"), "links between {{between}}"),
    )
    yield chart("Results in memory", "bytes", (gauge("silkline_unsaved_bytes"), "not saved yet"))
    yield chart(
        "Back-pressure: share of time",
        "percentunit",
        (total("silkline_backpressure_seconds_total", "level"), "{{level}}"),
        says="How long fetchers were above a limit; 100 % is one fetcher. Soft: fewer requests start. Hard: none.",
    )
    yield chart(
        "Back-pressure: times in an hour",
        "none",
        (in_an_hour("silkline_backpressure_total", "level"), "{{level}}"),
        says="How often a fetcher reached a limit.",
    )
    yield chart("Time of a page request", "s", *quantiles("silkline_fetch_seconds"))
    yield chart("Time to parse a page", "s", *quantiles("silkline_parse_seconds", "role"))
    yield chart("Time of a checkpoint", "s", *quantiles("silkline_checkpoint_seconds"))
    yield chart("Time to render a page", "s", *quantiles("silkline_render_seconds"))
    yield chart(
        "Failed requests by reason",
        "reqps",
        (total("silkline_request_failures_total", "reason"), "{{reason}}"),
    )
    yield chart("Retries by reason", "ops", (total("silkline_retries_total", "reason"), "{{reason}}"))
    yield chart(
        "URLs not fetched",
        "ops",
        (total("silkline_robots_refusals_total"), "robots.txt"),
        (total("silkline_trap_urls_total"), "traps"),
    )
    hits = total("silkline_cache_lookups_total", "cache", answer="hit")
    lookups = total("silkline_cache_lookups_total", "cache")
    yield chart("Cache hits", "percentunit", (f"{hits} / {lookups}", "{{cache}}"))
    yield chart("Pages in browsers a second", "ops", (total("silkline_browser_pages_total", "outcome"), "{{outcome}}"))
    yield chart("Pages that wait for a browser", "none", (gauge("silkline_browser_waiting"), "waiting"))
    yield chart(
        "Browsers in an hour",
        "none",
        (in_an_hour("silkline_browser_starts_total"), "starts"),
        (in_an_hour("silkline_browser_deaths_total"), "deaths"),
    )


def machine() -> Iterator[dict[str, Any]]:
    by = "instance, role"
    yield chart("Processes", "none", (gauge("silkline_processes", by), "{{instance}} {{role}}"))
    yield chart(
        "Memory",
        "bytes",
        (gauge("silkline_process_resident_bytes", by), "{{instance}} {{role}}"),
        says="Resident, shared pages included.",
    )
    yield chart(
        "CPU",
        "none",
        (total("silkline_process_cpu_seconds_total", by), "{{instance}} {{role}}"),
        says="1 is one core.",
    )
    yield chart("Open files", "none", (gauge("silkline_process_open_files", by), "{{instance}} {{role}}"))
    yield chart(
        "Disk of the data directory",
        "bytes",
        (gauge("silkline_disk_free_bytes", "instance", how="min"), "{{instance}} free"),
        (gauge("silkline_disk_watermark_bytes", "instance", how="max"), "{{instance}} no job starts below"),
    )
    yield chart(
        "Processes that died and were replaced, in an hour",
        "none",
        (in_an_hour("silkline_process_deaths_total", "instance, role"), "{{instance}} {{role}}"),
    )
    yield chart(
        "Pages a second",
        "ops",
        (total("silkline_urls_settled_total", "instance", state="done"), "{{instance}}"),
    )
    yield chart(
        "Database time by statement",
        "percentunit",
        (f"topk(8, {total('silkline_database_seconds_total', 'statement')})", "{{statement}}"),
        says="1 is a connection that is always busy.",
    )
    yield chart(
        "Database statements a second",
        "ops",
        (f"topk(8, {total('silkline_database_statements_total', 'statement')})", "{{statement}}"),
    )
    yield chart("Scraped programs by version", "none", ("count by (version) (silkline_build_info)", "{{version}}"))


def queue() -> Iterator[dict[str, Any]]:
    yield number("Queued jobs", "none", 'max(silkline_jobs{status="queued"})')
    yield number("Running jobs", "none", 'max(silkline_jobs{status="running"})')
    yield number("Paused jobs", "none", 'max(silkline_jobs{status="paused"})')
    yield number("Workers", "none", "max(silkline_workers_alive)")
    yield number("Slots", "none", "max(silkline_worker_slots)")
    yield number("Longest wait", "s", "max(silkline_queue_oldest_seconds) or vector(0)")
    yield chart(
        "Jobs that may run now, by kind",
        "none",
        ("sum by (kind) (max by (kind, tenant) (silkline_queue_jobs))", "{{kind}}"),
    )
    yield chart(
        "Jobs that may run now, by tenant",
        "none",
        ("topk(10, sum by (tenant) (max by (kind, tenant) (silkline_queue_jobs)))", "{{tenant}}"),
    )
    yield chart("Longest wait by kind", "s", ("max by (kind) (silkline_queue_oldest_seconds)", "{{kind}}"))
    yield chart("Wait before a claim", "s", *quantiles("silkline_claim_seconds"))
    yield chart(
        "Jobs by kind and status", "none", ("max by (kind, status) (silkline_jobs_by_kind)", "{{kind}} {{status}}")
    )
    yield chart(
        "Attempts by kind and outcome",
        "ops",
        (total("silkline_attempts_total", "kind, outcome"), "{{kind}} {{outcome}}"),
    )
    yield chart("Results stored a second", "ops", (total("silkline_results_total"), "results"))
    yield chart("Checkpoints a second", "ops", (total("silkline_checkpoints_total"), "checkpoints"))
    yield chart("Rescues in an hour", "none", (in_an_hour("silkline_rescues_total"), "rescues"))


DASHBOARDS = {
    "overview": ("Silkline: overview", overview),
    "crawl": ("Silkline: inside crawls", crawl),
    "machine": ("Silkline: machines", machine),
    "queue": ("Silkline: queue", queue),
}


def dashboard(name: str) -> dict[str, Any]:
    title, panels = DASHBOARDS[name]
    instance = {
        "name": "instance",
        "label": "machine",
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": "label_values(silkline_build_info, instance)", "refId": "instance"},
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }
    return {
        "uid": f"silkline-{name}",
        "title": title,
        "tags": ["silkline"],
        "schemaVersion": 39,
        "editable": False,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [instance]},
        "links": [
            {"type": "dashboards", "title": "Silkline", "tags": ["silkline"], "includeVars": True, "keepTime": True}
        ],
        "panels": list(placed(panels())),
    }


def placed(panels: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The panels with their ids and places: from left to right, then the next row."""
    x = y = row = 0
    for number, each in enumerate(panels, 1):
        width, height = (STAT_WIDTH, STAT_HEIGHT) if each["type"] == "stat" else (WIDE, HEIGHT)
        if x + width > WIDTH or (row and height != row):
            x, y = 0, y + row
        yield {"id": number, "gridPos": {"x": x, "y": y, "w": width, "h": height}, **each}
        x, row = x + width, height


def texts() -> dict[str, str]:
    return {f"{name}.json": json.dumps(dashboard(name), indent=1, ensure_ascii=False) + "\n" for name in DASHBOARDS}


if __name__ == "__main__":
    for name, text in texts().items():
        (FOLDER / name).write_text(text)

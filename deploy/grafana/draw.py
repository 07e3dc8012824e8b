"""Draws the dashboards of this folder as one HTML page, without Grafana: `python deploy/grafana/draw.py URL > x.html`.

URL is the address of a Prometheus that scrapes Silkline. Each panel is drawn where Grafana would show it, as a chart in
SVG. The page needs no scripts and no network.
"""

import argparse
import json
import math
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
POINTS = 240  # on each chart
ORDER = ("overview", "crawl", "machine", "queue")
ROW = 24  # pixels of one row of Grafana's grid
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 560, 170, 64, 20, 8
COLOURS = ("#4c8bf5", "#e8710a", "#1e9e5a", "#d93025", "#9334e6", "#12a4af", "#b06000", "#e52592", "#7a8699", "#5f7d00")
MOST_LEGENDS = 10
STYLE = """
:root { color-scheme: light dark; --ink: #1d2330; --soft: #667; --line: #d8dbe2; --card: #fff; --page: #f2f4f7 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8ee; --soft: #9aa3b2; --line: #333a47; --card: #1b1f27; --page: #12151b } }
body { margin: 0; padding: 16px; font: 14px/1.4 system-ui, sans-serif; color: var(--ink); background: var(--page) }
h2 { margin: 28px 0 8px } .grid { display: grid; gap: 8px; grid-template-columns: repeat(24, 1fr) }
.panel { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: 8px 10px; min-width: 0 }
h3 { margin: 0; font-size: 14px } .says { margin: 0; color: var(--soft); font-size: 12px }
.number { font-size: 30px; font-weight: 600; margin: 10px 0 0 } .nothing { color: #d93025; margin: 24px 0 }
svg { display: block; width: 100%; height: auto } svg text { font-size: 11px; fill: var(--soft) }
svg .grid-line { stroke: var(--line) } svg polyline { fill: none; stroke-width: 1.6; stroke-linejoin: round }
ul { list-style: none; margin: 4px 0 0; padding: 0; display: flex; flex-wrap: wrap; gap: 2px 14px; font-size: 12px }
li { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; max-width: 100% }
li i { display: inline-block; width: 10px; height: 3px; vertical-align: middle; margin-right: 5px }
li b { font-weight: 500; color: var(--soft) }
@media (max-width: 900px) { .panel { grid-column: 1 / -1 !important; grid-row: auto !important } }
"""


@dataclass(frozen=True)
class Span:
    """The time that a page shows, in seconds since 1970, and the range of `rate` in place of $__rate_interval."""

    begin: float
    end: float
    rates_over: str

    @property
    def step(self) -> float:
        return max((self.end - self.begin) / POINTS, 1.0)


@dataclass(frozen=True)
class Line:
    """One series of a chart: its name, and its points as (time, value)."""

    name: str
    points: Sequence[tuple[float, float]]

    @property
    def last(self) -> float:
        return next((value for _, value in reversed(self.points) if not math.isnan(value)), math.nan)


def ask(prometheus: str, path: str, **parameters: Any) -> Any:
    with urllib.request.urlopen(f"{prometheus}{path}?{urllib.parse.urlencode(parameters)}", timeout=30) as answer:
        return json.load(answer)["data"]


def filled(expression: str, rates_over: str) -> str:
    """The expression as Grafana sends it with all machines chosen."""
    return expression.replace("$instance", ".*").replace("$__rate_interval", rates_over)


def lines_of(prometheus: str, target: dict[str, Any], span: Span) -> list[Line]:
    expression = filled(target["expr"], span.rates_over)
    times = {"start": span.begin, "end": span.end, "step": span.step}
    found = ask(prometheus, "/api/v1/query_range", query=expression, **times)["result"]
    lines = []
    for series in found:
        name = target["legendFormat"]
        for label in set(_labels(name)):
            name = name.replace(f"{{{{{label}}}}}", series["metric"].get(label) or "(none)")
        points = [(float(at), float(value)) for at, value in series["values"]]
        if any(not math.isnan(value) for _, value in points):
            lines.append(Line(name, points))
    return sorted(lines, key=lambda line: (-_or_zero(line.last), line.name))


def page(prometheus: str, span: Span) -> str:
    """The whole page."""
    when = f"{_clock(span.begin)} to {_clock(span.end)} UTC"
    parts = [section(json.loads((FOLDER / f"{name}.json").read_text()), prometheus, span) for name in ORDER]
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    return f"{head}<title>Silkline</title><style>{STYLE}</style><p class=says>{when}</p>{''.join(parts)}</html>\n"


def section(dashboard: dict[str, Any], prometheus: str, span: Span) -> str:
    cards = [card(panel, prometheus, span) for panel in dashboard["panels"]]
    style = f"grid-auto-rows: minmax({ROW}px, auto)"
    return f'<h2>{escape(dashboard["title"])}</h2><div class=grid style="{style}">{"".join(cards)}</div>'


def card(panel: dict[str, Any], prometheus: str, span: Span) -> str:
    place, unit = panel["gridPos"], panel["fieldConfig"]["defaults"]["unit"]
    lines = [line for target in panel["targets"] for line in lines_of(prometheus, target, span)]
    if not lines:
        shown = "<p class=nothing>No data</p>"
    elif panel["type"] == "stat":
        shown = f"<p class=number>{escape(in_unit(lines[0].last, unit))}</p>"
    else:
        shown = chart(lines, unit, span)
    says = f"<p class=says>{escape(panel['description'])}</p>" if panel["description"] else ""
    column = f"grid-column: {place['x'] + 1} / span {place['w']}"
    row = f"grid-row: {place['y'] + 1} / span {place['h']}"
    return f'<div class=panel style="{column}; {row}"><h3>{escape(panel["title"])}</h3>{says}{shown}</div>'


def chart(lines: Sequence[Line], unit: str, span: Span) -> str:
    values = [value for line in lines for _, value in line.points if math.isfinite(value)]
    top = rounded_up(max(values, default=0), unit)
    drawn = "".join(_drawn(lines, top, span))
    legends = [
        f'<li><i style="background: {COLOURS[number % len(COLOURS)]}"></i>'
        f"{escape(line.name)} <b>{escape(in_unit(line.last, unit))}</b></li>"
        for number, line in enumerate(lines[:MOST_LEGENDS])
    ]
    if len(lines) > MOST_LEGENDS:
        legends.append(f"<li>and {len(lines) - MOST_LEGENDS} more</li>")
    axis = "".join(_axis(top, unit, span))
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role=img>{axis}{drawn}</svg><ul>{"".join(legends)}</ul>'


def _axis(top: float, unit: str, span: Span) -> Iterator[str]:
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)
        yield f'<line class=grid-line x1="{LEFT}" x2="{WIDTH}" y1="{y:g}" y2="{y:g}"/>'
        if share in (0, 0.5, 1):
            yield f'<text x="{LEFT - 6}" y="{y + 4:g}" text-anchor=end>{escape(in_unit(share * top, unit))}</text>'
    for share, anchor in ((0, "start"), (0.5, "middle"), (1, "end")):
        x, at = LEFT + share * (WIDTH - LEFT), span.begin + share * (span.end - span.begin)
        yield f'<text x="{x:g}" y="{HEIGHT - 4}" text-anchor={anchor}>{_clock(at)}</text>'


def _drawn(lines: Sequence[Line], top: float, span: Span) -> Iterator[str]:
    """The lines, the first one on top of the others. A gap in the data is a gap in the line."""
    for number, line in reversed(list(enumerate(lines))):
        colour = COLOURS[number % len(COLOURS)]
        for part in _parts(line.points, 3 * span.step):
            places = [
                f"{LEFT + (at - span.begin) / (span.end - span.begin) * (WIDTH - LEFT):.1f},"
                f"{HEIGHT - BOTTOM - min(value / top, 1) * (HEIGHT - BOTTOM - TOP):.1f}"
                for at, value in part
            ]
            if len(places) == 1:
                x, _, y = places[0].partition(",")
                yield f'<circle cx="{x}" cy="{y}" r="1.5" fill="{colour}"/>'
            else:
                yield f'<polyline points="{" ".join(places)}" stroke="{colour}"/>'


def _parts(points: Iterable[tuple[float, float]], longest: float) -> Iterator[list[tuple[float, float]]]:
    part: list[tuple[float, float]] = []
    for at, value in points:
        if part and (not math.isfinite(value) or at - part[-1][0] > longest):
            yield part
            part = []
        if math.isfinite(value):
            part.append((at, value))
    if part:
        yield part


def rounded_up(value: float, unit: str) -> float:
    """A round number that is not below this one, for the top of an axis."""
    if value <= 0:
        return 1.0
    base = 1.0
    if unit in ("bytes", "Bps"):
        base = 1024.0 ** max(int(math.log(value, 1024)), 0)
    power = 10.0 ** math.floor(math.log10(value / base))
    steps = (base * power * factor for factor in (1, 2, 3, 4, 5, 6, 8, 10))
    return next(step for step in steps if step >= value * 0.9999)


def in_unit(value: float, unit: str) -> str:
    """A value as people read it, with a unit of Grafana."""
    if math.isnan(value):
        return "no value"
    match unit:
        case "percentunit":
            return f"{value * 100:.3g} %"
        case "bytes" | "Bps":
            return _scaled(value, 1024, ("B", "KiB", "MiB", "GiB", "TiB")) + ("/s" if unit == "Bps" else "")
        case "s" if 0 < value < 1:
            return f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} µs"
        case "s" if value >= 120:
            return f"{value / 60:.3g} min"
        case "s":
            return f"{value:.3g} s"
        case "ops" | "reqps":
            return _scaled(value, 1000, ("", "k", "M")) + "/s"
    return _scaled(value, 1000, ("", "k", "M", "G"))


def _scaled(value: float, by: int, units: Sequence[str]) -> str:
    number = 0
    while abs(value) >= by and number + 1 < len(units):
        value, number = value / by, number + 1
    return f"{value:.3g} {units[number]}".rstrip()


def _labels(legend: str) -> list[str]:
    return [part.partition("}}")[0] for part in legend.split("{{")[1:]]


def _or_zero(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.gmtime(at))


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the dashboards of Silkline as one HTML page, on stdout.")
    parser.add_argument(
        "prometheus", metavar="URL", help="the address of Prometheus, for example http://127.0.0.1:9090"
    )
    parser.add_argument("--minutes", type=float, default=60.0, help="the time that the charts show (default: 60)")
    given = parser.parse_args()
    now = time.time()
    span = Span(now - given.minutes * 60, now, rates_over="1m")
    sys.stdout.write(page(given.prometheus.rstrip("/"), span))


if __name__ == "__main__":
    main()

"""Draws the fleet with rich: in the alternate screen of a terminal, or once as plain text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from silkline.cli.terminal import duration, duration_of, safe, size
from silkline.store.fleet import FleetView, MachineView, RunningJobView

PLAIN_WIDTH = 120
WIDE = 100
GAP = 2
MOST_PROCESSES = 12  # of one job


class Screen:
    """The alternate screen. What was in the terminal before comes back at the end."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._live = Live(console=self._console, screen=True, auto_refresh=False, vertical_overflow="crop")
        self._seen: FleetView | None = None

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def show(self, seen: FleetView) -> None:
        self._seen = seen
        self._draw("q quits")

    def complain(self, problem: str) -> None:
        self._draw(f"{safe(problem)}; trying again · q quits")

    def _draw(self, footer: str) -> None:
        body = [drawn(self._seen, self._console.width)] if self._seen is not None else []
        self._live.update(Group(*body, Text(footer, style="dim")), refresh=True)


def print_once(seen: FleetView, stream: TextIO) -> None:
    """As plain text, without colours unless the stream is a terminal."""
    console = Console(file=stream, highlight=False)
    if not console.is_terminal:
        console = Console(file=stream, highlight=False, width=PLAIN_WIDTH, color_system=None)
    console.print(drawn(seen, console.width))


def drawn(seen: FleetView, width: int) -> RenderableType:
    """The whole fleet. A narrow terminal gets fewer columns."""
    parts: list[RenderableType] = [_totals(seen), Text()]
    if seen.machines:
        parts += [_machines(seen.machines, seen.at, width), Text()]
    else:
        parts += [Text("No worker is alive; start one with `silkline worker`.", style="yellow"), Text()]
    if seen.queue:
        parts += [_queue(seen, width), Text()]
    if seen.jobs:
        parts.append(_jobs(seen, width))
        if seen.running > len(seen.jobs):
            parts.append(Text(f"and {seen.running - len(seen.jobs):,} more running jobs", style="dim"))
    return Group(*parts)


def _totals(seen: FleetView) -> Text:
    due = sum(each.due for each in seen.queue)
    numbers = (
        (len(seen.machines), "machine", "machines"),
        (seen.running, "running job", "running jobs"),
        (due, "due job", "due jobs"),
        (seen.pending_urls, "pending URL", "pending URLs"),
    )
    text = Text("Silkline fleet", style="bold")
    for number, one, more in numbers:
        text.append("  ·  ", style="dim")
        text.append(f"{number:,} ", style="bold")
        text.append(one if number == 1 else more, style="not bold")
    text.append("  ·  ", style="dim")
    text.append(f"{seen.rate:,.1f} ", style="bold")
    text.append("pages a second", style="not bold")
    return text


def _table(head: Sequence[str], rows: Sequence[Sequence[Text]], room: int, right: Iterable[str] = ()) -> Table:
    """A table whose first column is cut if there is too little room."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, GAP, 0, 0))
    widths = [max(len(name), *(row[place].cell_len for row in rows)) for place, name in enumerate(head)]
    widths[0] = max(min(widths[0], room - sum(widths[1:]) - GAP * len(head)), len(head[0]))
    for name, width in zip(head, widths, strict=True):
        justify: JustifyMethod = "right" if name in right else "left"
        table.add_column(name, justify=justify, no_wrap=True, overflow="ellipsis", width=width)
    for row in rows:
        table.add_row(*row)
    return table


def _machines(machines: Sequence[MachineView], now: datetime, room: int) -> Table:
    rows = []
    for one in machines:
        load = Text(f"{one.load:.1f} on {one.cores} cores" if one.load is not None else "-")
        memory = Text(f"{size(one.memory_used or 0)} of {size(one.memory_total)}" if one.memory_total else "-")
        if room >= WIDE:
            load = _bar(one.load, one.cores).append_text(load)
            memory = _bar(one.memory_used, one.memory_total).append_text(memory)
        seen = Text(f"{duration(now - one.last_seen)} ago")
        jobs, state = Text(f"{one.jobs} of {one.slots}"), Text(safe(", ".join(one.states)))
        rows.append([Text(safe(one.host), style="bold"), load, memory, jobs, seen, state])
    return _table(("MACHINE", "LOAD", "MEMORY", "JOBS", "SEEN", "STATE"), rows, room)


def _bar(part: float | None, whole: float | None, width: int = 10) -> Text:
    """A bar of `width` characters."""
    if part is None or not whole:
        return Text()
    full = min(round(width * part / whole), width)
    style = "red" if part / whole > 0.9 else "green"
    return Text.assemble(("█" * full, style), ("░" * (width - full), "dim"), " ")


def _queue(seen: FleetView, room: int) -> Table:
    rows = []
    for each in seen.queue:
        oldest = duration_of(each.oldest_seconds) if each.oldest_seconds is not None else "-"
        rows.append([Text(safe(each.kind), style="bold"), *_texts(f"{each.due:,}", f"{each.later:,}", oldest)])
    head = ("QUEUE", "DUE", "LATER", "OLDEST WAITS")
    return _table(head, rows, room, head[1:])


def _jobs(seen: FleetView, room: int) -> Table:
    head = ("RUNNING JOB", "PAGES/S", "PAGES", "PENDING", "CPU", "MEMORY", "FILES")
    rows = [row for job in seen.jobs for row in _job(job, wide=room >= WIDE)]
    return _table(head, rows, room, head[1:])


def _job(job: RunningJobView, *, wide: bool) -> list[list[Text]]:
    """One row for the job, and one for each of its processes."""
    usage, cpus_limit, memory_limit = job.usage, "", ""
    if usage and wide:
        cpus_limit = f" of {usage.cpus_limit:g}" if usage.cpus_limit else ""
        memory_limit = f" of {size(usage.memory_limit)}" if usage.memory_limit else ""
    status = "" if job.status == "running" else f"{job.status} "
    numbers = _texts(
        f"{job.rate:.1f}" if job.rate is not None else "-",
        f"{job.pages:,}",
        f"{job.pending_urls:,}",
        f"{usage.cpus:.1f}{cpus_limit}" if usage else "-",
        f"{size(usage.memory)}{memory_limit}" if usage else "-",
        f"{usage.open_files:,}" if usage else "-",
    )
    shard = "" if job.shard is None else f"shard {job.shard} of "
    rows = [[Text.assemble((job.id[:13], "bold"), " ", (status, "yellow"), shard, safe(job.url or job.kind)), *numbers]]
    shown = usage.processes[:MOST_PROCESSES] if usage else []
    for each in shown:
        rate = f"{each.rate:.1f}" if each.rate is not None else ""
        used = (f"{each.cpus:.2f}", size(each.memory), f"{each.open_files:,}")
        rows.append(_texts(f"  {safe(each.role)} {each.pid}", rate, "", "", *used, style="dim"))
    if usage and usage.process_count > len(shown):
        rows.append(_texts(f"  and {usage.process_count - len(shown)} more", *[""] * 6, style="dim"))
    return rows


def _texts(*cells: str, style: str = "") -> list[Text]:
    return [Text(cell, style=style) for cell in cells]

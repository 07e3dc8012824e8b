"""How `silkline top` draws the fleet."""

import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from silkline.cli.fleet_screen import PLAIN_WIDTH, drawn, print_once
from silkline.store.fleet import FleetView, MachineView, QueueView, RunningJobView
from silkline.store.usage_view import ProcessView, UsageView

NOW = datetime(2030, 1, 1, tzinfo=UTC)
MACHINE = MachineView("alpha", 8, 1.5, 16_000_000_000, 4_000_000_000, 1, 4, ["w1"], ["running"], NOW)
SILENT = MachineView("beta", None, None, None, None, 0, 2, ["w2"], ["draining"], NOW - timedelta(seconds=70))
PROCESSES = [
    ProcessView(100 + number, role, 50_000_000, 20, 0.25, rate)
    for number, (role, rate) in enumerate([("leader", 3.5), ("fetcher", 4.5), *[("reader", None)] * 20])
]
USAGE = UsageView(0.75, 2.0, "cgroup", 300_000_000, 4_000_000_000, 60, len(PROCESSES), PROCESSES)
JOB = RunningJobView(
    "019a8f6e-5dc2-7340-86fe-b900fe2551e3",
    *("site", None, "https://example.com/\x1b[2J" + "long/" * 50, "stopping", "alpha", "w1"),
    *(1, NOW, 1_234, 5, 678, 8.0, USAGE),
)
QUEUE = [QueueView("page", 3, 1, 125.0), QueueView("map", 0, 2, None)]
FLEET = FleetView(NOW, [MACHINE, SILENT], QUEUE, 3, 678, 8.0, [JOB])


def printed(seen: FleetView) -> list[str]:
    stream = io.StringIO()
    print_once(seen, stream)
    return [" ".join(line.split()) for line in stream.getvalue().splitlines()]


def test_everything_is_there() -> None:
    lines = printed(FLEET)
    assert lines[0] == (
        "Silkline fleet · 2 machines · 3 running jobs · 3 due jobs · 678 pending URLs · 8.0 pages a second"
    )
    alpha = next(line for line in lines if line.startswith("alpha"))
    assert "1.5 on 8 cores" in alpha
    assert "4.0 GB of 16.0 GB" in alpha
    assert alpha.endswith("1 of 4 0s ago running")
    assert "beta - - 0 of 2 1m ago draining" in lines
    assert "page 3 1 2m" in lines
    assert "map 0 2 -" in lines
    shard = next(line for line in printed(replace(FLEET, jobs=[replace(JOB, shard=4)])) if line.startswith("019a8f6e"))
    assert "stopping shard 4 of https" in shard
    job = next(line for line in lines if line.startswith("019a8f6e-5dc2"))
    assert "stopping https://example.com/\\x1b[2J" in job
    assert job.endswith("8.0 1,234 678 0.8 of 2 300.0 MB of 4.0 GB 60")
    assert "leader 100 3.5 0.25 50.0 MB 20" in lines
    assert "reader 102 0.25 50.0 MB 20" in lines
    assert "and 10 more" in lines, "processes"
    assert "and 2 more running jobs" in lines


def test_plain_text_has_no_escapes_and_fits() -> None:
    stream = io.StringIO()
    print_once(FLEET, stream)
    assert "\x1b" not in stream.getvalue()
    assert max(map(len, stream.getvalue().splitlines())) <= PLAIN_WIDTH


def test_an_empty_fleet_says_what_to_do() -> None:
    lines = printed(FleetView(NOW, [], [], 0, 0, 0.0, []))
    assert lines[0].startswith("Silkline fleet · 0 machines · 0 running jobs")
    assert "No worker is alive; start one with `silkline worker`." in lines


@pytest.mark.parametrize("width", [80, 100, 200])
def test_no_number_is_cut(width: int) -> None:
    stream = io.StringIO()
    Console(file=stream, width=width, color_system=None, highlight=False).print(drawn(FLEET, width))
    job = next(line for line in stream.getvalue().splitlines() if line.startswith("019a8f6e"))
    assert "1,234" in job
    assert job.rstrip().endswith("60")

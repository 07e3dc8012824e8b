"""Metrics are counted in files that survive the process, and every family is in the table."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from silkline.crawl.fetcher_gauges import BackPressure
from silkline.metrics import families, instruments, machine, process
from silkline.metrics.exposition import exposition
from silkline.metrics.family import Source, Type
from silkline.metrics.gather import Gathered, gather
from silkline.metrics.instruments import (
    BACKPRESSURE,
    FETCH_SECONDS,
    IN_FLIGHT,
    PARSE_SECONDS,
    REQUESTS,
    ROBOTS_REFUSALS,
    crash_label,
    reason_label,
)
from silkline.metrics.meter import CELLS, OVERFLOW, Meter, claim, stored
from silkline.model.reasons import MEANINGS


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    """A data directory. Afterwards this process counts in memory again."""
    process.detach()
    yield tmp_path
    process.detach()


def in_a_killed_process(data: Path, role: str, work: Callable[[], None]) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            process.attach(data, role)
            work()
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)


def numbers(data: Path, name: str) -> dict[tuple[str, ...], float]:
    return dict(gather(data / process.FOLDER).numbers[name])


REFUSALS, FLIGHT = ROBOTS_REFUSALS.family.name, IN_FLIGHT.family.name


def test_counts_outlive_killed_processes_and_the_next_one_continues(data: Path) -> None:
    for _ in range(3):
        in_a_killed_process(data, "fetcher", lambda: ROBOTS_REFUSALS.add(7))
    assert numbers(data, REFUSALS) == {(): 21.0}
    assert [path.name for path in (data / process.FOLDER).iterdir()] == ["fetcher-0"]


def test_living_processes_never_share_a_meter(data: Path) -> None:
    process.attach(data, "fetcher")
    ROBOTS_REFUSALS.add(1)
    in_a_killed_process(data, "fetcher", lambda: ROBOTS_REFUSALS.add(10))
    in_a_killed_process(data, "parser", lambda: ROBOTS_REFUSALS.add(100))
    assert numbers(data, REFUSALS) == {(): 111.0}
    assert {path.name for path in (data / process.FOLDER).iterdir()} == {"fetcher-0", "fetcher-1", "parser-0"}


def test_a_forked_process_does_not_count_in_the_meter_of_its_parent(data: Path) -> None:
    process.attach(data, "supervisor")
    ROBOTS_REFUSALS.add(2)
    pid = os.fork()
    if pid == 0:
        ROBOTS_REFUSALS.add(1000)
        os._exit(process.meter_id() is not None)
    assert os.waitpid(pid, 0)[1] == 0
    assert numbers(data, REFUSALS) == {(): 2.0}
    assert gather(data / process.FOLDER).alive == {os.getpid(): "supervisor"}


def test_what_was_counted_before_there_was_a_meter_is_not_lost(data: Path) -> None:
    ROBOTS_REFUSALS.add(4)
    PARSE_SECONDS.observe(0.2, "runner")
    process.attach(data, "runner")
    ROBOTS_REFUSALS.add(1)
    gathered = gather(data / process.FOLDER)
    assert gathered.numbers[REFUSALS] == {(): 5.0}
    assert sum(gathered.distributions[PARSE_SECONDS.family.name]["runner",].counts) == 1


def test_gauges_of_dead_processes_do_not_count(data: Path) -> None:
    in_a_killed_process(data, "fetcher", lambda: IN_FLIGHT.set(50))
    assert numbers(data, FLIGHT) == {}
    process.attach(data, "fetcher")
    assert numbers(data, FLIGHT) == {(): 0.0}, "the next process starts from zero"
    IN_FLIGHT.set(3)
    assert numbers(data, FLIGHT) == {(): 3.0}


def test_a_child_counts_in_the_meter_that_its_parent_took(data: Path) -> None:
    process.attach(data, "runner")
    meter = process.claim_for_child("parser")
    assert meter is not None
    assert meter.descriptor is not None
    descriptor, name = os.dup(meter.descriptor), meter.name
    pid = os.fork()
    if pid == 0:
        process.inherit(descriptor, name)
        ROBOTS_REFUSALS.add(5)
        os.kill(os.getpid(), signal.SIGKILL)
    meter.close()
    os.close(descriptor)
    os.waitpid(pid, 0)
    assert numbers(data, REFUSALS)[()] == 5.0
    assert gather(data / process.FOLDER).alive == {os.getpid(): "runner"}


def test_no_count_is_lost_between_threads(data: Path) -> None:
    process.attach(data, "api")
    work = [threading.Thread(target=lambda: [REQUESTS.add(1, "page", "2xx") for _ in range(5000)]) for _ in range(4)]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert numbers(data, REQUESTS.family.name) == {("page", "2xx"): 20_000.0}


def test_a_data_directory_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    process.detach()
    (tmp_path / "file").write_text("")
    process.attach(tmp_path / "file", "runner")
    ROBOTS_REFUSALS.add()
    assert process.meter_id() is None


def test_a_command_that_commits_nothing_makes_no_file(data: Path) -> None:
    process.attach_later(data, "command")
    ROBOTS_REFUSALS.add()
    assert not (data / process.FOLDER).exists()
    assert process.meter_id() is not None
    assert numbers(data, REFUSALS) == {(): 1.0}


def test_a_full_meter_drops_new_names_and_keeps_the_others(tmp_path: Path) -> None:
    meter = claim(tmp_path, "api")
    first = meter.cell("first")
    meter.values[first] = 1.0
    assert {meter.cell(f"key {number}") for number in range(CELLS)} >= {OVERFLOW, CELLS - 1}
    assert meter.cell("x" * 500) == OVERFLOW
    assert dict(meter.items())["first"] == 1.0
    meter.close()
    again = claim(tmp_path, "api")
    assert (again.name, dict(again.items())["first"]) == ("api-0", 1.0)
    again.close()


def test_files_that_are_no_meters_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "fetcher-0").write_bytes(b"")
    (tmp_path / "fetcher-1").write_bytes(b"nonsense" * 100_000)
    assert list(stored(tmp_path)) == []
    meter = claim(tmp_path, "fetcher")
    assert meter.name == "fetcher-0"
    other = claim(tmp_path, "fetcher")
    assert (other.name, list(other.items())) == ("fetcher-1", [])
    meter.close()
    other.close()


def test_a_process_that_was_taken_over_cannot_break_the_metrics_of_others(data: Path) -> None:
    """A parser can write anything into its meter, and cut it."""
    process.attach(data, "api")
    ROBOTS_REFUSALS.add(2)
    forged = claim(data / process.FOLDER, "parser")
    for number, key in enumerate((f"{REQUESTS.family.name}\x1fpage", REFUSALS + "\x1fx\x1fy", "\x1f\n", "no family")):
        forged.values[forged.cell(key)] = float(number)
    forged.values[forged.cell("\x1f".join((REQUESTS.family.name, 'a"\n} 1', "2xx")))] = float("nan")
    text = exposition(gather(data / process.FOLDER))
    assert "silkline_robots_refusals_total 2.0" in text.splitlines()
    assert len(list(text_string_to_metric_families(text))) == len(families.ALL)
    os.ftruncate(forged.descriptor or -1, 100)
    assert numbers(data, REFUSALS) == {(): 2.0}
    path = data / process.FOLDER / "parser-0"
    path.write_bytes(path.read_bytes()[:8] + b"\xff" * 5000)
    assert numbers(data, REFUSALS) == {(): 2.0}


def test_a_label_that_is_missing_is_an_error() -> None:
    with pytest.raises(TypeError, match="has the labels"):
        REQUESTS.add(1, "page")
    with pytest.raises(TypeError, match="has the labels"):
        FETCH_SECONDS.observe(1.0, "page")


# The text.


def test_the_text_is_what_prometheus_reads(data: Path) -> None:
    process.attach(data, "fetcher")
    for seconds in (0.001, 0.005, 0.3, 99.0):
        FETCH_SECONDS.observe(seconds)
    gathered = gather(data / process.FOLDER)
    gathered.set("silkline_queue_jobs", 3, "page", 'a "tenant"\\\n')
    read = {family.name: family for family in text_string_to_metric_families(exposition(gathered))}
    assert {re.sub("_total$", "", family.name) for family in families.ALL} == set(read)
    histogram = {
        (sample.name, sample.labels.get("le")): sample.value for sample in read["silkline_fetch_seconds"].samples
    }
    assert histogram["silkline_fetch_seconds_bucket", "0.005"] == 2
    assert histogram["silkline_fetch_seconds_bucket", "60"] == 3
    assert histogram["silkline_fetch_seconds_bucket", "+Inf"] == histogram["silkline_fetch_seconds_count", None] == 4
    assert histogram["silkline_fetch_seconds_sum", None] == pytest.approx(99.306)
    [queue] = read["silkline_queue_jobs"].samples
    assert (queue.labels, queue.value) == ({"kind": "page", "tenant": 'a "tenant"\\\n'}, 3.0)


def test_no_label_contains_a_control_character() -> None:
    """A terminal would obey it. Prometheus refuses an answer with two lines for the same labels."""
    gathered = Gathered()
    for number, tenant in enumerate(["a\x1b[2J", "a\x07[2J", "a\x9b[2J", "a\u202e[2J", "b\r\n"], 1):
        gathered.set("silkline_queue_jobs", number, "page", tenant)
    text = exposition(gathered)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    read = {family.name: family for family in text_string_to_metric_families(text)}
    queue = {sample.labels["tenant"]: sample.value for sample in read["silkline_queue_jobs"].samples}
    assert queue == {"a\ufffd[2J": 10.0, "b\ufffd\n": 5.0}
    assert text.count("silkline_queue_jobs{") == 2


def test_families_of_processes_have_values_before_the_first_event() -> None:
    shown = {family.name: family.samples for family in text_string_to_metric_families(exposition(Gathered()))}
    assert [sample.value for sample in shown["silkline_rescues"]] == [0.0]
    assert {sample.labels["level"]: sample.value for sample in shown["silkline_backpressure"]} == {"soft": 0, "hard": 0}
    assert [sample.value for sample in shown["silkline_in_flight"]] == [0.0]
    assert shown["silkline_jobs"] == [], "nothing is known about the database"


# The table.


def test_every_family_that_processes_count_has_one_instrument() -> None:
    made = [
        each
        for each in vars(instruments).values()
        if isinstance(each, process.Counter | process.Gauge | process.Histogram)
    ]
    wanted = [family for family in families.ALL if family.source is Source.PROCESSES]
    assert sorted(each.family.name for each in made) == sorted(family.name for family in wanted)
    types = {Type.COUNTER: process.Counter, Type.GAUGE: process.Gauge, Type.HISTOGRAM: process.Histogram}
    assert all(isinstance(each, types[each.family.type]) for each in made)


def test_names_follow_the_conventions_of_prometheus() -> None:
    assert len(families.BY_NAME) == len(families.ALL)
    for family in families.ALL:
        assert re.fullmatch(r"silkline_[a-z][a-z_]*", family.name)
        assert (family.type is Type.COUNTER) == family.name.endswith("_total")
        assert bool(family.buckets) == (family.type is Type.HISTOGRAM)
        assert family.help.endswith(".")
        assert list(family.buckets) == sorted(set(family.buckets))
        assert all(len(labels) == len(family.labels) for labels in family.always)


def test_no_label_has_an_unlimited_number_of_values() -> None:
    labels = {name for family in families.ALL for name in family.label_names}
    assert labels.isdisjoint({"url", "host", "job", "job_id", "id", "path", "address", "pid"})


def test_the_six_families_of_before_keep_their_names() -> None:
    before = {"silkline_jobs", "silkline_urls_pending", "silkline_workers_alive", "silkline_worker_slots"}
    assert families.BY_NAME.keys() >= before | {"silkline_http_seconds", "silkline_http_answers_total"}


@pytest.mark.parametrize(
    ("reason", "label"),
    [
        *((reason, reason) for reason in ("timeout", "robots", "dns_failed")),
        *(("http_404", "http_4xx"), ("http_503", "http_5xx"), ("http_999", "other"), ("http_4040", "other")),
        *(("of a plug-in", "other"), ("", "other"), (None, "other")),
    ],
)
def test_reasons_become_a_limited_number_of_labels(reason: str | None, label: str) -> None:
    assert reason_label(reason) == label
    assert label in {*MEANINGS, "http_4xx", "http_5xx", "other"}


@pytest.mark.parametrize(
    ("reason", "label"),
    [
        *(("crashed (signal 9)", "signal_9"), ("crashed (exit 3)", "exit"), ("crashed (ValueError)", "exception")),
        *(("memory", "memory"), ("supervisor lost", "supervisor_lost"), ("https://example.com/", "other")),
    ],
)
def test_crashes_become_a_limited_number_of_labels(reason: str, label: str) -> None:
    assert crash_label(reason) == label


# What is measured.


def test_back_pressure_is_counted_when_it_begins_and_for_as_long_as_it_lasts(data: Path) -> None:
    process.attach(data, "fetcher")
    pressure = BackPressure()
    for now, value, full in (
        *((0.0, -1.0, False), (1.0, 0.5, False), (3.0, 0.7, False), (4.0, 1.2, False), (6.0, -0.1, True)),
        *((7.0, 0.1, False), (7.5, -0.5, False), (9.0, -0.5, False)),
    ):
        pressure.note(value, full, now)
    assert numbers(data, BACKPRESSURE.family.name) == {("soft",): 2, ("hard",): 1}
    assert numbers(data, "silkline_backpressure_seconds_total") == {("soft",): 3.5, ("hard",): 3.0}


def test_processes_without_a_meter_belong_to_the_process_that_started_them(data: Path) -> None:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    os.close(reading)
    try:
        roles = machine.roles({os.getpid(): "runner", 1 << 22: "fetcher"})
        assert roles[os.getpid()] == "runner"
        assert roles[pid] == "other"
        assert 1 << 22 not in roles, "it is dead"
        gathered = Gathered(alive={os.getpid(): "runner"})
        machine.look_at_machine(gathered, data, 1000)
        assert gathered.numbers["silkline_processes"]["runner",] == 1
        assert gathered.numbers["silkline_process_resident_bytes"]["runner",] > 1 << 20
        assert gathered.numbers["silkline_process_open_files"]["runner",] >= 3
        assert gathered.numbers["silkline_disk_free_bytes"][()] > 0
    finally:
        os.close(writing)
        os.waitpid(pid, 0)


def test_a_meter_in_memory_needs_no_file() -> None:
    meter = Meter()
    meter.values[meter.cell("x")] += 2.0
    assert dict(meter.items()) == {"x": 2.0}
    meter.close()

"""One schema for every log: stderr and log files with --log-format json, `silkline logs --json`, and the API."""

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from silkline import log
from silkline.sample.server import SampleServer
from tests.acceptance.conftest import PATIENCE, Silkline
from tests.support.served import Served

JSON_LOG = ("--log-format", "json", "--log-level", "info")
# What every line has, and what a line of the log of a job has besides.
ALWAYS = {"at", "level", "logger", "message"}
OF_JOBS = {*ALWAYS, "job", "attempt", "worker"}
ORDER = list(log.FIELDS)


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def check(lines: Iterable[Mapping[str, Any]], *, has: set[str], lacks: set[str]) -> None:
    """Only documented fields, in the documented order and types."""
    for line in lines:
        assert list(line) == [name for name in ORDER if name in line]
        assert has <= line.keys()
        assert not lacks & line.keys()
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", line["at"])
        assert line["level"] in ("debug", "info", "warning", "error", "critical")
        assert isinstance(line.get("data") or {}, dict)
        assert (line.get("event") or "summary") in log.EVENTS


def test_every_log_has_the_same_fields(on_both: Silkline, tmp_path: Path) -> None:
    with SampleServer() as site:
        crawled = on_both("crawl", site.url, "--limit", "4", "--speed", "max", *JSON_LOG)
    assert crawled.code == 0, crawled
    on_stderr = objects(crawled.err)
    check(on_stderr, has={*ALWAYS, "pid"}, lacks={"id"})
    job = next(line["job"] for line in on_stderr if "job" in line)

    in_file = objects((on_both.folder / "data" / "logs" / f"{job}.log").read_text())
    check(in_file, has=OF_JOBS, lacks={"id", "pid"})
    stored = objects(on_both("logs", job, "--json").out)
    check(stored, has={*OF_JOBS, "id"}, lacks={"pid"})
    assert [line["id"] for line in stored] == sorted({line["id"] for line in stored})
    assert {line["logger"] for line in [*in_file, *stored]} == {"silkline.job"}
    (summary,) = [line for line in stored if line.get("event") == "summary"]
    assert summary["data"]["done"] == 4

    database = on_both.database_url
    with closing(Served(database, tmp_path / "served", "--port", "0", "--slots", "0", *JSON_LOG)) as server:
        client = server.ready()
        answered = client.get(f"/v1/jobs/{job}/logs?limit=1000").json["items"]
        (events,) = [data["lines"] for _, name, data in client.events(f"/v1/jobs/{job}/events") if name == "logs"]
        check(objects(server.log), has={*ALWAYS, "pid"}, lacks={"id"})
    check(answered, has={*OF_JOBS, "id", "shard", "event", "data"}, lacks={"pid"})
    assert answered == events

    # The same lines everywhere. The API has all fields, and null for those without a value.
    assert [without(line, "id") for line in stored] == in_file
    assert [without(log.with_values(line), "at") for line in answered] == [without(line, "at") for line in stored]


def test_a_worker_logs_with_these_fields(silkline: Silkline) -> None:
    worker = silkline.start("worker", "--slots", "1", *JSON_LOG)
    assert worker.stderr is not None
    first = worker.stderr.readline()
    worker.terminate()
    rest = worker.communicate(timeout=PATIENCE)[1]
    lines = objects((first + rest).decode())
    check(lines, has={*ALWAYS, "pid"}, lacks={"id", "job"})


def test_a_command_that_runs_a_job_itself_names_the_job(silkline: Silkline) -> None:
    with SampleServer() as site:
        fetched = silkline(site.url, *JSON_LOG)
    assert fetched.code == 0, fetched
    lines = objects(fetched.err)
    check(lines, has={*OF_JOBS, "pid"}, lacks={"id"})
    assert len({line["job"] for line in lines}) == 1


def without(line: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key != name}

"""Measures how soon a command for a crawl in shards reaches all of them, on two workers with the default settings.

    make bench BENCH=shard_verbs ARGS="--shards 6 --rounds 3"

A crawl of a web whose pages take a second is paused, resumed, stopped, retried and cancelled. The time is from the
command until all shards have the status, or run again on a worker. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from silkline.config import load
from silkline.model.job import NewJob, Status, Verb
from silkline.store import jobs, shards
from tests.crawl.harness import SyntheticWeb
from tests.support.postgres import PostgresServer
from tests.support.supervisors import QUICK, Yard, eventually, yard

STEPS = (
    (Verb.PAUSE, Status.PAUSED),
    (Verb.RESUME, Status.RUNNING),
    (Verb.STOP, Status.STOPPED),
    (Verb.RETRY, Status.RUNNING),
    (Verb.CANCEL, Status.CANCELLED),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    defaults = load().settings
    settings: dict[str, Any] = {name: getattr(defaults, name) for name in QUICK if name != "test_kinds"}
    settings |= {"slots": asked.shards, "disk_free_min": 0}
    seconds: dict[Verb, list[float]] = {verb: [] for verb, _ in STEPS}
    server = PostgresServer()
    try:
        with (
            closing(SyntheticWeb(40, 50, latency=1.0)) as web,
            tempfile.TemporaryDirectory() as folder,
            yard(server.create_database(), Path(folder)) as place,
        ):
            for name in ("one", "two"):
                place.ready(place.start(name, **settings))
            for _ in range(asked.rounds):
                _round(place, web.start, asked.shards, seconds)
    finally:
        server.remove()
    print("| command | median s | worst s |\n|---|---|---|")
    for verb, several in seconds.items():
        print(f"| {verb} | {sorted(several)[len(several) // 2]:.2f} | {max(several):.2f} |")


def _round(place: Yard, url: str, number: int, seconds: dict[Verb, list[float]]) -> None:
    payload = {"url": url, "scope": "any", "speed": "max", "content": "none", "shards": number}
    new = NewJob("site", {**payload, "allow_private": ["127.0.0.0/8"]}, request_url=url)
    id = jobs.enqueue(place.database, new)[0].id
    _wait_for_all(place, id, Status.RUNNING, number)
    place.wait_for_results(id, 2 * number)
    for verb, status in STEPS:
        began = time.perf_counter()
        jobs.wish(place.database, id, verb)
        _wait_for_all(place, id, status, number)
        seconds[verb].append(time.perf_counter() - began)


def _wait_for_all(place: Yard, id: str, status: Status, number: int) -> None:
    def reached() -> bool:
        several = [place.job(id), *shards.of(place.database, id)]
        return len(several) == number + 1 and all(each.status is status for each in several)

    eventually(f"all shards are {status}", reached)


if __name__ == "__main__":
    main()

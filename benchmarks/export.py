"""Exports 200,000 results in every format, each in its own process: seconds, results per second, peak memory.

python -m benchmarks.export [RESULTS] [CHARACTERS]
"""

from __future__ import annotations

import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from silkline.export.open import FORMATS, to_path
from silkline.export.rows import Filter, stream
from silkline.model.database import Database
from silkline.model.job import NewJob
from silkline.model.ledger import DONE, Checkpoint, NewResult, NewUrl
from silkline.model.url import url_key
from silkline.store import jobs, urls
from silkline.store.opening import open_database

CHUNK = 2_000


def main(number: int = 200_000, characters: int = 3_000) -> None:
    folder = Path(tempfile.mkdtemp(prefix="silkline-export-"))
    try:
        url = f"sqlite:///{folder / 'export.db'}"
        job_id = _fill(open_database(url), number, characters)
        size = (folder / "export.db").stat().st_size >> 20
        print(f"{number:,} results of {characters:,} characters, {size:,} MB of database")
        print(f"{'form':<8} {'seconds':>8} {'results/s':>10} {'peak MB':>8} {'output MB':>10}")
        for form in FORMATS[:-1]:  # a WARC file is copied, not written from results
            command = [
                sys.executable,
                "-m",
                "benchmarks.export",
                "--one",
                form,
                url,
                job_id,
                str(folder / f"out-{form}"),
            ]
            told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            rate = told["results"] / told["seconds"]
            print(f"{form:<8} {told['seconds']:>8.1f} {rate:>10,.0f} {told['memory']:>8.0f} {told['size']:>10.0f}")
    finally:
        shutil.rmtree(folder)


def _fill(database: Database, number: int, characters: int) -> str:
    chance = random.Random(7)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 9))) for _ in range(5_000)]
    text = " ".join(chance.choices(words, k=characters))
    job, _ = jobs.enqueue(database, NewJob("site", {"url": "https://example.com/"}))
    job = jobs.claim_one(database, "benchmark", "here", job.id)
    for first in range(1, number + 1, CHUNK):
        ids = range(first, min(first + CHUNK, number + 1))
        found = [(id, f"https://example.com/section-{id % 100}/page-{id}") for id in ids]
        rows = [NewUrl(id, url_key(url), url, "example.com", 1, DONE) for id, url in found]
        pages = [
            NewResult(
                id, url, url_key(url), url, url_key(url), _data(id, text, characters), True, '{"http_status":200}'
            )
            for id, url in found
        ]
        urls.record(database, job, Checkpoint(found=rows, results=pages))
    database.close()
    return job.id


def _data(id: int, text: str, characters: int) -> str:
    start = id * 37 % (len(text) - characters)
    return json.dumps({"title": f"Page {id}", "markdown": f"# Page {id}\n\n{text[start : start + characters]}"})


def _one(form: str, url: str, job_id: str, output: str) -> None:
    database = open_database(url)
    began, number = time.perf_counter(), 0
    with to_path(form, Path(output)) as writer:
        for result in stream(database, job_id, Filter()):
            writer.write(result)
            number += 1
    seconds = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    files = [Path(output)] if Path(output).is_file() else [file for file in Path(output).rglob("*") if file.is_file()]
    size = sum(file.stat().st_size for file in files) / 1e6
    print(json.dumps({"results": number, "seconds": seconds, "memory": memory, "size": size}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        _one(*sys.argv[2:])
    else:
        main(*map(int, sys.argv[1:]))

"""Makes tests/data/upgrade/revision-N.json: the rows that an older Silkline stored, with a crawl that it paused.

    git archive COMMIT | tar -x -C FOLDER
    python -m tests.support.make_older_database FOLDER

The older Silkline itself stores the rows: it fetches one page of its sample site, crawls the site, and is interrupted.
This program only reads them. The tests load them with the migrations of that revision, on both databases.
"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parents[1] / "data" / "upgrade"
PORT = 28_765
STORED = 8  # pages, before the crawl is interrupted
# What a machine keeps for itself, and what SQLite keeps for itself.
LEFT_OUT = {"silkline_schema", "workers", "job_logs", "sqlite_sequence"}


def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        data = Path(temporary)
        environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "SILKLINE_DATA": str(data)}
        silkline = [sys.executable, "-m", "silkline"]
        site = subprocess.Popen([*silkline, "demo", "--serve", "--port", str(PORT)], env=environment)
        try:
            url = f"http://127.0.0.1:{PORT}/"
            fetch = [*silkline, "fetch", f"{url}about/keepers"]
            while subprocess.run(fetch, env=environment, stdout=subprocess.DEVNULL, check=False).returncode:
                time.sleep(1)  # the site has not started yet
            crawl = subprocess.Popen([*silkline, "crawl", url, "--delay", "500ms", "--fetchers", "1"], env=environment)
            while stored(data) <= STORED:
                time.sleep(0.1)
            crawl.send_signal(signal.SIGINT)
            crawl.wait()
        finally:
            site.kill()
            site.wait()
        write(rows(data))


def stored(data: Path) -> int:
    with sqlite3.connect(f"file:{data / 'silkline.db'}?mode=ro", uri=True) as database:
        number: int = database.execute("SELECT count(*) FROM crawl_results").fetchone()[0]
        return number


def rows(data: Path) -> dict[str, Any]:
    """The revision of the schema, and the rows of each table."""
    found: dict[str, Any] = {}
    with sqlite3.connect(data / "silkline.db") as database:
        database.row_factory = sqlite3.Row
        (found["revision"],) = database.execute("SELECT max(revision) FROM silkline_schema").fetchone()
        tables = [
            name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")
        ]
        for table in sorted(set(tables) - LEFT_OUT):
            found[table] = [dict(row) for row in database.execute(f"SELECT * FROM {table}")]
    return {name: value for name, value in found.items() if value}


def write(found: dict[str, Any]) -> None:
    DATA.mkdir(parents=True, exist_ok=True)
    text = json.dumps(found, indent=1, ensure_ascii=False, default=lambda blob: {"hex": blob.hex()})
    (DATA / f"revision-{found['revision']}.json").write_text(text + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""A person crawls a site at the command line, presses Ctrl-C, goes on, asks why, and takes the results away."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from silkline.cli.seeds import CHUNK
from silkline.model.database import Database
from silkline.model.job import Job
from silkline.model.ledger import Checkpoint, NewResult, NewUrl, Settled
from silkline.store import jobs, urls
from tests.acceptance.conftest import PATIENCE, Silkline

FAST = ("--speed", "max", "--ignore-robots")


class Web:
    """A site without end on loopback: page n leads to page n + 1 and to one that is missing."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.reached = {number: threading.Event() for number in range(50)}
        self.last = 1_000_000  # pages after this one are answered when the gate opens
        self.gate = threading.Event()
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                web.asked.append(self.path)
                name = self.path.strip("/") or "0"
                if not name.isdigit():
                    self.send_error(404)
                    return
                number = int(name)
                if number > web.last:
                    web.gate.wait(PATIENCE)
                body = f"<title>Page {number}</title><h1>Page {number}</h1><p>Words, words.</p>"
                body += f"<a href=/{number + 1}>on</a> <a href=/missing-{number}>gone</a>"
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())
                if number in web.reached:
                    web.reached[number].set()

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def web() -> Iterator[Web]:
    web = Web()
    yield web
    web.gate.set()
    web.server.shutdown()
    web.server.server_close()


@pytest.mark.both_databases
def test_crawl_explain_results(on_both: Silkline, web: Web) -> None:
    done = on_both("crawl", web.host, "--depth", "3", *FAST)
    assert done.code == 0, done
    assert done.out == ""
    assert "is completed:" in done.err
    assert "3 http_404" in done.err

    shown = on_both("jobs", "show", "last", "--json").json
    counts = shown["progress"]
    assert (counts["done"], counts["failed"], shown["results"]) == (4, 3, 4)
    assert counts["discovered"] == sum(
        counts[of] for of in ("queued", "in_flight", "done", "unchanged", "failed", "skipped")
    )

    story = on_both("explain", "last", f"{web.host}/missing-1").out
    assert "failed, it could not be fetched: http_404" in story
    assert f"as a link on http://{web.host}/1" in story
    on_both("explain", "last", f"{web.host}/never").refused(5, "/never is not in the ledger of job")

    lines = [json.loads(line) for line in on_both("results", "last").out.splitlines()]
    assert [line["final_url"] for line in lines] == [f"http://{web.host}/{path}" for path in ("", "1", "2", "3")]
    assert lines[1]["data"]["title"] == "Page 1"
    assert "# Page 1" in lines[1]["data"]["markdown"]


@pytest.mark.both_databases
def test_ctrl_c_pauses_and_resume_goes_on(on_both: Silkline, web: Web) -> None:
    web.last = 3  # so that it cannot end before it is told to
    crawl = on_both.start("crawl", web.host, "--limit", "8", "--delay", "0.2", "--ignore-robots", "-o", "pages.csv")
    assert web.reached[2].wait(PATIENCE)
    crawl.send_signal(signal.SIGINT)
    out, err = crawl.communicate(timeout=PATIENCE)
    web.gate.set()
    assert (crawl.returncode, out) == (3, b""), err.decode()
    id = on_both("jobs", "--json").json[0]["id"]
    assert f"To resume it: silkline resume {id}" in err.decode()
    assert f"To write the results when the job has ended: silkline results {id} -o pages.csv" in err.decode()
    assert not (on_both.folder / "pages.csv").exists()
    assert on_both("jobs", "show", id, "--json").json["status"] == "paused"

    resumed = on_both("resume", "last", "--json")
    assert resumed.code == 0, resumed
    assert resumed.json["status"] == "completed"
    found = [json.loads(line)["final_url"] for line in on_both("results", id).out.splitlines()]
    assert len(found) == len(set(found)) == 8


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_right_after_the_first_line_ends_in_good_order(
    silkline: Silkline, web: Web, number: signal.Signals
) -> None:
    web.last = -1  # nothing is answered: only the signal ends it
    crawl = silkline.start("crawl", web.host, "--ignore-robots")
    assert crawl.stderr is not None
    first = crawl.stderr.readline().decode()
    crawl.send_signal(number)
    _, err = crawl.communicate(timeout=PATIENCE)
    (job,) = silkline("jobs", "--json").json
    assert first == f"Crawling http://{web.host} as job {job['id']}.\n"
    assert crawl.returncode == 3, err.decode()
    queued = number == signal.SIGTERM
    assert job["status"] in (("queued", "pending") if queued else ("paused",))  # pending: the queue has it for later
    assert ("It is in the queue: the next free worker continues it" in err.decode()) == queued
    assert f"To resume it: silkline resume {job['id']}\n" in err.decode()


def test_quiet_says_nothing_of_the_beginning(silkline: Silkline, web: Web) -> None:
    done = silkline("crawl", web.host, "--depth", "0", "--quiet", *FAST)
    assert (done.code, done.out, done.err) == (0, "", "")


def test_the_first_line_counts_the_urls(silkline: Silkline, web: Web, tmp_path: Path) -> None:
    done = silkline("crawl", f"{web.host}/1", f"{web.host}/2", "--depth", "0", *FAST)
    assert done.err.startswith(f"Crawling http://{web.host}/1 and 1 more as job "), done
    (tmp_path / "seeds").write_text(f"http://{web.host}/1\n")
    done = silkline("crawl", "--seeds", "seeds", "--allow-private", "127.0.0.0/8", "--depth", "0", *FAST)
    assert done.err.splitlines()[1].startswith("Crawling the seeds as job "), done


def test_seeds_from_a_file(silkline: Silkline, web: Web, tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_text(f"# ours\n{web.host}/5\n\nhttp://{web.host}/7#top\nhttp://{web.host}/7\nnot a host\n")
    allowed = ("--allow-private", "127.0.0.0/8")
    done = silkline("crawl", "--seeds", str(seeds), "--depth", "0", "--seeded-hosts-only", *allowed, *FAST)
    assert done.code == 0, done
    assert "2 seeds; 1 lines are not URLs, the first is not a host." in done.err
    assert sorted(web.asked) == ["/5", "/7"]


@pytest.fixture
def half_read(on_both: Silkline, web: Web) -> Iterator[subprocess.Popen[bytes]]:
    """A crawl whose first seeds stand in the ledger, and which waits for more."""
    os.mkfifo(on_both.folder / "seeds")
    process = on_both.start("crawl", "--seeds", "seeds", "--allow-private", "127.0.0.0/8", *FAST)
    with (on_both.folder / "seeds").open("w", buffering=1) as pipe:
        print(*(f"http://{web.host}/{number}" for number in range(CHUNK + 1)), sep="\n", file=pipe)
        while not (known := on_both("jobs", "--json").json) or not on_both("urls", known[0]["id"]).out:
            assert process.poll() is None
        yield process


def test_half_of_the_seeds_is_never_crawled(on_both: Silkline, web: Web, half_read: subprocess.Popen[bytes]) -> None:
    half_read.kill()
    half_read.wait(PATIENCE)
    resumed = on_both("resume", "last")
    assert resumed.code == 1, resumed
    assert "start the crawl again" in resumed.err
    assert on_both("jobs", "--json").json[0]["status"] == "failed"
    assert web.asked == []


def test_seeds_that_are_taken_back_leave_nothing(on_both: Silkline, half_read: subprocess.Popen[bytes]) -> None:
    half_read.send_signal(signal.SIGINT)
    assert half_read.wait(PATIENCE) == 130
    assert on_both("jobs", "--json").json == []


def test_what_cannot_be_crawled(silkline: Silkline, tmp_path: Path) -> None:
    silkline("crawl").refused(2, "give at least one URL")
    silkline("crawl", "example.com", "--limit", "0").refused(2, "limit")
    silkline("crawl", "127.0.0.1:1", "--include", "(").refused(2, "include")
    silkline("crawl", "127.0.0.1:1", "--header", "nonsense").refused(2, "is not a header; write 'Name: value'")
    silkline("crawl", "--seeds", "missing.txt").refused(2, "missing.txt")
    silkline("crawl", "--seeds", "-").refused(2, "empty")
    assert not (tmp_path / "data").exists()
    silkline("crawl", "--seeds", "-", input="not a host\n").refused(2, "contains no URL")
    assert silkline("jobs", "--json").json == []


def test_detached_it_waits_for_a_worker(silkline: Silkline) -> None:
    added = silkline("crawl", "127.0.0.1:1", "--limit", "3", "--detach")
    assert added.code == 0, added
    job = silkline("jobs", "show", added.out.strip(), "--json").json
    assert (job["kind"], job["status"]) == ("site", "queued")
    assert job["spec"] == {"url": "http://127.0.0.1:1", "limit": 3, "allow_private": ["127.0.0.1:1"]}


@pytest.fixture
def brought(store: Database, enqueue: Callable[..., Job]) -> Job:
    """A job with three results, one of them hostile, one without success."""
    job = enqueue()
    jobs.claim(store, "w", "h", ["page"], 1)
    job = jobs.get(store, job.id)
    hostile = {"title": '=HYPERLINK("http://evil")', "markdown": '# Two\n\n\x1b[2Jlines, "quoted"'}
    given = [
        ("https://a.example/x", {"title": "One", "markdown": "# One"}, True, {"http_status": 200}),
        ("https://a.example/two", hostile, True, {"http_status": 200}),
        ("https://b.example/", {}, False, {"http_status": 503, "error": "busy"}),
    ]
    found = [NewUrl(id, id, url, "h", 0) for id, (url, *_) in enumerate(given, 1)]
    settled = [Settled(id, "done") for id in (1, 2, 3)]
    results = [
        NewResult(id, url, id, url, id, json.dumps(data), success, json.dumps(metadata))
        for id, (url, data, success, metadata) in enumerate(given, 1)
    ]
    urls.record(store, job, Checkpoint(found, settled, results))
    return job

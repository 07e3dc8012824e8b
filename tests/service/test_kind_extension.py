"""Jobs that an external worker does: docs/how-to/external_worker.py, that very file, against a real server."""

import os
import runpy
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from silkline.model.database import Database
from silkline.sample.server import SampleServer
from silkline.sample.site import SampleAnswer
from silkline.sample.site import answer as sample
from silkline.store import results, urls
from silkline.store.opening import open_database
from tests.support.served import Client, Served

SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "external_worker.py"


@pytest.fixture
def served(request: pytest.FixtureRequest, database_url: str, tmp_path: Path) -> Iterator[Client]:
    settings = getattr(request, "param", {})
    with closing(Served(database_url, tmp_path, max_retries=50, api_allow_private=True, **settings)) as server:
        yield server.ready()


@pytest.fixture
def database(served: Client, database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url)) as database:
        yield database


def start(client: Client, *more: str) -> "subprocess.Popen[str]":
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SILKLINE_")}
    command = [sys.executable, str(SCRIPT), f"http://127.0.0.1:{client.port}", *more]
    return subprocess.Popen(command, env=clean, stderr=subprocess.PIPE, text=True)


def work(client: Client, *more: str) -> None:
    worker = start(client, "--once", *more)
    _, complaints = worker.communicate(timeout=120)
    assert worker.returncode == 0, complaints


def test_a_program_outside_fulfils_a_job(served: Client, database: Database) -> None:
    with SampleServer() as site:
        asked = [f"{site.url}birds/puffin", f"{site.url}directions", f"{site.url}nowhere"]
        id = served.job(kind="extension", urls=asked)
        work(served, "--allow-private")
    job = served.get(f"/v1/jobs/{id}").json
    assert (job["status"], job["attempt"]) == ("completed", 1)
    assert (job["progress"]["done"], job["progress"]["failed"]) == (2, 1)
    found = {each.original_url: each for each in results.every(database, id)}
    assert found[asked[0]].data["title"] == "Puffin"
    assert found[asked[1]].final_url == f"{site.url}visit/getting-there"
    assert found[asked[2]].success is False
    assert urls.reasons(database, id) == [("failed", "http_404", 1)]


IMPATIENT = {"heartbeat_interval": 0.3, "fence_after": 3.0, "stale_after": 4.0, "watchdog_interval": 0.5}


@pytest.mark.parametrize("served", [IMPATIENT], indirect=True, ids=["impatient"])
def test_one_that_dies_is_replaced_and_can_write_nothing_more(served: Client, database: Database) -> None:
    asked_for_two, gate = threading.Event(), threading.Event()

    def respond(target: str, origin: str) -> SampleAnswer:
        if target == "/birds/eider" and not gate.is_set():
            asked_for_two.set()
            gate.wait(120)
        return sample(target, origin)

    with SampleServer(respond=respond) as site:
        asked = [f"{site.url}birds/puffin", f"{site.url}birds/eider"]
        id = served.job(kind="extension", urls=asked)
        first = start(served, "--allow-private")
        assert asked_for_two.wait(120)
        first.send_signal(signal.SIGSTOP)
        served.wait_for(id, "queued", "pending")
        gate.set()
        work_done = False
        while not work_done:
            work(served, "--allow-private")
            work_done = served.get(f"/v1/jobs/{id}").json["status"] == "completed"
        first.send_signal(signal.SIGCONT)
        assert first.stderr is not None
        assert "no longer" in first.stderr.readline()
        first.kill()
        first.communicate()
    assert sorted(each.original_url or "" for each in results.every(database, id)) == sorted(asked)
    assert urls.tally(database, id)["done"] == 2


def test_one_that_is_told_to_stop_gives_the_job_back(served: Client, database: Database) -> None:
    asked_once, gate = threading.Event(), threading.Event()

    def respond(target: str, origin: str) -> SampleAnswer:
        asked_once.set()
        gate.wait(120)
        return sample(target, origin)

    with SampleServer(respond=respond) as site:
        id = served.job(kind="extension", urls=[f"{site.url}birds/puffin", f"{site.url}birds/eider"])
        worker = start(served, "--once", "--allow-private")
        assert asked_once.wait(120)
        assert served.post(f"/v1/jobs/{id}/stop").status == 200
        gate.set()
        worker.communicate(timeout=120)
    job = served.wait_for(id, "stopped")
    assert (job["progress"]["done"], job["progress"]["queued"]) == (1, 1)


def test_a_host_that_cannot_be_reached_is_delivered_as_failed(served: Client, database: Database) -> None:
    with SampleServer() as site:
        asked = ["http://nowhere.invalid/", f"{site.url}birds/puffin"]
        id = served.job(kind="extension", urls=asked)
        work(served, "--allow-private")
    assert served.get(f"/v1/jobs/{id}").json["status"] == "completed"
    found = {each.original_url: each for each in results.every(database, id)}
    assert (found[asked[0]].success, found[asked[0]].metadata["error"]) == (False, "connect_failed")
    assert found[asked[1]].success is True


def difficult(target: str, origin: str) -> SampleAnswer:
    """Pages that the server or the library of the worker refuses."""
    if target in ("/long", "/port"):
        return SampleAnswer(302, "text/html", b"", f"/x?{'a' * 8300}" if target == "/long" else "http://a.test:x/")
    body = b"\xff" * 17_000_000 if target == "/large" else b"<title>" + b"t" * 20_000
    return SampleAnswer(200, "text/html", body)


def test_no_page_ends_a_job(served: Client, database: Database) -> None:
    with SampleServer(respond=difficult) as site:
        names = ["long", "port", "large", "good"]
        id = served.job(kind="extension", urls=[site.url + name for name in names])
        work(served, "--allow-private")
    assert served.get(f"/v1/jobs/{id}").json["status"] == "completed"
    found = {(each.original_url or "").removeprefix(site.url): each for each in results.every(database, id)}
    errors = {name: each.metadata["error"] for name, each in found.items()}
    assert errors == {"long": "bad_redirect", "port": "bad_response", "large": None, "good": None}
    assert len(found["large"].data["markdown"]) == 2_000_000
    assert len(found["good"].data["title"]) <= 10_000


def test_a_page_that_the_server_refuses_is_delivered_as_failed(
    served: Client, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = runpy.run_path(str(SCRIPT))
    found = {"title": 7}, {"markdown": "x" * 17_000_000}, {"title": "good"}
    pages = iter(found)
    monkeypatch.setitem(worker["main"].__globals__, "page", lambda url: {"url": url, "data": next(pages)})
    asked = [f"https://a.test/{number}" for number in range(len(found))]
    id = served.job(kind="extension", urls=asked)
    worker["main"](f"http://127.0.0.1:{served.port}", forever=False)
    assert served.get(f"/v1/jobs/{id}").json["status"] == "completed"
    errors = [each.metadata["error"] for each in results.every(database, id)]
    assert errors == ["not_deliverable", "not_deliverable", None]


def test_a_private_address_is_not_asked_unless_it_is_allowed(served: Client, database: Database) -> None:
    with SampleServer() as site:
        page = site.url.removeprefix("http://127.0.0.1") + "birds/puffin"
        hosts = ("127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "[::1]", "[::ffff:127.0.0.1]")
        id = served.job(kind="extension", urls=[f"http://{host}{page}" for host in hosts])
        work(served)
        assert not site.requests
    assert {each.metadata["error"] for each in results.every(database, id)} == {"address_blocked"}

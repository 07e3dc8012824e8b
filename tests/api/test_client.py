"""The Python client against real servers: what it asks, what it forgives, and what it never asks twice."""

import re
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from silkline.api.client import Client, RequestFailed
from silkline.errors import UsageError
from silkline.sample.server import SampleServer
from tests.support.daemon import free_port
from tests.support.served import STATES, Served
from tests.support.served import Client as Plain
from tests.support.supervisors import PATIENCE, eventually

HOME = {"allow_private": ["127.0.0.0/8"], "speed": "max"}
NOBODY = "01a1e20b-d6d4-79e8-83f5-a68a550b7316"


@pytest.fixture(scope="module")
def url(trusting: Plain) -> str:
    return f"http://127.0.0.1:{trusting.port}"


@pytest.fixture
def silkline(url: str) -> Iterator[Client]:
    with Client(url, patience=PATIENCE) as client:
        yield client


def test_the_words_of_the_how_to(url: str, site: SampleServer, capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[2] / "docs" / "how-to" / "python-client.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    code = code.replace("http://127.0.0.1:8700", url).replace("https://example.com/", site.url)
    given = 'allow_private=["127.0.0.0/8"], speed="max", '
    exec(code.replace("max_age=", f"{given}max_age=").replace("limit=", f"{given}limit="), {})
    told = capsys.readouterr().out
    assert "Tern Rock is a small island" in told
    assert f"{site.url}birds/puffin" in told


def test_a_page(silkline: Client, site: SampleServer) -> None:
    page = silkline.fetch(f"{site.url}birds/puffin", max_age=3600, **HOME)
    assert "Puffins dig." in page["data"]["markdown"]
    asked = len(site.requests)
    assert silkline.fetch(f"{site.url}birds/puffin", max_age=3600, **HOME)["id"] == page["id"]
    assert len(site.requests) == asked, "from the cache"


def test_a_page_that_takes_longer_than_one_request(silkline: Client, site: SampleServer) -> None:
    assert silkline.fetch(f"{site.url}birds/eider", wait=0, **HOME)["success"]
    with pytest.raises(RequestFailed, match="http_404") as failed:
        silkline.fetch(f"{site.url}nowhere", wait=0, **HOME)
    assert failed.value.kind == "fetch-failed"


def test_a_page_that_cannot_be_had(silkline: Client, site: SampleServer) -> None:
    with pytest.raises(RequestFailed, match="http_404") as failed:
        silkline.fetch(f"{site.url}nowhere", **HOME)
    assert (failed.value.status, failed.value.kind) == (502, "fetch-failed")


def test_a_crawl_from_the_question_to_the_last_page(silkline: Client, site: SampleServer) -> None:
    new = silkline.submit("site", site.url, limit=500, metadata={"for": "us"}, **HOME)
    assert (new["status"], new["metadata"]) == ("queued", {"for": "us"})
    job = silkline.wait(new["id"])
    assert job["status"] == "completed", job
    progress = job["progress"]
    assert progress["discovered"] == sum(progress[state] for state in STATES)

    pages = list(silkline.results(job["id"]))
    assert len(pages) == progress["done"] + progress["unchanged"]
    assert all("markdown" not in page["data"] for page in silkline.results(job["id"], content=False))
    assert len({url["url"] for url in silkline.urls(job["id"])}) == progress["discovered"], "more than one page of them"
    failed = list(silkline.errors(job["id"]))
    assert len(failed) == progress["failed"] == len(list(silkline.urls(job["id"], state="failed")))
    assert any(each["links_in"]["sources"] for each in failed)
    assert silkline.explain(job["id"], pages[0]["final_url"])["result"]["id"] == pages[0]["id"]
    eventually(  # a supervisor stores lines a moment after the end that they tell of
        "the last line is stored",
        lambda: any("the job is now completed" in line["message"] for line in silkline.logs(job["id"], level="info")),
    )
    assert job["id"] in [each["id"] for each in silkline.jobs(kind="site", status="completed")]

    silkline.remove(job["id"])
    with pytest.raises(RequestFailed) as gone:
        silkline.job(job["id"])
    assert (gone.value.status, gone.value.kind, gone.value.retryable) == (404, "not-found", False)


def test_steering(silkline: Client) -> None:
    id = silkline.submit("diagnostic", do="work", steps=100_000, seconds=0.01)["id"]
    assert silkline.wait(id, 0)["status"] in ("queued", "pending", "running")
    silkline.pause(id)
    assert silkline.wait(id)["status"] == "paused"
    assert silkline.resume(id)["status"] in ("queued", "pending", "running")
    silkline.stop(id)
    assert silkline.wait(id)["status"] == "stopped"
    silkline.retry(id)
    silkline.cancel(id)
    assert silkline.wait(id)["status"] == "cancelled"
    with pytest.raises(RequestFailed) as refused:
        silkline.pause(id)
    assert (refused.value.status, refused.value.kind) == (409, "refused")


def test_kinds(silkline: Client) -> None:
    assert [worker["alive"] for worker in silkline.workers()] == [True]
    assert len(silkline.fleet()["machines"]) == 1


def test_what_makes_no_sense(silkline: Client) -> None:
    with pytest.raises(RequestFailed, match="nonsense") as refused:
        silkline.submit("site", "https://example.com/", nonsense=1)
    assert refused.value.status == 422
    with pytest.raises(RequestFailed) as missing:
        silkline.job("../jobs")
    assert missing.value.status == 404
    with pytest.raises(RequestFailed, match=NOBODY):
        list(silkline.events(NOBODY))
    with pytest.raises(UsageError, match=r"127\.0\.0\.1:8700"):
        Client("example.com")


def test_nobody_there() -> None:
    with Client(f"http://127.0.0.1:{free_port()}", patience=0) as nobody, pytest.raises(RequestFailed) as failed:
        nobody.workers()
    assert (failed.value.status, failed.value.kind, failed.value.retryable) == (0, "unreachable", True)


class Thief:
    """Stands between client and server, and swallows the first answer."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"
        self.connections = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                ours, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._carry, args=(ours, self.connections == 1), daemon=True).start()

    def _carry(self, ours: socket.socket, steals: bool) -> None:
        with ours, socket.create_connection(("127.0.0.1", self._target)) as theirs:
            names = (f"Host: 127.0.0.1:{port}".encode() for port in (self._port, self._target))
            threading.Thread(target=_pour, args=(ours, theirs, *names), daemon=True).start()
            if steals:
                theirs.recv(1)  # it has been answered, and nobody will hear it
            else:
                _pour(theirs, ours)
            for side in (ours, theirs):  # wakes the other thread, which a mere close would not
                with suppress(OSError):
                    side.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.close()


def _pour(source: socket.socket, target: socket.socket, name: bytes = b"", other: bytes = b"") -> None:
    try:
        while data := source.recv(65_536):
            target.sendall(data.replace(name, other) if name else data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return


def test_a_job_whose_answer_got_lost_is_stored_once(url: str) -> None:
    with closing(Thief(int(url.rpartition(":")[2]))) as thief, Client(thief.url, patience=PATIENCE) as silkline:
        address = "https://once.test/"
        new = silkline.submit("page", address, paused=True)
        assert thief.connections > 1, "it was asked again"
        assert [job["id"] for job in silkline.jobs(q="once.test")] == [new["id"]]


def test_events_outlive_the_server(tmp_path: Path) -> None:
    database, where = f"sqlite:///{tmp_path / 'silkline.db'}", ("--port", str(free_port()))
    server = Served(database, tmp_path, *where)
    try:
        with Client(f"http://127.0.0.1:{server.ready().port}", patience=PATIENCE) as silkline:
            id = silkline.submit("diagnostic", do="work", steps=100_000, seconds=0.01)["id"]
            heard: list[Any] = []
            for event in silkline.events(id):
                heard.append(event)
                if event.name == "progress" and server.process.poll() is None and len(heard) < 100:
                    assert server.terminate(signal.SIGTERM) == 0
                    server = Served(database, tmp_path, *where)
                    heard.extend([None] * 100)
                    server.ready()
                    silkline.stop(id)
                    silkline.wait(id)  # its end is told also to whoever comes after it
            assert heard[-1].name == "end"
            told = [line["id"] for event in heard if event and event.name == "logs" for line in event.data["lines"]]
            stored = [line["id"] for line in silkline.logs(id)]  # the last of them perhaps after the end was told
            assert told == stored[: len(told)], "each line once, none left out"
            assert len(told) > 1
            assert silkline.job(id)["attempt"] > 1
            seen = heard[-1].id
            while more := list(silkline.events(id, seen)):  # lines that were stored late, until all has been told
                seen = more[-1].id
    finally:
        server.close()


def test_tokens(tmp_path: Path) -> None:
    with closing(Served(f"sqlite:///{tmp_path / 'silkline.db'}", tmp_path, api_token="a" * 40, slots=0)) as server:
        url = f"http://127.0.0.1:{server.ready().port}"
        with Client(url, token="a" * 40) as silkline:
            assert list(silkline.jobs()) == []
        with Client(url) as stranger, pytest.raises(RequestFailed) as refused:
            stranger.workers()
        assert refused.value.status == 401

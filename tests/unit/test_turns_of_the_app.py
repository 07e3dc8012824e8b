"""The whole application: which requests wait when another caller holds every turn, and which are answered."""

import asyncio
import threading
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message, Receive

from silkline.api import app as application
from silkline.api import events
from silkline.api.app import create_app
from silkline.api.events import Hub
from silkline.api.read_turns import READS, READS_EACH, CallerTurns, read_turns
from silkline.api.routes import exports
from silkline.config import Settings
from silkline.model.database import Database
from silkline.model.job import NewJob
from silkline.model.ledger import Checkpoint
from silkline.store import jobs, urls
from silkline.store.opening import open_database
from tests.store.given import finished, result, running, settled, url
from tests.support.supervisors import PATIENCE

# The framework makes such a field itself, for a route with a body.
pytestmark = pytest.mark.filterwarnings("ignore:The 'alias' attribute")
US = "127.0.0.1"
JOB = b'{"kind": "page", "url": "https://example.com/", "paused": true}'
FORM, JSON = b"application/x-www-form-urlencoded", b"application/json"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(f"sqlite:///{tmp_path / 'silkline.db'}")) as opened:
        yield opened


class Watched(CallerTurns):
    """One turn, and whether the test's own requests have asked for it."""

    def __init__(self) -> None:
        super().__init__(most=1, most_each=1)
        self._asked = asyncio.Event()

    async def take(self, caller: str, receive: Receive | None = None) -> bool:
        if caller == US:
            self._asked.set()
        return await super().take(caller, receive)

    async def are_waited_for(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self._asked.wait()
        assert self.waiting(US) == 1
        self._asked.clear()


class Asking:
    """The application, whose turns the test can hold."""

    def __init__(
        self, database: Database, data: Path, monkeypatch: pytest.MonkeyPatch, reads: CallerTurns | None = None
    ) -> None:
        self.writes, self.reads = Watched(), Watched()
        monkeypatch.setattr(application, "write_turns", lambda: self.writes)
        monkeypatch.setattr(events, "read_turns", lambda: reads or self.reads)
        self._app = create_app(Settings(data=data), database, Hub(database), US, 80)

    def start(
        self, method: str, path: str, body: bytes = b"", kind: bytes = JSON, address: str = US
    ) -> asyncio.Task[int]:
        return asyncio.create_task(self._status(method, path, body, kind, address))

    async def _status(self, method: str, path: str, body: bytes, kind: bytes, address: str) -> int:
        sent = await self._sent(method, path, body, kind, address, whole=False)
        status: int = sent[0]["status"]
        return status

    async def whole(self, path: str, address: str) -> bytes:
        """The body of a whole answer."""
        sent = await self._sent("GET", path, b"", JSON, address, whole=True)
        assert sent[0]["status"] == 200
        return b"".join(message["body"] for message in sent[1:])

    async def _sent(
        self, method: str, path: str, body: bytes, kind: bytes, address: str, *, whole: bool
    ) -> list[Message]:
        """The first message of the answer, or all of them."""
        path, _, query = path.partition("?")
        length = b"%d" % len(body)
        headers = [(b"host", b"127.0.0.1:80"), (b"content-type", kind), (b"content-length", length)]
        scope: dict[str, Any] = {"type": "http", "method": method, "path": path, "raw_path": path.encode()}
        scope |= {"query_string": query.encode(), "headers": headers, "client": (address, 1), "server": (US, 80)}
        scope["scheme"] = "http"
        sent: list[Message] = []
        enough = asyncio.Event()
        left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Message:
            return left.pop() if left else await asyncio.Event().wait()  # type: ignore[return-value]

        async def send(message: Message) -> None:
            sent.append(message)
            if not whole or (message["type"] == "http.response.body" and not message.get("more_body")):
                enough.set()

        answering = asyncio.create_task(self._app(scope, receive, send))  # type: ignore[arg-type]
        try:
            async with asyncio.timeout(PATIENCE):
                await enough.wait()
            return sent
        finally:
            answering.cancel()


def test_what_changes_something_waits_and_signing_in_and_health_do_not(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        asking = Asking(database, tmp_path, monkeypatch)
        await asking.writes.take("other")
        for method, path, body in (("POST", "/v1/jobs", JOB), ("DELETE", "/v1/jobs/x", b"")):
            waiting = asking.start(method, path, body)
            await asking.writes.are_waited_for()
            assert await asking.start("GET", "/healthz") == 200
            assert await asking.start("GET", "/readyz") == 200
            assert await asking.start("GET", "/v1/jobs") == 200
            assert await asking.start("POST", "/login", b"token=wrong", FORM) == 401
            assert not waiting.done()
            asking.writes.give_back("other")
            assert await waiting == (201 if method == "POST" else 404)
            await asking.writes.take("other")
        fetch = asking.start("POST", "/v1/fetch", b'{"url": "https://example.com/"}')
        await asking.writes.are_waited_for()
        fetch.cancel()

    asyncio.run(main())


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/jobs/{id}", "/v1/jobs/{id}/events", "/"])
def test_lists_jobs_and_streams_wait_for_a_turn_to_read(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    job, _ = jobs.enqueue(database, NewJob("page", {"url": "https://example.com/"}, paused=True))

    async def main() -> None:
        asking = Asking(database, tmp_path, monkeypatch)
        await asking.reads.take("other")
        waiting = asking.start("GET", path.format(id=job.id))
        await asking.reads.are_waited_for()
        assert await asking.start("POST", "/v1/jobs", JOB) == 201
        assert not waiting.done()
        asking.reads.give_back("other")
        assert await waiting == 200

    asyncio.run(main())


READING = (
    *("/", "/jobs", "/jobs/{id}", "/jobs/{id}/charts", "/jobs/{id}/page/1", "/v1/events", "/v1/jobs", "/v1/workers"),
    *(f"/v1/jobs/{{id}}{rest}" for rest in ("", "?wait=1", "/events", "/urls", "/results", "/errors", "/hosts")),
    *(f"/v1/jobs/{{id}}/{form}?format=jsonl" for form in ("urls", "results", "errors", "logs", "export")),
    *(f"/v1/jobs/{{id}}/export?format={form}" for form in ("csv", "md", "parquet", "sitemap", "links", "chunks")),
    "/v1/jobs/{id}/results?format=jsonl&where=title=x",
)


@pytest.mark.parametrize("path", READING)
def test_no_request_waits_for_a_second_turn_while_it_holds_one(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """There is one turn in all, so such a request would wait for itself."""
    job = running(database, kind="extension")
    urls.record(database, job, Checkpoint([url(1)], [settled(1)], [result(1)]))
    finished(database, job)

    async def main() -> None:
        asking = Asking(database, tmp_path, monkeypatch)
        assert await asking.start("GET", path.format(id=job.id)) == 200
        # The route would ignore the line break, and the rule that such a request holds no turn would not.
        assert await asking.start("GET", f"{path.partition('?')[0].format(id=job.id)}\n") == 404

    asyncio.run(main())


@pytest.mark.parametrize("callers", [1, READS // READS_EACH, READS])
def test_downloads_that_begin_together_stop_neither_each_other_nor_other_reads(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, callers: int
) -> None:
    """Their first bytes come late; until then each of them takes one short turn after another."""
    job, _ = jobs.enqueue(database, NewJob("page", {"url": "https://example.com/"}, paused=True))
    begun, may_end = threading.Semaphore(0), threading.Event()

    def slow(*_: Any, **__: Any) -> Generator[bytes, None, None]:
        begun.release()
        while not may_end.wait(0.01):
            yield b""
        yield b"the whole file"

    monkeypatch.setattr(exports, "download", slow)

    async def main() -> None:
        asking = Asking(database, tmp_path, monkeypatch, read_turns())
        path = f"/v1/jobs/{job.id}/export?format=jsonl"
        addresses = [f"127.0.0.{number + 2}" for number in range(callers)] * READS_EACH
        downloads = [asyncio.create_task(asking.whole(path, address)) for address in addresses]
        for _ in downloads:
            assert await asyncio.to_thread(begun.acquire, timeout=PATIENCE)
        for address in (addresses[0], US):
            assert await asking.start("GET", "/v1/jobs", address=address) == 200
        may_end.set()
        assert await asyncio.gather(*downloads) == [b"the whole file"] * len(addresses)

    try:
        asyncio.run(main())
    finally:
        may_end.set()

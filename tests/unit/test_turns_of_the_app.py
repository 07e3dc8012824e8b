"""The whole application: which requests wait when another caller holds every turn, and which are answered."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message, Receive

from silkline.api import app as application
from silkline.api.app import create_app
from silkline.api.events import Hub
from silkline.api.read_turns import CallerTurns
from silkline.config import Settings
from silkline.model.database import Database
from silkline.model.job import NewJob
from silkline.store import jobs
from silkline.store.opening import open_database
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

    def __init__(self, database: Database, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.writes = Watched()
        monkeypatch.setattr(application, "write_turns", lambda: self.writes)
        hub = Hub(database)
        self.reads = hub.turns = Watched()
        self._app = create_app(Settings(data=data), database, hub, US, 80)

    def start(self, method: str, path: str, body: bytes = b"", kind: bytes = JSON) -> asyncio.Task[int]:
        return asyncio.create_task(self._status(method, path, body, kind))

    async def _status(self, method: str, path: str, body: bytes, kind: bytes) -> int:
        length = b"%d" % len(body)
        headers = [(b"host", b"127.0.0.1:80"), (b"content-type", kind), (b"content-length", length)]
        scope: dict[str, Any] = {"type": "http", "method": method, "path": path, "raw_path": path.encode()}
        scope |= {"query_string": b"", "headers": headers, "client": (US, 1), "server": (US, 80), "scheme": "http"}
        came: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Message:
            return left.pop() if left else await asyncio.Event().wait()  # type: ignore[return-value]

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start" and not came.done():
                came.set_result(message["status"])

        answering = asyncio.create_task(self._app(scope, receive, send))  # type: ignore[arg-type]
        try:
            async with asyncio.timeout(PATIENCE):
                return await came
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

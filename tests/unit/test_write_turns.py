"""Few requests that change something run at the same time. Callers take turns, and a slow sender holds none."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from silkline.api.auth import Caller
from silkline.api.caller_turns import WAITING_EACH, CallerTurns
from silkline.api.problems import Problem
from silkline.api.routes.fetch import FetchRoutes, Patience
from silkline.api.write_turns import WRITES, WRITES_EACH, WriteLimit, write_turns


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


class Running:
    """An app whose requests run until they are told to end, and the answers that it sent."""

    def __init__(self, turns: CallerTurns) -> None:
        self.limit = WriteLimit(self._app, turns)
        self.began: list[str] = []
        self.bodies: list[bytes] = []
        self.statuses: list[int] = []
        self.end = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def ask(self, caller: str, path: str, *parts: bytes | Problem, method: str = "POST", lease: str = "") -> None:
        """A request whose body never ends, unless its last part is empty."""
        left = list(parts or (b"",))
        who = Caller(caller, "admin") if caller else None
        scope: dict[str, Any] = {"type": "http", "method": method, "path": path, "caller": who}
        scope["headers"] = [(b"silkline-lease", lease.encode())] if lease else []

        async def receive() -> Message:
            if not left:
                await asyncio.Event().wait()
            part = left.pop(0)
            if isinstance(part, Problem):
                raise part
            return {"type": "http.request", "body": part, "more_body": bool(part)}

        self._tasks.append(asyncio.create_task(self.limit(scope, receive, self._send)))
        await settle()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.statuses.append(message["status"])

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.began.append(scope["caller"].id if scope["caller"] else "")
        await self.end.wait()
        self.bodies.append((await receive())["body"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.Event().wait()  # a client that takes its time


def test_a_caller_with_many_writes_leaves_turns_to_others() -> None:
    async def main() -> None:
        running = Running(write_turns())
        for number in range(WRITES):
            await running.ask("greedy", "/v1/jobs/x/results", b"%d" % number, b"")
        assert running.began == ["greedy"] * WRITES_EACH
        await running.ask("other", "/v1/jobs", b"{", b"}", b"")
        await running.ask("other", "/v1/tokens/x", method="DELETE")
        assert running.began[WRITES_EACH:] == ["other", "other"]
        running.end.set()
        await settle()
        assert running.began[WRITES_EACH + 2 :] == ["greedy"] * (WRITES - WRITES_EACH)
        assert sorted(running.bodies) == [b"", b"0", b"1", b"2", b"3", b"{}"], "each got its own body"
        await running.close()

    asyncio.run(main())


def test_deliveries_that_wait_for_another_one_hold_no_turn() -> None:
    """Requests with one lease change the same job. Those of two callers would hold all turns."""

    async def main() -> None:
        running = Running(write_turns())
        for caller in ("one", "two"):
            for path in ("/v1/jobs/x/results", "/v1/jobs/x/finish"):
                await running.ask(caller, path, lease="1.w-secret")
        assert running.began == ["one"]
        await running.ask("two", "/v1/jobs/x/heartbeat", lease="1.w-secret")
        await running.ask("two", "/v1/jobs/y/results", lease="1.w-secret")
        await running.ask("other", "/v1/jobs/x/results", lease="1.w-wrong")
        assert running.began == ["one", "two", "two", "other"], "these wait for nobody"
        running.end.set()
        await settle()
        assert (running.began[4:], running.statuses) == (["one", "two", "two"], [200] * 7)
        await running.close()

    asyncio.run(main())


def test_a_slow_sender_holds_no_turn() -> None:
    async def main() -> None:
        running = Running(write_turns())
        for _ in range(WRITES * 2):
            await running.ask("slow", "/v1/jobs", b"{")
        assert running.began == []
        await running.ask("slow", "/v1/jobs", b"{}", b"")
        assert running.began == ["slow"]
        await running.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("method", "path", "caller", "waits"),
    [
        ("POST", "/v1/jobs", "greedy", True),
        ("POST", "/v1/claims", "greedy", True),
        ("POST", "/v1/jobs/1/results", "greedy", True),
        ("POST", "/v1/jobs/1/pause", "greedy", True),
        ("POST", "/jobs/1/repeat", "greedy", True),
        ("DELETE", "/v1/jobs/1", "greedy", True),
        ("PUT", "/v1/unknown", "greedy", True),
        ("POST", "/v1/fetch", "greedy", True),
        ("POST", "/login", "greedy", False),
        ("POST", "/login", "", False),
        ("POST", "/logout", "greedy", False),
        ("GET", "/v1/jobs", "greedy", False),
    ],
)
def test_which_requests_wait_for_a_turn_to_write(method: str, path: str, caller: str, waits: bool) -> None:
    async def main() -> None:
        turns = write_turns()
        running = Running(turns)
        for _ in range(WRITES_EACH):
            await turns.take("greedy")
        await running.ask(caller, path, b"unread", b"", method=method)
        assert (running.began, turns.waiting("greedy")) == ([] if waits else [caller], int(waits))
        await running.close()

    asyncio.run(main())


def test_writes_that_wait_are_limited() -> None:
    async def main() -> None:
        running = Running(write_turns())
        for _ in range(WRITES_EACH + WAITING_EACH):
            await running.ask("greedy", "/v1/jobs")
        assert running.statuses == []
        await running.ask("greedy", "/v1/jobs")
        assert running.statuses == [429]
        await running.close()

    asyncio.run(main())


def test_a_body_that_is_refused_is_answered() -> None:
    async def main() -> None:
        running = Running(write_turns())
        await running.ask("a", "/v1/jobs", b"{", Problem("too-large", "too large"))
        assert (running.began, running.statuses) == ([], [413])
        await running.close()

    asyncio.run(main())


def test_a_fetch_takes_a_turn_and_holds_none_while_it_waits_for_its_page() -> None:
    class Hub:
        def admit(self, scope: Scope) -> None:
            assert turns.waiting("greedy") == 0

        async def settled(self, id: str, seconds: float, caller: str) -> None:
            waits.set()
            await asyncio.Event().wait()

    turns, waits = CallerTurns(most=1, most_each=1), asyncio.Event()

    async def main() -> None:
        routes: Any = FetchRoutes(None, None, Hub(), turns)  # type: ignore[arg-type]
        routes._cached_or_stored = lambda request, body, key: "the id of a job"
        gone, parsed = asyncio.Event(), list[str]()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            parsed.append(scope["path"])
            request: Any = SimpleNamespace(scope=scope)
            answer = await routes.fetch(request, None, Patience(timeout=30))
            await answer(scope, receive, send)

        async def receive() -> Message:
            if not received:
                received.append(b"{}")
                return {"type": "http.request", "body": b"{}", "more_body": False}
            await gone.wait()
            return {"type": "http.disconnect"}

        received: list[bytes] = []
        scope = {"type": "http", "method": "POST", "path": "/v1/fetch", "headers": []}
        await turns.take("other")
        fetch = asyncio.create_task(
            WriteLimit(app, turns)({**scope, "caller": Caller("greedy", "write")}, receive, unsent)
        )
        await settle()
        assert (turns.waiting("greedy"), parsed) == (1, []), "its body is not parsed before its turn"
        turns.give_back("other")
        async with asyncio.timeout(60):
            await waits.wait()
            await turns.take("other")  # it is free
            gone.set()
            await fetch  # its client went away: nobody waits for the page

    asyncio.run(main())


async def unsent(message: Message) -> None:
    raise AssertionError(f"nothing is sent: {message}")


def test_a_request_whose_client_went_away_leaves_its_place() -> None:
    async def main() -> None:
        turns, gone, began = write_turns(), asyncio.Event(), list[str]()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            began.append(scope["path"])

        def request(path: str, lease: bytes) -> asyncio.Task[None]:
            left: list[Message] = [{"type": "http.request", "body": b"x" * 1_000, "more_body": False}]

            async def receive() -> Message:
                if left:
                    return left.pop()
                await gone.wait()
                return {"type": "http.disconnect"}

            headers = [(b"silkline-lease", lease)]
            scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "caller": Caller("a", "write")}
            return asyncio.create_task(limit(scope, receive, unsent))

        limit = WriteLimit(app, turns)
        for _ in range(WRITES_EACH):
            await turns.take("a")
        tasks = [request(path, b"1.w-x") for path in ("/v1/jobs", "/v1/fetch", *["/v1/jobs/x/results"] * 3)]
        await settle()
        assert turns.waiting("a") == 3
        gone.set()
        await asyncio.wait_for(asyncio.gather(*tasks), 60)
        assert (turns.waiting("a"), began) == (0, [])
        for _ in range(WRITES_EACH):
            turns.give_back("a")
        await asyncio.wait_for(turns.take("a"), 60)

    asyncio.run(main())


def test_a_caller_that_invents_leases_waits_with_few_deliveries() -> None:
    async def main() -> None:
        running = Running(write_turns())
        for number in range(WAITING_EACH):
            await running.ask("greedy", "/v1/jobs/x/results", lease=f"1.w-{number % 10}")
        assert running.statuses == []
        await running.ask("greedy", "/v1/jobs/x/results", lease="1.w-new")
        assert running.statuses == [429]
        await running.ask("other", "/v1/jobs/x/results", lease="1.w-mine")
        assert running.began[-1] == "other"
        await running.close()

    asyncio.run(main())

"""One caller never holds all of the room for large bodies, and a small body is never refused because of large ones."""

import asyncio
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from silkline.api.auth import Caller
from silkline.api.body_limits import EACH, SMALL, TOGETHER, BodyLimit
from silkline.api.problems import Problem

LARGEST = 4 * SMALL


class Senders:
    """Requests that send a part of a body each, and then nothing until the end of the test."""

    def __init__(self) -> None:
        self._limit = BodyLimit(self._read_body, LARGEST)
        self._quiet = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.refused: list[str] = []

    async def send(self, caller: str | None, size: int) -> None:
        who = Caller(caller, "worker") if caller else None
        scope: dict[str, Any] = {"type": "http", "path": "/v1/jobs/x/results", "caller": who, "headers": []}
        parts = [b" " * (size // 2), b" " * (size - size // 2)]

        async def receive() -> Message:
            if not parts:
                await self._quiet.wait()
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": parts.pop(), "more_body": True}

        self._tasks.append(asyncio.create_task(self._limit(scope, receive, _nobody)))
        for _ in range(10):
            await asyncio.sleep(0)

    async def end(self) -> None:
        self._quiet.set()
        await asyncio.gather(*self._tasks)
        self._quiet.clear()

    async def _read_body(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            while (await receive())["type"] == "http.request":
                pass
        except Problem as problem:
            self.refused.append(problem.kind)


async def _nobody(message: Message) -> None:
    raise AssertionError("no answer is sent")


def test_a_caller_with_large_bodies_leaves_room_for_others() -> None:
    async def main() -> None:
        senders = Senders()
        for _ in range(EACH):
            await senders.send("a", LARGEST)
        assert senders.refused == []
        await senders.send("a", LARGEST)
        assert senders.refused == ["too-many"]
        for _ in range(TOGETHER - EACH):
            await senders.send("b", LARGEST)
        assert senders.refused == ["too-many"], "the other caller has its share"
        await senders.end()

    asyncio.run(main())


def test_a_small_body_is_read_when_large_bodies_hold_all_of_the_room() -> None:
    async def main() -> None:
        senders = Senders()
        for caller in "abcd":
            await senders.send(caller, LARGEST)
        await senders.send("e", LARGEST)
        assert senders.refused == ["busy"]
        for caller in ("a", "e", None):
            await senders.send(caller, SMALL if caller else 8_192)
        assert senders.refused == ["busy"]
        await senders.end()

    asyncio.run(main())


def test_the_room_of_a_body_is_free_after_its_answer() -> None:
    async def main() -> None:
        senders = Senders()
        for _ in range(3):
            for caller in "aabb":
                await senders.send(caller, LARGEST)
            await senders.end()
        assert senders.refused == []

    asyncio.run(main())

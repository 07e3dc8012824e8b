"""One caller never holds all of the room for large bodies, and a small body is never refused because of large ones."""

import asyncio
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from silkline.api.auth import Caller
from silkline.api.body_limits import SMALL, BodyLimit
from silkline.api.body_room import EACH, TOGETHER
from silkline.api.problems import Problem

LARGEST = 4 * SMALL


class Senders:
    """Requests that send a part of a body each, and then nothing until the end of the test."""

    def __init__(self) -> None:
        self._limit = BodyLimit(self._read_body, LARGEST)
        self._quiet = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.refused: list[str] = []
        self.refused_callers: list[str] = []

    async def send(self, caller: str | None, size: int, *, announced: int | None = None, whole: bool = False) -> None:
        who = Caller(caller, "worker") if caller else None
        headers = [(b"content-length", b"%d" % announced)] if announced else []
        scope: dict[str, Any] = {"type": "http", "path": "/v1/jobs/x/results", "caller": who, "headers": headers}
        parts = [b" " * (size // 2), b" " * (size - size // 2)]

        async def receive() -> Message:
            if not parts:
                await self._quiet.wait()
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": parts.pop(), "more_body": bool(parts) or not whole}

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
            self.refused_callers.append(scope["caller"].id)


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


def test_callers_who_hold_all_of_the_room_make_room_for_one_who_sends_less() -> None:
    async def main() -> None:
        senders = Senders()
        for caller in "aabb":
            await senders.send(caller, LARGEST, announced=LARGEST)
        await senders.send("c", LARGEST // 2, announced=LARGEST // 2)
        assert (senders.refused, len(senders.refused_callers)) == (["busy"], 1)
        assert senders.refused_callers[0] in "ab"
        await senders.send("c", LARGEST // 2, announced=LARGEST // 2)
        assert senders.refused == ["busy"], "there is room now"
        await senders.send("d", LARGEST, announced=LARGEST)
        assert sorted(senders.refused_callers) == ["a", "b"], "each of them has lost one of two"
        await senders.send("e", LARGEST, announced=LARGEST)
        assert senders.refused_callers[2:] == ["e"], "nobody holds more than this one would"
        await senders.end()

    asyncio.run(main())


def test_bodies_that_have_arrived_make_no_room() -> None:
    """What is in them may be in the database already."""

    async def main() -> None:
        senders = Senders()
        for caller in "aabb":
            await senders.send(caller, LARGEST, announced=LARGEST, whole=True)
        await senders.send("c", LARGEST // 2, announced=LARGEST // 2)
        assert senders.refused_callers == ["c"]
        await senders.end()

    asyncio.run(main())


def test_a_body_of_unknown_size_makes_others_lose_nothing_unless_they_hold_more_than_it_may_have() -> None:
    async def main() -> None:
        senders = Senders()
        for caller in "abcd":
            await senders.send(caller, LARGEST, announced=LARGEST)
        await senders.send("e", LARGEST // 2)
        assert senders.refused_callers == ["e"]
        await senders.end()

    asyncio.run(main())

"""Nobody keeps the room for large answers from others: not one caller, and not many callers together."""

import asyncio
from typing import Any

import pytest
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from silkline.api.answer_limit import (
    EACH,
    FOR_LITTLE,
    IN_ALL,
    LITTLE,
    PART,
    SLOW,
    VERY_SLOW,
    AnswerLimit,
    AnswerRoom,
    HeldAnswer,
)
from silkline.api.auth import Caller
from silkline.api.problems import Problem


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Room(AnswerRoom):
    """Notes whose answers were cut off."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.cut: list[str] = []
        super().__init__(clock=self.clock)

    def send(self, caller: str, size: int) -> HeldAnswer:
        return self.enter(caller, size, lambda: self.cut.append(caller))

    def refuse(self, caller: str, size: int) -> str:
        with pytest.raises(Problem) as problem:
            self.send(caller, size)
        return problem.value.kind

    def fill(self, callers: int) -> None:
        for place in range(callers):
            self.send(f"slow {place}", IN_ALL // callers)


def test_a_caller_has_a_limit_and_one_answer_of_any_size() -> None:
    room = Room()
    huge = room.send("a", 2 * IN_ALL)
    assert room.refuse("a", PART) == "too-many"
    room.leave(huge)
    room.leave(huge)
    first = room.send("a", EACH // 2)
    room.send("a", EACH // 2)
    assert room.refuse("a", PART) == "too-many"
    room.leave(first)
    room.send("a", PART)


def test_a_page_of_a_list_has_room_whatever_large_answers_hold() -> None:
    room = Room()
    room.send("slow", 2 * IN_ALL - FOR_LITTLE)
    assert room.refuse("other", LITTLE) == "busy"
    room = Room()
    room.fill(4)
    assert room.refuse("other", LITTLE + 1) == "busy"
    for place in range(FOR_LITTLE // LITTLE):
        room.send(f"other {place}", LITTLE)
    assert room.refuse("one more", LITTLE) == "busy", "all of it together is limited too"
    assert not room.cut


@pytest.mark.parametrize("callers", [4, 10, 20])
def test_slow_answers_of_callers_with_much_make_room_for_a_caller_with_less(callers: int) -> None:
    room = Room()
    room.fill(callers)
    size = IN_ALL // callers - 1
    assert room.refuse("other", size) == "busy", "they may be fast: most answers take less than a second"
    room.clock.now += SLOW + 1
    assert room.refuse("other", IN_ALL // callers) == "busy", "not for a caller who would hold as much"
    room.send("other", size)
    assert room.cut == ["slow 0"]


def test_very_slow_answers_make_room_for_everybody() -> None:
    """Many callers with small answers do not keep a large one away for long."""
    room = Room()
    room.fill(64)
    room.clock.now += VERY_SLOW + 1
    assert room.refuse("other", 2 * IN_ALL) == "busy"
    assert not room.cut, "nothing is cut off in vain"
    room.send("other", EACH)
    assert room.cut == [f"slow {place}" for place in range(16)]


def test_an_answer_that_is_cut_off_ends_without_its_last_part() -> None:
    async def main() -> None:
        clock = Clock()
        limit = AnswerLimit(app, AnswerRoom(most=8 * LITTLE - FOR_LITTLE + PART, clock=clock))
        stuck: list[Message] = []
        stopped = asyncio.Event()

        async def never(message: Message) -> None:
            stuck.append(message)
            if len(stuck) == 3:
                stopped.set()
                await asyncio.Event().wait()

        slow = asyncio.create_task(limit(asking("slow", 8 * LITTLE), nothing, never))
        await stopped.wait()
        clock.now += SLOW + 1
        sent: list[Message] = []

        async def take(message: Message) -> None:
            sent.append(message)

        await limit(asking("other", LITTLE), nothing, take)
        assert sent[0]["status"] == 200
        assert sum(len(message.get("body", b"")) for message in sent) == LITTLE
        await slow
        assert stuck[-1]["more_body"], "the client learns that the rest is missing"

    asyncio.run(main())


def asking(caller: str, size: int) -> dict[str, Any]:
    return {"type": "http", "path": "/", "headers": [], "caller": Caller(caller, "read"), "size": size}


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    await Response(b"x" * scope["size"])(scope, receive, send)


async def nothing() -> Message:
    raise AssertionError("no body is read")


def test_a_check_says_what_would_happen_and_cuts_off_nothing() -> None:
    room = Room()
    room.check("a", 2 * IN_ALL)
    room.fill(2)
    with pytest.raises(Problem) as problem:
        room.check("a", EACH)
    assert problem.value.kind == "busy"
    room.clock.now = VERY_SLOW + 1
    room.check("a", EACH)
    assert room.cut == []
    room.send("a", EACH)
    assert room.cut == ["slow 0"]
    with pytest.raises(Problem) as problem:
        room.check("a", 1)
    assert problem.value.kind == "too-many"

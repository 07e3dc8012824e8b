"""The whole request of a job may have 16 MB. It takes no turn from other reads, and is not read for nothing."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from silkline.api.answer_limit import EACH, AnswerRoom
from silkline.api.auth import Caller
from silkline.api.caller_turns import WAITING_EACH
from silkline.api.events import Hub
from silkline.api.long_answers import LongAnswers
from silkline.api.problems import Problem
from silkline.api.read_turns import READS, READS_EACH, read_turns
from silkline.api.routes.jobs import JobRoutes, WaitQuery
from silkline.config import Settings
from silkline.model.database import Database
from silkline.model.job import Job, NewJob
from silkline.store import jobs
from silkline.store.opening import open_database
from tests.support.supervisors import PATIENCE

URLS = [f"https://example.com/{number}" for number in range(5_000)]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = open_database(f"sqlite:///{tmp_path / 'silkline.db'}")
    yield database
    database.close()


class Server:
    """The routes of jobs, with a job that has a long request and one that has a short one."""

    def __init__(self, database: Database) -> None:
        self.room, self.turns = AnswerRoom(), read_turns()
        self.long_answers = LongAnswers(self.room)
        self._routes = JobRoutes(database, Settings(), Hub(database), self.turns, self.long_answers)
        self.long = jobs.enqueue(database, NewJob("page", {"urls": URLS}))[0].id
        self.short = jobs.enqueue(database, NewJob("page", {"url": URLS[0]}))[0].id

    async def get(self, id: str, caller: str) -> bytes:
        request: Any = SimpleNamespace(scope={"caller": Caller(caller, "read"), "client": ("127.0.0.1", 1)})
        return bytes((await self._routes.get(request, id, WaitQuery(wait=0))).body)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - turns have no event for who waits
        await asyncio.sleep(0)


def test_long_requests_that_wait_take_no_turns_of_other_reads(database: Database) -> None:
    async def main() -> None:
        server, callers = Server(database), [f"caller {number}" for number in range(3)]
        async with asyncio.TaskGroup() as group, server.long_answers.turn("first", 1):
            asked = [group.create_task(server.get(server.long, caller)) for caller in callers * READS]
            await until(lambda: sum(map(server.long_answers.waiting, callers)) == len(asked))
            for caller in callers[:2]:
                for _ in range(READS_EACH):
                    await server.turns.take(caller)  # it would wait for ever if long requests held turns
            for caller in callers[:2]:
                for _ in range(READS_EACH):
                    server.turns.give_back(caller)
            assert server.short.encode() in await server.get(server.short, callers[0])
            assert not any(task.done() for task in asked)
        assert all(URLS[-1].encode() in task.result() for task in asked)

    asyncio.run(asyncio.wait_for(main(), PATIENCE))


def test_a_long_request_without_room_for_its_answer_is_not_read(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        server = Server(database)
        reads, whole = list[str](), jobs.get

        def noted(database: Database, id: str) -> Job:
            reads.append(id)
            return whole(database, id)

        monkeypatch.setattr(jobs, "get", noted)
        unread = server.room.enter("slow", EACH, lambda: None)
        with pytest.raises(Problem, match="your answers that are being sent"):
            await server.get(server.long, "slow")
        assert reads == []
        assert server.short.encode() in await server.get(server.short, "slow")
        assert URLS[-1].encode() in await server.get(server.long, "other")
        server.room.leave(unread)
        assert URLS[-1].encode() in await server.get(server.long, "slow")

    asyncio.run(main())


def test_long_requests_of_a_caller_that_wait_are_limited() -> None:
    async def main() -> None:
        long_answers = LongAnswers(AnswerRoom())

        async def make() -> None:
            async with long_answers.turn("greedy", 1):
                await asyncio.Event().wait()

        tasks = [asyncio.create_task(make()) for _ in range(WAITING_EACH + 1)]
        await until(lambda: long_answers.waiting("greedy") == WAITING_EACH)
        with pytest.raises(Problem, match="are waiting for an answer already"):
            await make()
        for task in tasks:
            task.cancel()

    asyncio.run(main())

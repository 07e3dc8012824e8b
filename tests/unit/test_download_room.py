"""Downloads of large rows wait for room in memory, and slow ones are cut off for them."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from threading import Semaphore
from typing import Any

from starlette.types import Message

from silkline.api.answer_limit import LITTLE
from silkline.api.auth import Caller
from silkline.api.caller_turns import GIVE_BACK, CallerTurns
from silkline.api.downloads import DownloadRoom, Downloads, Pieces
from silkline.export.large_rows import LargeRow
from tests.support.supervisors import PATIENCE

SIZE = 2 * LITTLE  # so much that there is no extra room for it


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Made:
    """How many large rows were made and are not dropped yet."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.made, self.ended = Semaphore(0), Semaphore(0)

    def pieces(self, rows: int = 1) -> Pieces:
        try:
            for _ in range(rows):
                large = LargeRow(SIZE // 4)
                yield large
                self.now += 1
                self.most = max(self.most, self.now)
                self.made.release()
                large.is_dropped()
                yield b"x" * SIZE
                self.now -= 1
        finally:
            self.ended.release()


class Asked:
    def __init__(self, most: int, most_each: int) -> None:
        self.clock = Clock()
        room = DownloadRoom(most=most * SIZE, most_each=most_each * SIZE, clock=self.clock)
        self._downloads = Downloads(CallerTurns(most=6, most_each=6), room=room)

    async def read(self, caller: str, pieces: Pieces, reads: asyncio.Event | None = None) -> int:
        """The bytes that came. Without `reads`, the client takes nothing after the start."""
        came = 0

        async def send(message: Message) -> None:
            nonlocal came
            if reads is None:
                await asyncio.Event().wait()
            came += len(message.get("body", b""))

        async def receive() -> Message:
            await asyncio.Event().wait()
            raise AssertionError

        async def valid() -> bool:
            return True

        with ExitStack() as at_end:
            scope: dict[str, Any] = {"type": "http", "asgi": {"spec_version": "2.3"}, "at_end": at_end}
            scope |= {"caller": Caller(caller, "read"), "still_valid": valid, GIVE_BACK: lambda: None}
            await self._downloads.answer(scope, pieces, "text/plain")(scope, receive, send)
        return came


async def happened(event: Semaphore) -> None:
    assert await asyncio.to_thread(event.acquire, timeout=PATIENCE)


def run(work: Any) -> None:
    asyncio.run(asyncio.wait_for(work, PATIENCE))


def test_so_many_large_rows_are_in_memory_and_a_slow_one_makes_room() -> None:
    async def main() -> None:
        asked, stalled, made = Asked(most=2, most_each=2), Made(), Made()
        waiting = [asyncio.create_task(asked.read("one", stalled.pieces())) for _ in range(6)]
        await happened(stalled.made)
        await happened(stalled.made)
        other = asyncio.create_task(asked.read("other", made.pieces(3), asyncio.Event()))
        for _ in range(100):
            await asyncio.sleep(0)
        assert (stalled.now, stalled.most) == (2, 2)
        assert made.most == 0, "it waits, and has made nothing"
        asked.clock.now = 60.0
        assert await other == 3 * SIZE
        await happened(stalled.ended)  # a slow one was cut off
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    run(main())


def test_downloads_that_are_read_get_everything_in_turn() -> None:
    async def main() -> None:
        asked, made = Asked(most=2, most_each=1), Made()
        reads = asyncio.Event()
        came = await asyncio.gather(*(asked.read(f"{number % 3}", made.pieces(4), reads) for number in range(8)))
        assert came == [4 * SIZE] * 8
        assert made.most <= 2

    run(main())


def test_a_row_that_is_not_announced_is_counted_too() -> None:
    def pieces(sent: list[int]) -> Iterator[bytes]:
        for number in range(3):
            yield b"x" * SIZE
            sent.append(number)

    async def main() -> None:
        asked, first, sent = Asked(most=1, most_each=1), Made(), list[int]()
        stalled = asyncio.create_task(asked.read("one", first.pieces()))
        await happened(first.made)
        other: Any = pieces(sent)
        made = asyncio.create_task(asked.read("other", other, asyncio.Event()))
        for _ in range(100):
            await asyncio.sleep(0)
        assert sent == []
        asked.clock.now = 60.0
        assert await made == 3 * SIZE
        stalled.cancel()
        await asyncio.gather(stalled, return_exceptions=True)

    run(main())

"""Answers that take long to make: the whole request of a job may have 16 MB, and hiding its secrets takes a second.

They are made one at a time, so that they take no turns (`api/read_turns.py`) from other requests, and only if there is
room to send them (`api/answer_limit.py`): an answer that would be refused is not made.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from silkline.api.answer_limit import AnswerRoom
from silkline.api.caller_turns import CallerTurns


class LongAnswers:
    """Callers take turns. Runs on the event loop only."""

    def __init__(self, room: AnswerRoom) -> None:
        self._room = room
        self._turns = CallerTurns(most=1, most_each=1)

    def waiting(self, caller: str) -> int:
        """How many requests of a caller wait."""
        return self._turns.waiting(caller)

    @asynccontextmanager
    async def turn(self, caller: str, size: int) -> AsyncIterator[None]:
        """Wait until an answer of about this size may be made. Raises a `Problem` if there is no room to send it."""
        self._turns.admit(caller)
        async with self._turns.turn(caller):
            self._room.check(caller, size)
            yield

"""Downloads: answers that are made while they are sent. Their number is limited, and each holds little memory.

A piece is sent in small parts (`api/answer_limit.py`). A client that takes nothing for the time `api_answer_timeout` is
disconnected (`api/connections.py`), so its place becomes free.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

import anyio
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.types import Scope, Send

from silkline.api.caller_limit import CallerLimit

Pieces = Generator[bytes, None, None]


class Downloads:
    """All downloads of this process."""

    def __init__(self, *, most: int = 32, most_each: int = 8) -> None:
        self._limit = CallerLimit("downloads", "too-many-downloads", most=most, most_each=most_each)

    def answer(
        self, scope: Scope, pieces: Pieces, media_type: str, headers: Mapping[str, str] | None = None
    ) -> StreamingResponse:
        """The answer that sends these pieces. Raises a `Problem` if too many downloads are open."""
        self._limit.admit(scope)
        return _Download(pieces, media_type, headers)


class _Download(StreamingResponse):
    def __init__(self, pieces: Pieces, media_type: str, headers: Mapping[str, str] | None) -> None:
        super().__init__(pieces, media_type=media_type, headers=headers)
        self._pieces = pieces

    async def stream_response(self, send: Send) -> None:
        try:
            await super().stream_response(send)
        finally:  # frees what the pieces hold before the place becomes free
            with anyio.CancelScope(shield=True):
                await run_in_threadpool(self._pieces.close)

"""The Model Context Protocol on stdin and stdout. Lines that are no message are answered with an error.

The library drops them without an answer. JSON-RPC 2.0 wants one, with a null id: the client may wait for it.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import anyio
from mcp.server import MCPServer
from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError


def run_on_stdio(server: MCPServer[Any]) -> None:
    """Serve until stdin ends."""

    async def serve() -> None:
        lowlevel = server._lowlevel_server  # no public method of the library serves given streams
        async with stdio_server() as (messages, answers):
            await lowlevel.run(Messages(messages, answers), answers, lowlevel.create_initialization_options())

    anyio.run(serve)


class Messages:
    """The messages of a client. Implements `ReadStream`: lines that are no message are answered here."""

    def __init__(self, lines: ReadStream[SessionMessage | Exception], answers: WriteStream[SessionMessage]) -> None:
        self._lines = lines
        self._answers = answers

    async def receive(self) -> SessionMessage:
        while True:
            message = await self._lines.receive()
            if not isinstance(message, Exception):
                return message
            await self._answers.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=None, error=_error(message))))

    async def aclose(self) -> None:
        await self._lines.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _error(error: Exception) -> ErrorData:
    if isinstance(error, ValidationError) and all(each["type"] != "json_invalid" for each in error.errors()):
        return ErrorData(code=INVALID_REQUEST, message="Invalid request: this line is no message of JSON-RPC 2.0")
    return ErrorData(code=PARSE_ERROR, message="Parse error: this line is no JSON")

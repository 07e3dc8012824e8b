"""Tool calls that wait leave the threads of the MCP library to it: it reads stdin and writes stdout in them."""

import inspect
import threading
from typing import Any

import anyio
import anyio.to_thread
from anyio.from_thread import run_sync as on_the_loop

from silkline.api.client import Client
from silkline.api.mcp import THREADS, Tools, ToolThreads, server_of
from tests.support.supervisors import PATIENCE

CALLS = 100  # more than the library has threads


class WaitingServer:
    """Connections that stay without an answer until the end of the test."""

    def __init__(self) -> None:
        self.connections = 0
        self.all_threads_wait = anyio.Event()
        self.end = threading.Event()

    def connect(self) -> Client:
        on_the_loop(self._count)
        self.end.wait(PATIENCE)
        raise ConnectionRefusedError

    def _count(self) -> None:
        self.connections += 1
        if self.connections == THREADS:
            self.all_threads_wait.set()


def test_waiting_tools_leave_the_threads_of_the_library_free() -> None:
    async def main() -> None:
        waiting = WaitingServer()
        server: Any = server_of(Tools(waiting.connect))

        async def call() -> None:
            try:
                await server.call_tool("job", {"id": "x", "wait": 60})
            except Exception as error:
                assert "Error executing tool job" in str(error)  # noqa: PT017 - each call of many

        async with anyio.create_task_group() as calls:
            for _ in range(CALLS):
                calls.start_soon(call)
            try:
                with anyio.fail_after(PATIENCE / 2):
                    await waiting.all_threads_wait.wait()
                    assert await anyio.to_thread.run_sync(lambda: "read") == "read"
                assert waiting.connections == THREADS, "the other calls wait for a thread"
            finally:
                waiting.end.set()
        assert waiting.connections == CALLS, "then they have their turns"

    anyio.run(main)


def test_a_tool_in_its_thread_keeps_its_name_parameters_and_description() -> None:
    tool = Tools.job
    wrapped = ToolThreads()(tool)
    assert inspect.iscoroutinefunction(wrapped)
    assert (wrapped.__name__, wrapped.__doc__) == (tool.__name__, tool.__doc__)
    assert inspect.signature(wrapped) == inspect.signature(tool)

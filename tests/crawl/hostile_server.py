"""One web server that misbehaves, a route for each way. On loopback, in a thread of its own, for any test.

    with HostileServer() as server:
        server.url("/endless")        # http://127.0.0.1:PORT/endless
        server.requests               # what was asked so far, in order

The routes are in hostile_routes.py; `server.route` adds one for a test.
"""

import asyncio
import ssl
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

from tests.crawl.hostile_routes import ROUTES, Asked, Route, not_found


@dataclass
class HostileServer:
    """Listens on every one of `addresses` with one port."""

    addresses: Sequence[str] = ("127.0.0.1",)
    tls: ssl.SSLContext | None = None
    port: int = 0
    requests: list[Asked] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.routes: dict[str, Route] = dict(ROUTES)
        self._connections = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(30):
            raise RuntimeError("the hostile server did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)
        self._loop.close()

    def url(self, path: str, host: str = "") -> str:
        scheme = "https" if self.tls else "http"
        return f"{scheme}://{host or self.addresses[0]}:{self.port}{path}"

    def route(self, prefix: str, route: Route) -> None:
        """Add a route, or replace one."""
        self.routes[prefix] = route

    def paths(self) -> list[str]:
        """What was asked, in order."""
        return [asked.target for asked in self.requests]

    async def _run(self) -> None:
        servers = []
        for address in self.addresses:
            server = await asyncio.start_server(self._serve, address, self.port, ssl=self.tls, backlog=1024)
            self.port = server.sockets[0].getsockname()[1]
            servers.append(server)
        self._ready.set()
        await self._stop.wait()
        for server in servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._connections += 1
        number = self._connections
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ssl.SSLError):
                while not writer.is_closing():
                    asked = await self._read(reader, writer, number)
                    self.requests.append(asked)
                    await self._find(asked.path)(asked, writer)
                    await writer.drain()
        except asyncio.CancelledError:
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> Asked:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *rest = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
        address = writer.get_extra_info("sockname")[0]
        return Asked(method, target, headers, address, number, self._loop.time(), reader)

    def _find(self, path: str) -> Route:
        matching = [prefix for prefix in self.routes if path == prefix or path.startswith(prefix.rstrip("/") + "/")]
        return self.routes[max(matching, key=len)] if matching else not_found

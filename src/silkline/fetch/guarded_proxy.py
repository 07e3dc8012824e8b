"""The guard for programs that have their own HTTP client and follow redirects themselves, such as yt-dlp.

These programs send all requests through a proxy on loopback. The proxy resolves the names, checks the addresses of
every connection, and connects to an allowed address. It refuses other users of the machine. It runs in a thread, so
that code without an event loop can use it.
"""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Final

from silkline.errors import UsageError
from silkline.fetch.dns import SystemResolver, look_up
from silkline.fetch.guard import Exemption, Guard, parse_exemption
from silkline.fetch.origin import locate
from silkline.fetch.render_proxy import PageProxy

LOOPBACK: Final = "127.0.0.1"
_MOST_BYTES: Final = 1 << 30


class GuardedProxy:
    """Runs until `close`. `home` is a URL that the operator named: its address may be private."""

    def __init__(self, home: str) -> None:
        guard = Guard(_exemptions(home))
        self._loop = asyncio.new_event_loop()
        self._resolver = SystemResolver(threads=4)
        self._proxy = PageProxy(guard, self._resolver, None, _MOST_BYTES)
        self._loop.run_until_complete(self._proxy.open(LOOPBACK, LOOPBACK, os.geteuid()))
        self.url = self._proxy.address
        self._thread = threading.Thread(target=self._serve, name="guarded-proxy", daemon=True)
        self._thread.start()

    @property
    def refused(self) -> int:
        """The number of connections that were refused because the guard does not allow the address."""
        return self._proxy.refused

    def take_problem(self) -> str:
        """Why the last host could not be reached, since the last call; empty if all were reached."""
        problem, self._proxy.problem = self._proxy.problem, ""
        return problem

    def close(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def _serve(self) -> None:
        self._loop.run_forever()
        self._proxy.close()
        self._loop.run_until_complete(self._finish())
        self._resolver.close()
        self._loop.close()

    async def _finish(self) -> None:
        """Wait until the closed connections have ended."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)


def _exemptions(home: str) -> list[Exemption]:
    target = locate(home)
    if isinstance(target, str):
        raise UsageError(f"not a web address: {home!r}")
    origin = target.origin
    found = (origin.literal,) if origin.literal else look_up(origin.host)
    if isinstance(found, str):
        return []
    return [parse_exemption(f"[{each}]:{origin.port}" if ":" in each else f"{each}:{origin.port}") for each in found]

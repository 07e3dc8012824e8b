"""The guard for programs that speak HTTP themselves and follow redirects on their own, such as yt-dlp.

They send everything through a proxy on loopback, which looks names up, judges the addresses at every hop and connects
to one that passed. It runs in a thread, so that code without an event loop can use it.
"""

from __future__ import annotations

import asyncio
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
    """Open from the start until `close`. `home` is a URL that the operator named: its address may be private."""

    def __init__(self, home: str) -> None:
        guard = Guard(_exemptions(home))
        self._loop = asyncio.new_event_loop()
        self._resolver = SystemResolver(threads=4)
        self._proxy = PageProxy(guard, self._resolver, None, _MOST_BYTES)
        self._loop.run_until_complete(self._proxy.open(LOOPBACK, LOOPBACK))
        self.url = self._proxy.address
        self._thread = threading.Thread(target=self._serve, name="guarded-proxy", daemon=True)
        self._thread.start()

    @property
    def refused(self) -> int:
        """How many connections led to an address that the guard does not allow."""
        return self._proxy.refused

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
        """Let connections that were cut off end."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)


def _exemptions(home: str) -> list[Exemption]:
    target = locate(home)
    if isinstance(target, str):
        raise UsageError(f"this is no web address: {home!r}")
    origin = target.origin
    found = (origin.literal,) if origin.literal else look_up(origin.host)
    if isinstance(found, str):
        return []
    return [parse_exemption(f"[{each}]:{origin.port}" if ":" in each else f"{each}:{origin.port}") for each in found]

"""A service that answers JSON, such as Bluesky: one request at a time, with retries after temporary errors.

The operator sets the address of the service. So it may be a private address, unlike the addresses in a job.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from silkline.crawl.plan import user_agent_of
from silkline.errors import Permanent, Temporary
from silkline.fetch.client import HttpClient
from silkline.fetch.dns import SystemResolver
from silkline.fetch.guard import Exemption, Guard, parse_exemption
from silkline.fetch.origin import locate
from silkline.fetch.redirects_outside_ledger import follow
from silkline.fetch.settings import FetchSettings
from silkline.model.fetched import Fetched, Request, retry_after
from silkline.model.kind import Control
from silkline.model.reasons import unreachable

TRIES: Final = 4
LONGEST_WAIT: Final = 60.0
PACE: Final = 0.2
"""Seconds between the beginnings of two requests. Bluesky allows ten a second."""
_LOOK: Final = 0.2
_MOST_DIGITS: Final = 20


class Interrupted(Exception):
    """An order arrived while we waited."""


class Endpoint:
    """Must be created inside an event loop, and closed."""

    def __init__(self, name: str, base: str, control: Control, *, contact: str = "", wait: float = 1.0) -> None:
        self.name = name
        self._base = base.rstrip("/")
        self._control = control
        self._wait = wait
        self._next_at = 0.0
        fetching = FetchSettings(user_agent=user_agent_of(None, contact))
        self._client = HttpClient(fetching, Guard(_own_address(base)), SystemResolver())

    async def get(self, path: str, parameters: Mapping[str, Any] | None = None) -> Fetched:
        """The answer, also if it is an error. Temporary errors are retried, and after the last try raised as
        `Temporary`."""
        given = {name: value for name, value in (parameters or {}).items() if value is not None}
        url = f"{self._base}/{path.lstrip('/')}"
        if given:
            url += ("&" if "?" in url else "?") + urlencode(given, doseq=True, quote_via=quote)
        for attempt in range(1, TRIES + 1):
            fetched = await self._ask(url)
            if not fetched.temporary:
                return fetched
            wait = _patience(fetched, time.time())
            wait = self._wait * 2 ** (attempt - 1) if wait is None else wait
            if attempt == TRIES or wait > LONGEST_WAIT:
                raise Temporary(self._complaint(fetched, wait))
            await self._sleep(wait)
        raise AssertionError("unreachable")

    async def json(self, path: str, parameters: Mapping[str, Any] | None = None) -> tuple[Fetched, Any]:
        """The answer and the JSON in it; None if there is none."""
        fetched = await self.get(path, parameters)
        try:
            return fetched, _decoded(fetched.body) if fetched.body else None
        except (ValueError, RecursionError) as error:
            if fetched.ok:
                raise Temporary(f"{self.name} answered something that is not JSON: {error}") from error
            return fetched, None

    def close(self) -> None:
        self._client.close()
        self._client.resolver.close()

    async def _ask(self, url: str) -> Fetched:
        await self._sleep(self._next_at - time.monotonic())
        self._next_at = time.monotonic() + PACE
        asking = asyncio.ensure_future(follow(self._client, Request(url, purpose="other"), max_hops=5))
        try:
            while not (await asyncio.wait({asking}, timeout=_LOOK))[0]:
                if self._control.order:
                    raise Interrupted
            return asking.result()
        finally:
            asking.cancel()

    async def _sleep(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self._control.order:
                raise Interrupted
            await asyncio.sleep(min(left, _LOOK))

    def _complaint(self, fetched: Fetched, wait: float) -> str:
        if fetched.status == 429:
            return f"{self.name} limits how often it may be asked; it asks us to wait {wait:.0f} s"
        if fetched.status:
            return f"{self.name} cannot answer now (HTTP {fetched.status})"
        return unreachable(self.name, fetched.reason, fetched.detail)


def _decoded(body: bytes) -> Any:
    """The JSON in a body. One value that is not valid (a huge number, half of a character) costs only itself."""
    try:
        return msgspec.json.decode(body)
    except ValueError:
        found = json.loads(body.decode(errors="replace"), parse_int=_whole, parse_float=_finite, parse_constant=_none)
        return msgspec.json.decode(json.dumps(found, ensure_ascii=False).encode(errors="replace"))


def _whole(digits: str) -> int | None:
    return int(digits) if len(digits) <= _MOST_DIGITS else None


def _finite(written: str) -> float | None:
    value = float(written)
    return value if math.isfinite(value) else None


def _none(name: str) -> None:
    """NaN and Infinity are no JSON."""


def _patience(fetched: Fetched, now: float) -> float | None:
    """How many seconds the service asks us to wait, in `Retry-After` or in its rate-limit header."""
    asked = retry_after(fetched, now)
    if asked is not None:
        return asked
    reset = fetched.headers.get("ratelimit-reset", "")
    if fetched.status == 429 and reset.isascii() and reset.isdigit():
        return max(0.0, float(reset[:12]) - now) if float(reset[:12]) > 1e9 else float(reset[:12])
    return None


def _own_address(base: str) -> list[Exemption]:
    target = locate(base)
    if isinstance(target, str):
        raise Permanent(f"the setting is not a web address: {base!r}")
    literal = target.origin.literal
    if not literal:
        return []
    host = f"[{literal}]" if ":" in literal else literal
    return [parse_exemption(f"{host}:{target.origin.port}")]

"""A client for tests: allowed on loopback, quick to give up, with names from a table instead of DNS."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import uvloop

from silkline.fetch.client import HttpClient
from silkline.fetch.dns import Resolution
from silkline.fetch.guard import Guard, parse_exemption
from silkline.fetch.settings import FetchSettings
from silkline.model.fetched import HOST_UNKNOWN, Fetched, Request

T = TypeVar("T")

LOOPBACK = Guard([parse_exemption("127.0.0.0/8")])
# Long enough for a slow machine; what has to run into a limit gets one of its own.
SETTINGS = FetchSettings(connect_timeout=30, idle_timeout=30, total_timeout=60)


class Names:
    """A resolver that gives the answers it was told, one after the other; the last one stays."""

    def __init__(self, answers: Mapping[str, Sequence[Resolution]]) -> None:
        self._answers = {host: list(given) for host, given in answers.items()}
        self.asked: list[str] = []

    def cached(self, host: str) -> Resolution | None:
        return None

    async def resolve(self, host: str) -> Resolution:
        self.asked.append(host)
        answers = self._answers.get(host, [HOST_UNKNOWN])
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def close(self) -> None:
        pass


def with_client(
    use: Callable[[HttpClient], Awaitable[T]],
    *,
    guard: Guard = LOOPBACK,
    names: Names | None = None,
    **settings: object,
) -> T:
    """Run `use` with a client on a loop of its own. Anything raised on the way, also in callbacks, fails the test."""
    troubles: list[dict[str, object]] = []

    async def main() -> T:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: troubles.append(context))
        client = HttpClient(replace(SETTINGS, **settings), guard, names or Names({}))  # type: ignore[arg-type]
        try:
            return await asyncio.wait_for(_awaited(use(client)), 120)
        finally:
            client.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        result = runner.run(main())
    assert troubles == []
    return result


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable


def fetch(url: str | Request, **options: object) -> Fetched:
    """One hop."""
    request = url if isinstance(url, Request) else Request(url)
    return with_client(lambda client: client.fetch(request), **options)  # type: ignore[arg-type]

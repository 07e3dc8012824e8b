"""A web of good hosts with poison among them, on loopback, and supervisors whose processes are hurt by it."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.crawl.hostile_routes import Asked, answer
from tests.crawl.hostile_server import HostileServer

FOLDER = Path(__file__).parent / "poison"
ENVIRONMENT = {"PYTHONPATH": os.pathsep.join(filter(None, (str(FOLDER), os.environ.get("PYTHONPATH"))))}
GOOD_PAGES = 12


def page(*links: str, poison: str = "") -> bytes:
    text = "".join(f'<a href="{link}">a page</a> ' for link in links)
    return answer(f"<title>A page</title><p>{poison} {text}".encode())


class PoisonedWeb:
    """Every host has good pages, each linked from the first; some have poison among them.

    `poison` says what stands in the page `/poison/NUMBER` of which host; `robots` which hosts have it in robots.txt.
    """

    def __init__(self, server: HostileServer, poison: dict[str, Sequence[str]], robots: dict[str, str]) -> None:
        self.server = server
        self.poison = poison
        self.robots = robots
        server.route("/", self._answer)
        server.route("/robots.txt", self._robots)

    @property
    def seeds(self) -> list[str]:
        return [self.server.url("/", host) for host in self.server.addresses]

    @property
    def good(self) -> set[str]:
        hosts = [host for host in self.server.addresses if host not in self.robots]
        pages = {self.server.url(f"/good/{number}", host) for host in hosts for number in range(GOOD_PAGES)}
        return pages | {self.server.url("/", host) for host in hosts}

    @property
    def bad(self) -> dict[str, str]:
        """Each poisoned page, and what it does."""
        return {
            self.server.url(f"/poison/{number}", host): what
            for host, several in self.poison.items()
            for number, what in enumerate(several)
        }

    async def _robots(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        what = self.robots.get(asked.address)
        writer.write(answer(f"# POISON:{what}".encode()) if what else answer(b"", "404 Not Found"))

    async def _answer(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        poison = self.poison.get(asked.address, ())
        if asked.path == "/":
            bad = [f"/poison/{number}" for number in range(len(poison))]
            good = [f"/good/{number}" for number in range(GOOD_PAGES)]
            middle = GOOD_PAGES // 2
            writer.write(page(*good[:middle], *bad, *good[middle:]))
        elif asked.path.startswith("/poison/"):
            writer.write(page(poison="POISON:" + poison[int(asked.path.rpartition("/")[2])]))
        else:
            writer.write(page())


@contextmanager
def poisoned_web(
    poison: dict[str, Sequence[str]], robots: dict[str, str] | None = None, hosts: int = 6
) -> Iterator[PoisonedWeb]:
    with HostileServer(addresses=[f"127.0.0.{number}" for number in range(1, hosts + 1)]) as server:
        yield PoisonedWeb(server, poison, robots or {})

"""A web of good pages with one bomb on each of some further hosts, in a process of its own.

    python poisoned_web.py HOSTS PAGES

prints its port, then serves until its standard input ends.
A host with a bomb has a front page, the bomb (`/bomb`, /robots.txt or a sitemap) and three good pages.
`GET /__log` on 127.0.0.1 gives the log of requests as JSON lines: time, host and path.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
import time
from functools import cache

import uvloop

from tests.chaos.poison import PAGES, ROBOTS, SITEMAPS, Answer

NAMES = {
    f"127.100.{number // 200}.{1 + number % 200}": name for number, name in enumerate([*PAGES, *ROBOTS, *SITEMAPS])
}
MAKERS = PAGES | ROBOTS | SITEMAPS


def good_hosts(hosts: int) -> list[str]:
    return [f"127.50.{number // 200}.{1 + number % 200}" for number in range(hosts)]


@cache
def bomb(name: str) -> Answer:
    answer = MAKERS[name]()
    if not answer.compress:
        return answer
    packed = gzip.compress(answer.body, 9, mtime=0)
    return Answer(packed, answer.content_type, {**answer.headers, "Content-Encoding": "gzip"})


class PoisonedWeb:
    """What each host answers."""

    def __init__(self, hosts: int, pages: int) -> None:
        self.hosts, self.pages, self.port = good_hosts(hosts), pages, 0

    def seeds(self) -> list[str]:
        """The first page of every host, bombs among good hosts."""
        good = [f"http://{host}:{self.port}/page/0" for host in self.hosts]
        return sorted([*good, *(f"http://{host}:{self.port}/" for host in NAMES)], key=lambda url: url[::-1])

    def good(self) -> set[str]:
        """Every page that must be stored, the good pages of a bomb's host included."""
        own = {f"http://{host}:{self.port}/page/{page}" for host in self.hosts for page in range(self.pages)}
        beside = {
            f"http://{host}:{self.port}{path}"
            for host, name in NAMES.items()
            if name not in ROBOTS
            for path in ("/", "/good/0", "/good/1", "/good/2")
        }
        return own | beside

    def answer(self, host: str, path: str) -> Answer | None:
        name = NAMES.get(host, "")
        if path == "/robots.txt":
            return self.robots(name)
        if name and path == ("/bomb" if name in PAGES else "/map.xml" if name in SITEMAPS else None):
            return bomb(name)
        if name and path == "/":
            links = "".join(f"<a href={to}>{to}</a> " for to in ("/good/0", "/bomb", "/good/1", "/good/2"))
            return text(f"Front of {name}", links)
        if name and path.startswith("/good/"):
            return text(f"{path} of {name}", "")
        if host in self.hosts and path.startswith("/page/"):
            return self.page(host, int(path.rpartition("/")[2]))
        return None

    def robots(self, name: str) -> Answer | None:
        if name in ROBOTS:
            return bomb(name)
        return Answer(b"User-agent: *\nDisallow:\nSitemap: /map.xml\n", "text/plain") if name in SITEMAPS else None

    def page(self, host: str, number: int) -> Answer:
        links = [f"/page/{(number * 2 + step) % self.pages}" for step in (1, 2)]
        return text(f"Page {number} of {host}", "".join(f"<a href={link}>on</a>\n" for link in links))


def text(title: str, links: str) -> Answer:
    return Answer(f"<html><title>{title}</title><body><p>{title}: {'words ' * 40}</p>{links}</body></html>".encode())


class Connection(asyncio.Protocol):
    def __init__(self, web: PoisonedWeb, log: list[tuple[float, str, str]]) -> None:
        self.web, self.log, self.buffer = web, log, b""

    def connection_made(self, transport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while b"\r\n\r\n" in self.buffer:
            head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode()
            host = self.transport.get_extra_info("sockname")[0]
            if path == "/__log":
                self.send(Answer("\n".join(map(json.dumps, self.log)).encode(), "text/plain"))
            else:
                self.log.append((time.time(), host, path))
                self.send(self.web.answer(host, path))

    def send(self, answer: Answer | None) -> None:
        status = "200 OK" if answer is not None else "404 Not Found"
        answer = answer or Answer(b"no such page", "text/plain")
        headers = {"Content-Type": answer.content_type, "Content-Length": str(len(answer.body)), **answer.headers}
        lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        if not self.transport.is_closing():
            self.transport.write("\r\n".join(lines).encode() + answer.body)


async def main(hosts: int, pages: int) -> None:
    web, log = PoisonedWeb(hosts, pages), []
    for name in MAKERS:
        bomb(name)
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(lambda: Connection(web, log), "0.0.0.0", 0, backlog=4096)
    web.port = listener.sockets[0].getsockname()[1]
    print(web.port, flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), int(sys.argv[2])))

"""A web with a known graph: many hosts on 127.x.y.z, one process, a log of every request.

    python synthetic_web.py HOSTS PAGES SEED LATENCY NETWORK CONTROL

prints its port, then serves until its standard input ends. `GET /__log` on 127.0.0.1 gives the log as JSON lines:
time, host and path; `GET /__connections` how many connections there were. NETWORK is the first number of all addresses;
CONTROL, if it is not empty, is the path of a socket that also answers these requests.
After `GET /__slow/20` only twenty more pages come after LATENCY, the others after a second, so
that a crawl is not over before the test has seen to it; `GET /__slow/never` ends that.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import sys
import time

import uvloop

SLOW = 1.0


class Web:
    """Pages and their links, from a seed. The same numbers give the same web in every process."""

    def __init__(self, hosts: int, pages: int, seed: int, network: str = "127") -> None:
        chance = random.Random(seed)
        self.hosts = [f"{network}.{1 + number // 200}.{number % 200}.{1 + number % 7}" for number in range(hosts)]
        self.places = [(host, page) for host in self.hosts for page in range(pages)]
        self.links: dict[tuple[str, int], list[tuple[str, int]]] = {}
        for host, page in self.places:
            own = [(host, chance.randrange(pages)) for _ in range(4)]
            abroad = [chance.choice(self.places) for _ in range(2)]
            self.links[(host, page)] = own + abroad
        self.start = self.places[0]

    def url(self, place: tuple[str, int], port: int) -> str:
        return f"http://{place[0]}:{port}/page/{place[1]}"

    def reachable(self) -> set[tuple[str, int]]:
        """What a crawl from the start must find."""
        seen, todo = {self.start}, [self.start]
        while todo:
            for target in self.links[todo.pop()]:
                if target not in seen:
                    seen.add(target)
                    todo.append(target)
        return seen


class Site(asyncio.Protocol):
    def __init__(self, server: Server) -> None:
        self.server = server
        self.buffer = b""

    def connection_made(self, transport) -> None:
        self.transport = transport
        self.server.connections += 1

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while b"\r\n\r\n" in self.buffer:
            head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode()
            host = self.transport.get_extra_info("sockname")[0]
            self.server.answer(self.transport, host, path)


class Server:
    def __init__(self, web: Web, latency: float) -> None:
        self.web = web
        self.latency = latency
        self.log: list[tuple[float, str, str]] = []
        self.quick = math.inf
        self.port = 0
        self.connections = 0

    def answer(self, transport, host: str, path: str) -> None:
        if path == "/__log":
            body = "\n".join(json.dumps(line) for line in self.log).encode()
            self.send(transport, b"200 OK", body)
            return
        if path == "/__connections":
            self.send(transport, b"200 OK", b"%d" % self.connections)
            return
        if path.startswith("/__slow/"):
            after = path.rpartition("/")[2]
            self.quick = math.inf if after == "never" else int(after)
            self.send(transport, b"200 OK", b"")
            return
        self.log.append((time.time(), host, path))
        self.quick -= path.startswith("/page/")
        latency = self.latency if self.quick >= 0 else SLOW
        if latency:
            asyncio.get_running_loop().call_later(latency, self.serve, transport, host, path)
        else:
            self.serve(transport, host, path)

    def serve(self, transport, host: str, path: str) -> None:
        if not path.startswith("/page/"):
            self.send(transport, b"404 Not Found", b"no such page")
            return
        page = int(path.rpartition("/")[2])
        links = "".join(
            f'<a href="{self.web.url(target, self.port)}">{target[1]}</a>\n' for target in self.web.links[(host, page)]
        )
        filler = f"<p>This is page {page} of {host}. " + "words " * 40 + "</p>"
        self.send(
            transport,
            b"200 OK",
            f"<html><title>Page {page} of {host}</title><body>{filler}{links}</body></html>".encode(),
        )

    def send(self, transport, status: bytes, body: bytes) -> None:
        if transport.is_closing():
            return
        transport.write(
            b"HTTP/1.1 %s\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n%s"
            % (status, len(body), body)
        )


async def main(web: Web, latency: float, control: str) -> None:
    loop = asyncio.get_running_loop()
    server = Server(web, latency)
    controlled = await loop.create_unix_server(lambda: Site(server), control) if control else None
    listener = await loop.create_server(lambda: Site(server), "0.0.0.0", 0, backlog=4096)
    server.port = listener.sockets[0].getsockname()[1]
    print(server.port, flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    if controlled is not None:
        controlled.close()


if __name__ == "__main__":
    served = Web(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[5])
    uvloop.run(main(served, float(sys.argv[4]), sys.argv[6]))

"""robots.txt over the wire, failing in each way."""

import asyncio
import gzip
import time
from collections.abc import Iterator

import pytest

from silkline.fetch.client import HttpClient
from silkline.fetch.robots import MAX_BYTES, Robots, load
from silkline.model.fetched import Request
from tests.crawl.hostile_client import with_client
from tests.crawl.hostile_routes import Asked, Route, answer
from tests.crawl.hostile_server import HostileServer

RULES = b"User-agent: *\nDisallow: /private\n"


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer() as running:
        yield running


def load_from(server: HostileServer, **settings: object) -> Robots:
    return with_client(lambda client: load(client, server.url(""), time.time), **settings)  # type: ignore[arg-type]


def verdict(server: HostileServer, **settings: object) -> tuple[bool, bool, str | None]:
    """Whether an open path and a private one are allowed, and why."""
    robots = load_from(server, **settings)
    return robots.allows(server.url("/open")), robots.allows(server.url("/private/x")), robots.reason


def say(raw: bytes) -> Route:
    async def route(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        writer.close()

    return route


@pytest.mark.parametrize(
    "raw",
    [
        answer(RULES, content_type="text/plain"),
        answer(RULES, content_type="text/html; charset=lies"),
        answer(gzip.compress(RULES), content_encoding="gzip"),
        answer(RULES + b"#" * MAX_BYTES),
        answer(gzip.compress(RULES + b"#" * 50_000_000), content_encoding="gzip"),
        b"HTTP/1.1 200 OK\r\n\r\n" + RULES,
    ],
    ids=["plain", "wrong type", "gzip", "too long", "bomb", "no length"],
)
def test_files_that_can_be_read(server: HostileServer, raw: bytes) -> None:
    server.route("/robots.txt", say(raw))
    assert verdict(server) == (True, False, None)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (answer(b"", "503 Down"), "http_503"),
        (answer(b"", "429 Slow down"), "http_429"),
        (b"", "reset"),
        (b"nonsense", "bad_response"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + RULES, "truncated"),
        (answer(b"not gzip", content_encoding="gzip"), "bad_encoding"),
        (answer(b"", "302 Moved", location="http://169.254.169.254/robots.txt"), "address_blocked"),
        (answer(b"", "302 Moved", location="file:///etc/robots.txt"), "scheme_blocked"),
    ],
)
def test_failures_close_the_host(server: HostileServer, raw: bytes, reason: str) -> None:
    server.route("/robots.txt", say(raw))
    assert verdict(server) == (False, False, reason)


def test_silence_closes_the_host(server: HostileServer) -> None:
    server.route("/robots.txt", server.routes["/hang"])

    async def ask(client: HttpClient) -> Robots:
        # With a connection to begin with: a loaded machine may need all of the time to make one.
        while not (await client.fetch(Request(server.url("/ok")))).ok:
            continue
        return await load(client, server.url(""), time.time)

    robots = with_client(ask, total_timeout=0.3)
    assert (robots.allows(server.url("/open")), robots.reason) == (False, "timeout")


def test_no_file_opens_the_host(server: HostileServer) -> None:
    assert verdict(server) == (True, True, "http_404")


@pytest.mark.parametrize(("hops", "expected"), [(5, (True, False, None)), (6, (True, True, "too_many_redirects"))])
def test_five_redirects_are_followed(server: HostileServer, hops: int, expected: object) -> None:
    async def chain(asked: Asked, writer: asyncio.StreamWriter) -> None:
        left = int(asked.query.get("left", hops))
        writer.write(answer(b"", "301 Moved", location=f"?left={left - 1}") if left else answer(RULES))

    server.route("/robots.txt", chain)
    assert verdict(server) == expected
    assert len(server.requests) == 6


def test_an_endless_file_is_cut(server: HostileServer) -> None:
    async def endless(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + RULES)
        while not writer.is_closing():
            writer.write(b"# and so on\n" * 1000)
            await writer.drain()

    server.route("/robots.txt", endless)
    assert verdict(server) == (True, False, None)

"""Each way a server can misbehave gives its own reason: no exception, no hang, nothing above the limits."""

import asyncio
from collections.abc import Iterator
from urllib.parse import quote_plus

import pytest

from silkline.fetch.client import HttpClient
from silkline.fetch.handle import Budget, Handle
from silkline.model import fetched
from silkline.model.fetched import Fetched, Request
from tests.crawl.hostile_client import LOOPBACK, SETTINGS, fetch, with_client
from tests.crawl.hostile_routes import PAGE, RAW_RESPONSES
from tests.crawl.hostile_routes import answer as head
from tests.crawl.hostile_server import HostileServer
from tests.crawl.odd_encodings import BROKEN, CORRECT, HTML

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    with HostileServer() as running:
        yield running


@pytest.mark.parametrize("encodings", ["gzip", "deflate", "br", "zstd", "gzip,gzip", "br,gzip", "gzip,zstd,br"])
def test_bombs(server: HostileServer, encodings: str) -> None:
    answer = fetch(server.url(f"/bomb/{encodings}?mib=50"), max_body=2 * MIB)
    assert answer.reason == fetched.BODY_TOO_LARGE
    assert answer.body == b""


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
def test_the_limit_is_exact(server: HostileServer, encoding: str) -> None:
    url = server.url(f"/bomb/{encoding}?mib=11")
    assert fetch(url, max_body=11 * MIB - 1).reason == fetched.BODY_TOO_LARGE
    assert len(fetch(url, max_body=11 * MIB).body) == 11 * MIB


@pytest.mark.parametrize("name", CORRECT)
def test_odd_but_correct_encodings(server: HostileServer, name: str) -> None:
    answer = fetch(server.url(f"/odd-encoding/{name}"))
    assert answer.ok
    assert answer.body == HTML


@pytest.mark.parametrize("name", BROKEN)
def test_broken_gzip(server: HostileServer, name: str) -> None:
    assert fetch(server.url(f"/odd-encoding/{name}")).reason == fetched.BAD_ENCODING


def test_a_hundred_thousand_gzip_members(server: HostileServer) -> None:
    assert fetch(server.url("/members")).reason == fetched.BAD_ENCODING


@pytest.mark.parametrize("how", ["", "?chunked=1", "?gzip=1", "?gzip=1&chunked=1"])
def test_endless_bodies(server: HostileServer, how: str) -> None:
    answer = fetch(server.url(f"/endless{how}"), max_wire=64 * 1024)
    assert answer.reason == fetched.BODY_TOO_LARGE
    assert answer.wire_bytes < MIB


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_a_body_in_tiny_chunks_is_given_up(server: HostileServer, size: int) -> None:
    answer = fetch(server.url(f"/chunks/{size}?n={9 * MIB // size}"))
    assert answer.reason == fetched.TOO_MANY_CHUNKS
    assert answer.wire_bytes < MIB


@pytest.mark.parametrize(("size", "number"), [(1, 30_000), (2, 5_000), (20, 45_000), (100, 90_000), (3_000, 3_000)])
def test_a_page_in_small_chunks_comes_whole(server: HostileServer, size: int, number: int) -> None:
    answer = fetch(server.url(f"/chunks/{size}?n={number}"))
    assert answer.reason is None
    assert answer.body == b"x" * size * number


def test_small_chunks_are_joined_as_they_come() -> None:
    handle = Handle(SETTINGS, Budget(MIB), LOOPBACK.check)
    handle.limit(MIB, cut=False)
    for data in (b"ab", b"cd", b"E" * 5_000, b"fg", b"hi"):
        assert handle._on_body(data) is None
    assert handle.parts == [b"abcd", b"E" * 5_000, b"fghi"]
    assert handle.body() == b"abcd" + b"E" * 5_000 + b"fghi"
    handle.clear()
    handle._on_body(b"ab")
    assert type(handle.body()) is bytes


def test_a_body_too_large_is_refused_by_its_length_alone(server: HostileServer) -> None:
    assert fetch(server.url("/promised/999999999")).reason == fetched.BODY_TOO_LARGE


def test_a_body_may_be_cut_instead(server: HostileServer) -> None:
    cut = fetch(Request(server.url("/endless"), max_body=1000, cut=True))
    assert (cut.reason, cut.body) == (None, bytes(1000))
    zipped = fetch(Request(server.url("/endless?gzip=1"), max_body=1000, cut=True))
    assert (zipped.reason, zipped.body) == (None, bytes(1000))
    assert fetch(Request(server.url("/ok"), max_body=10, cut=True)).body == PAGE[:10]


@pytest.mark.parametrize(
    "path", ["/hang", "/hang-in-headers", "/hang-in-body", "/drip", "/drip-headers", "/informational/endless"]
)
def test_servers_that_never_finish(server: HostileServer, path: str) -> None:
    async def ask(client: HttpClient) -> Fetched:
        # With a connection to begin with: a loaded machine may need all of the time to make one.
        while not (await client.fetch(Request(server.url("/ok")))).ok:
            continue
        return await client.fetch(Request(server.url(path)))

    answer = with_client(ask, total_timeout=0.5)
    assert answer.reason in (fetched.TIMEOUT, fetched.HEADERS_TOO_LARGE)
    if path != "/informational/endless":
        assert answer.reason == fetched.TIMEOUT


def test_a_server_that_stalls_is_given_up_before_the_deadline(server: HostileServer) -> None:
    answer = fetch(server.url("/hang-in-body"), idle_timeout=1, total_timeout=50)
    assert answer.reason == fetched.TIMEOUT
    assert answer.timings.total < 50


@pytest.mark.parametrize("path", ["/huge-headers/many", "/huge-headers/one", "/large-headers/100000"])
def test_headers_too_large(server: HostileServer, path: str) -> None:
    answer = fetch(server.url(path))
    assert (answer.reason, answer.headers) == (fetched.HEADERS_TOO_LARGE, {})
    assert answer.wire_bytes < MIB


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/truncated/length", fetched.TRUNCATED),
        ("/truncated/chunked", fetched.TRUNCATED),
        ("/truncated/gzip", fetched.BAD_ENCODING),
        ("/reset/before", fetched.RESET),
        ("/reset/during", fetched.RESET),
        ("/silence", fetched.RESET),
        ("/garbage", fetched.BAD_RESPONSE),
        ("/old", fetched.BAD_RESPONSE),
        ("/bad-chunks", fetched.BAD_RESPONSE),
        ("/lengths/differ", fetched.BAD_RESPONSE),
        ("/lengths/negative", fetched.BAD_RESPONSE),
        ("/lengths/words", fetched.BAD_RESPONSE),
        ("/lengths/huge", fetched.BODY_TOO_LARGE),
    ],
)
def test_broken_answers(server: HostileServer, path: str, reason: str) -> None:
    answer = fetch(server.url(path))
    assert answer.reason == reason, answer
    assert answer.body == b""


@pytest.mark.parametrize("status", ["200 OK", "204 No Content", "302 Found", "404 Not Found", "503 Busy"])
@pytest.mark.parametrize("left", [1, 2, 10, 25, 40])
def test_an_answer_that_is_cut_within_its_head(server: HostileServer, status: str, left: int) -> None:
    """Whatever its status line says, it is a passing failure and neither an empty page nor a redirect."""
    length = len(head(b"", status, location="/ok")) - left
    answer = fetch(server.url(f"/cut-head/{length}?status={quote_plus(status)}"))
    assert (answer.reason, answer.location, answer.body, answer.headers) == (fetched.TRUNCATED, None, b"", {})
    assert fetched.is_temporary(answer.reason)


def test_an_answer_of_a_head_only_is_whole(server: HostileServer) -> None:
    assert fetch(server.url("/cut-head/1000")).reason is None


def test_chunks_win_over_a_length(server: HostileServer) -> None:
    assert fetch(server.url("/lengths/chunked")).body == b"hello"


def test_raw_responses_each_give_a_value(server: HostileServer) -> None:
    names = sorted(path.name for path in RAW_RESPONSES.glob("*.asis"))
    assert len(names) == 103

    async def ask(client: HttpClient) -> dict[str, Fetched]:
        return {name: await client.fetch(Request(server.url(f"/asis/{name}"))) for name in names}

    answers = with_client(ask)
    for name, answer in answers.items():
        assert answer.ok or answer.reason is not None, name
        assert not answer.ok or answer.status == 200, name
    assert {answer.reason for answer in answers.values()} <= {None, fetched.BAD_RESPONSE, fetched.TRUNCATED, "http_0"}
    assert sum(answer.ok for answer in answers.values()) > 20


def test_many_large_bodies_at_once_stay_within_the_memory_allowed(server: HostileServer) -> None:
    async def ask(client: HttpClient) -> tuple[list[str | None], int]:
        answers = await asyncio.gather(*(client.fetch(Request(server.url("/large/2000000"))) for _ in range(20)))
        return [answer.reason for answer in answers], client.buffered

    reasons, left = with_client(ask, max_buffered=8 * MIB, max_wire=3 * MIB)
    assert fetched.MEMORY_FULL in reasons
    assert set(reasons) <= {fetched.MEMORY_FULL, None}
    assert left == 0

"""What the client does with servers that behave."""

import asyncio
import json
import time
from collections.abc import Iterator

import pytest

from silkline.errors import UsageError
from silkline.fetch.client import HttpClient
from silkline.fetch.settings import FetchSettings
from silkline.model import fetched
from silkline.model.fetched import Fetched, Request
from tests.crawl.hostile_client import Names, fetch, with_client
from tests.crawl.hostile_routes import PAGE, Asked
from tests.crawl.hostile_server import HostileServer


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    with HostileServer() as running:
        yield running


def test_a_page_comes_back_with_all_that_is_known_of_it(server: HostileServer) -> None:
    page = fetch(server.url("/ok"))
    assert (page.ok, page.status, page.reason, page.body) == (True, 200, None, PAGE)
    assert page.content_type == "text/html"
    assert page.address == "127.0.0.1"
    assert page.http_version == "1.1"
    assert page.wire_bytes > len(PAGE)
    assert 0 < page.timings.connected <= page.timings.first_byte <= page.timings.total


@pytest.mark.parametrize(
    "encodings",
    ["gzip", "deflate", "br", "zstd", "gzip,br", "zstd,gzip,br"],
)
def test_encoded_bodies_are_decoded(server: HostileServer, encodings: str) -> None:
    assert fetch(server.url(f"/encoded/{encodings}")).body == PAGE


def test_more_layers_than_any_honest_server_needs_are_refused(server: HostileServer) -> None:
    assert fetch(server.url("/encoded/gzip,gzip,gzip,gzip")).reason == fetched.BAD_ENCODING


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 418, 429, 500, 503, 599, 206, 300])
def test_a_status_that_is_no_page_is_the_reason(server: HostileServer, status: int) -> None:
    assert fetch(server.url(f"/status/{status}")).reason == f"http_{status}"


def test_the_charset_is_passed_on(server: HostileServer) -> None:
    answer = fetch(server.url("/status/200?content-type=text/HTML%3B+Charset%3D%22ISO-8859-1%22"))
    assert (answer.content_type, answer.charset) == ("text/html", "iso-8859-1")


def test_a_known_page_is_unchanged(server: HostileServer) -> None:
    first = fetch(server.url("/conditional"))
    by_etag = fetch(Request(server.url("/conditional"), etag=first.headers["etag"]))
    by_date = fetch(Request(server.url("/conditional"), last_modified=first.headers["last-modified"]))
    assert first.ok
    assert by_etag.unchanged
    assert by_date.unchanged


def test_unchanged_without_having_asked_is_a_failure(server: HostileServer) -> None:
    assert fetch(server.url("/status/304")).reason == "http_304"


def test_a_validator_that_no_header_may_hold_is_left_out(server: HostileServer) -> None:
    assert fetch(Request(server.url("/conditional"), etag='"v1"\r\nX-Smuggled: 1')).ok
    assert "x-smuggled" not in server.requests[-1].headers


def test_headers_before_the_answer_and_behind_it_do_not_count(server: HostileServer) -> None:
    early = fetch(server.url("/informational/3"))
    assert early.ok
    assert "x-early" not in early.headers
    late = fetch(server.url("/trailers"))
    assert (late.body, late.content_type) == (b"hi", "")


def test_connections_are_used_again(server: HostileServer) -> None:
    async def twice(client: HttpClient) -> None:
        await client.fetch(Request(server.url("/ok")))
        await client.fetch(Request(server.url("/ok?again")))

    with_client(twice)
    first, second = server.requests[-2:]
    assert first.connection == second.connection


def test_many_at_once_each_get_their_own_answer(server: HostileServer) -> None:
    async def many(client: HttpClient) -> list[Fetched]:
        return await asyncio.gather(*(client.fetch(Request(server.url(f"/status/{200 + n}"))) for n in range(300)))

    answers = with_client(many)
    assert [answer.status for answer in answers] == [200 + n for n in range(300)]


def test_headers_of_a_request_replace_those_of_the_job_and_do_not_stay(server: HostileServer) -> None:
    own = {server.url(""): (("X-Job", "job"), ("Cookie", "a=1"))}

    async def three(client: HttpClient) -> list[dict[str, str]]:
        url = server.url("/echo")
        answers = [await client.fetch(Request(url, headers=headers)) for headers in ((), (("x-job", "page"),), ())]
        return [json.loads(answer.body) for answer in answers]

    first, second, third = with_client(three, origin_headers=own)
    assert (first["x-job"], first["cookie"]) == ("job", "a=1")
    assert (second["x-job"], second["cookie"]) == ("page", "a=1")
    assert third["x-job"] == "job"


def test_headers_of_one_origin_are_not_sent_to_another(server: HostileServer) -> None:
    own = {"http://one.test:" + str(server.port): (("X-Job", "secret"),)}

    async def both(client: HttpClient) -> tuple[Fetched, Fetched]:
        one = await client.fetch(Request(server.url("/echo", "one.test")))
        return one, await client.fetch(Request(server.url("/echo", "two.test")))

    names = Names({"one.test": [("127.0.0.1",)], "two.test": [("127.0.0.1",)]})
    one, two = with_client(both, names=names, origin_headers=own)
    assert json.loads(one.body)["x-job"] == "secret"
    assert "x-job" not in json.loads(two.body)


def test_credentials_in_the_url_become_a_header(server: HostileServer) -> None:
    answer = fetch(server.url("/echo").replace("://", "://user:p%40ss@"))
    assert json.loads(answer.body)["authorization"] == "Basic dXNlcjpwQHNz"
    assert "p%40ss" not in answer.url


@pytest.mark.parametrize("header", [("X-A", "1\r\nX-B: 2"), ("X-A: 1\r\nX-B", "2"), ("", "1"), ("X A", "1")])
def test_headers_that_would_smuggle_others_are_not_sent(server: HostileServer, header: tuple[str, str]) -> None:
    asked = len(server.requests)
    assert fetch(Request(server.url("/echo"), headers=(header,))).reason == fetched.BAD_REQUEST
    assert len(server.requests) == asked
    with pytest.raises(UsageError):
        FetchSettings(origin_headers={server.url(""): (header,)})


def test_headers_need_an_origin_not_a_url() -> None:
    with pytest.raises(UsageError, match="origin"):
        FetchSettings(origin_headers={"https://example.com/path": ()})


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://127.0.0.1/", fetched.SCHEME_BLOCKED),
        ("file:///etc/passwd", fetched.SCHEME_BLOCKED),
        ("gopher://127.0.0.1/x", fetched.SCHEME_BLOCKED),
        ("javascript:alert(1)", fetched.SCHEME_BLOCKED),
        ("http://", fetched.BAD_URL),
        ("http://a b/", fetched.BAD_URL),
        ("nothing", fetched.BAD_URL),
        ("http://127.0.0.1:0/", fetched.BAD_URL),
        ("http://\ud800.test/", fetched.BAD_URL),
        ("http://nobody.test/", fetched.HOST_UNKNOWN),
    ],
)
def test_a_url_that_leads_nowhere_is_a_value_too(url: str, reason: str) -> None:
    assert fetch(url).reason == reason


def test_a_wait_that_is_cancelled_ends_the_transfer(server: HostileServer) -> None:
    async def cancel(client: HttpClient) -> Fetched:
        arrived = asyncio.Event()
        loop = asyncio.get_running_loop()
        gone = asyncio.Event()

        async def watch(asked: Asked, writer: asyncio.StreamWriter) -> None:
            loop.call_soon_threadsafe(arrived.set)
            await asked.gone()
            loop.call_soon_threadsafe(gone.set)

        server.route("/watched", watch)
        task = asyncio.create_task(client.fetch(Request(server.url("/watched"))))
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await gone.wait()
        return await client.fetch(Request(server.url("/ok")))

    assert with_client(cancel).ok


def test_closing_tells_those_who_wait(server: HostileServer) -> None:
    async def close(client: HttpClient) -> list[Fetched]:
        waiting = asyncio.gather(*(client.fetch(Request(server.url("/hang"))) for _ in range(3)))
        await asyncio.sleep(0)
        client.close()
        client.close()
        return [*await waiting, await client.fetch(Request(server.url("/ok")))]

    assert [answer.reason for answer in with_client(close)] == [fetched.CLOSED] * 4


def test_a_callback_that_raises_does_not_stop_the_others(server: HostileServer) -> None:
    async def use(client: HttpClient) -> tuple[Fetched, list[str]]:
        loop = asyncio.get_running_loop()
        told: list[str] = []
        raised = asyncio.Event()

        def report(_: object, context: dict[str, object]) -> None:
            told.append(str(context["exception"]))
            raised.set()

        def fail(_: Fetched) -> None:
            raise ValueError("a bug of the caller")

        loop.set_exception_handler(report)
        client.start(Request(server.url("/ok")), fail)
        await raised.wait()
        return await client.fetch(Request(server.url("/ok"))), told

    page, told = with_client(use)
    assert page.ok
    assert told == ["a bug of the caller"]


def test_a_time_that_ran_out_while_nobody_looked_is_not_the_servers_fault(server: HostileServer) -> None:
    """A page that takes long to read keeps the process from seeing the answer of another server."""

    async def ask(client: HttpClient) -> Fetched:
        client.start(Request(server.url("/ok")), lambda _: time.sleep(2.5))  # the slow reading
        return await client.fetch(Request(server.url("/late")))

    assert with_client(ask, total_timeout=2.0).reason is None

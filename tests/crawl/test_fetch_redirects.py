"""Redirects: one hop at a time, asked about each, and nothing private carried over to another origin."""

import asyncio
import json
from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest

from silkline.fetch.guard import Guard, parse_exemption
from silkline.fetch.redirects_outside_ledger import allow_all, follow
from silkline.model import fetched
from silkline.model.fetched import Fetched, Request
from tests.crawl.hostile_client import LOOPBACK, Names, fetch, with_client
from tests.crawl.hostile_routes import Asked, answer
from tests.crawl.hostile_server import HostileServer

NAMES = {"one.test": [("127.0.0.1",)], "two.test": [("127.0.0.2",)]}


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    with HostileServer(addresses=("127.0.0.1", "127.0.0.2")) as running:
        yield running


def chase(
    request: str | Request,
    allow: Callable[[str], str | None] = allow_all,
    max_hops: int = 10,
    guard: Guard = LOOPBACK,
    **settings: object,
) -> Fetched:
    first = Request(request) if isinstance(request, str) else request
    return with_client(
        lambda client: follow(client, first, allow, max_hops=max_hops), guard=guard, names=Names(NAMES), **settings
    )


def redirect(server: HostileServer, to: str, host: str = "") -> str:
    return server.url(f"/redirect?to={quote(to, safe='')}", host)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_the_client_makes_one_hop_and_says_where_the_next_one_leads(server: HostileServer, status: int) -> None:
    hop = fetch(server.url(f"/redirect?to=../x%3Fa%23b&status={status}"))
    assert (hop.redirect, hop.reason, hop.location) == (True, None, server.url("/x?a"))
    assert server.requests[-1].path == "/redirect"


@pytest.mark.parametrize(
    ("to", "resolved"),
    [
        ("//two.test/x", "http://two.test/x"),
        ("HTTP://TWO.test:80/%7e", "http://two.test/%7e"),
        ("https://user:secret@two.test/", "https://two.test/"),
        ("http:\\\\two.test\\x", "http://two.test/x"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://two.test/ü", "http://two.test/%C3%BC"),
        ("\thttp://two.test/a b", "http://two.test/a%20b"),
    ],
)
def test_locations_are_understood_as_browsers_do(server: HostileServer, to: str, resolved: str) -> None:
    async def raw(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 302 Moved\r\nContent-Length: 0\r\nLocation: " + to.encode() + b"\r\n\r\n")

    server.route("/raw", raw)
    assert fetch(server.url("/raw")).location == resolved


def test_a_chain_is_followed_to_its_end(server: HostileServer) -> None:
    page = chase(server.url("/chain/3"))
    assert (page.ok, page.url) == (True, server.url("/ok"))
    assert page.hops == tuple(server.url(f"/chain/{n}") for n in (3, 2, 1))


def test_a_chain_too_long(server: HostileServer) -> None:
    assert chase(server.url("/chain/3"), max_hops=3).ok
    end = chase(server.url("/chain/4"), max_hops=3)
    assert (end.reason, len(end.hops)) == (fetched.TOO_MANY_REDIRECTS, 4)


@pytest.mark.parametrize("start", ["/loop/a", "/redirect?to=/redirect%3Fto%3D/loop/b"])
def test_a_loop(server: HostileServer, start: str) -> None:
    assert chase(server.url(start)).reason == fetched.REDIRECT_LOOP


def test_a_redirect_to_itself(server: HostileServer) -> None:
    async def itself(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(b"", "302 Moved", location=asked.target + "#again"))

    server.route("/itself", itself)
    end = chase(server.url("/itself?x"))
    assert (end.reason, end.hops) == (fetched.REDIRECT_LOOP, (server.url("/itself?x"),))


@pytest.mark.parametrize(
    "to",
    ["file:///etc/passwd", "ftp://one.test/", "javascript:alert(1)", "data:text/html,x", "gopher://127.0.0.1:6379/x"],
)
def test_other_schemes(server: HostileServer, to: str) -> None:
    assert chase(redirect(server, to)).reason == fetched.SCHEME_BLOCKED


@pytest.mark.parametrize("to", ["http://[::1", "http://a b/", "http://", "http://x:99999/"])
def test_targets_that_are_no_url(server: HostileServer, to: str) -> None:
    assert chase(redirect(server, to)).reason == fetched.BAD_REDIRECT


def test_no_target_at_all(server: HostileServer) -> None:
    assert chase(server.url("/redirect-nowhere")).reason == fetched.BAD_REDIRECT


def test_the_body_of_a_redirect_does_not_matter(server: HostileServer) -> None:
    assert chase(server.url("/redirect-bomb")).ok


@pytest.mark.parametrize(
    "to",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]:1/",
        "http://0/",
        "http://0x7f.1:1/",
        "http://127.0.0.1:1/",
    ],
)
def test_private_addresses_are_refused_at_every_hop(server: HostileServer, to: str) -> None:
    only_here = Guard([parse_exemption(f"127.0.0.0/8:{server.port}")])
    end = chase(redirect(server, to), guard=only_here)
    assert (end.reason, len(end.hops)) == (fetched.ADDRESS_BLOCKED, 1)


def test_each_hop_is_asked_about_and_none_is_made_that_was_refused(server: HostileServer) -> None:
    asked: list[str] = []

    def allow(url: str) -> str | None:
        asked.append(url)
        return "excluded" if url.endswith("/chain/1") else None

    before = len(server.requests)
    end = chase(server.url("/chain/3"), allow)
    assert (end.reason, end.location) == ("excluded", server.url("/chain/1"))
    assert asked == [server.url("/chain/2"), server.url("/chain/1")]
    assert [request.path for request in server.requests[before:]] == ["/chain/3", "/chain/2"]


def test_credentials_headers_and_cookies_stay_with_their_origin(server: HostileServer) -> None:
    secrets = (("Authorization", "Bearer secret"), ("Cookie", "secret=1"), ("X-Key", "secret"))
    one, two = server.url("", "one.test"), server.url("", "two.test")
    start = redirect(server, f"{two}/echo", "one.test").replace("://", "://user:secret@")
    page = chase(Request(start, headers=secrets), origin_headers={one: secrets})
    assert page.url == f"{two}/echo"
    assert "secret" not in page.body.decode()
    assert "authorization" not in json.loads(page.body)
    assert server.requests[-2].headers["x-key"] == "secret"


def test_headers_of_a_request_are_gone_for_good_once_the_chain_leaves(server: HostileServer) -> None:
    back = redirect(server, server.url("/echo", "one.test"), "two.test")
    page = chase(Request(redirect(server, back, "one.test"), headers=(("X-Key", "secret"),)))
    assert page.url == server.url("/echo", "one.test")
    assert "secret" not in page.body.decode()


def test_within_the_origin_headers_go_along(server: HostileServer) -> None:
    page = chase(Request(redirect(server, "/echo"), headers=(("X-Key", "mine"),)))
    assert json.loads(page.body)["x-key"] == "mine"

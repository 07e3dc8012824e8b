"""TLS, HTTP/2 and the operator's proxy."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from silkline.fetch.client import HttpClient
from silkline.fetch.guard import Guard
from silkline.model import fetched
from silkline.model.fetched import Fetched, Request
from tests.crawl.hostile_client import Names, fetch, with_client
from tests.crawl.hostile_routes import PAGE, Asked
from tests.crawl.hostile_server import HostileServer
from tests.crawl.hostile_tls import Http2Server, make_certificate, server_context

NAMES = {"known.test": [("127.0.0.1",)], "other.test": [("127.0.0.1",)]}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"), "known.test", "127.0.0.1")


@pytest.fixture(scope="module")
def secure(certificate: tuple[Path, Path]) -> Iterator[HostileServer]:
    with HostileServer(tls=server_context(*certificate)) as running:
        yield running


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer() as running:
        yield running


def test_a_certificate_nobody_knows(secure: HostileServer) -> None:
    answer = fetch(secure.url("/ok"))
    assert answer.reason == fetched.TLS_FAILED
    assert secure.requests == []


def test_a_certificate_that_is_known(secure: HostileServer, certificate: tuple[Path, Path]) -> None:
    page = fetch(secure.url("/ok", "known.test"), names=Names(NAMES), ca_bundle=str(certificate[0]))
    assert page.body == PAGE


def test_a_certificate_for_another_name(secure: HostileServer, certificate: tuple[Path, Path]) -> None:
    answer = fetch(secure.url("/ok", "other.test"), names=Names(NAMES), ca_bundle=str(certificate[0]))
    assert answer.reason == fetched.TLS_FAILED


def test_verification_can_be_turned_off(secure: HostileServer) -> None:
    assert fetch(secure.url("/ok"), verify=False).ok


def test_a_bundle_that_is_missing_is_a_value(secure: HostileServer) -> None:
    assert fetch(secure.url("/ok"), ca_bundle="/nowhere/at/all.pem").reason == fetched.TLS_FAILED


def test_plain_http_where_tls_is_expected() -> None:
    def answer_at_once(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            connection.recv(4096)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer_at_once, args=(listener,), daemon=True)
        thread.start()
        answer = fetch(f"https://127.0.0.1:{listener.getsockname()[1]}/")
        thread.join(30)
    assert answer.reason == fetched.TLS_FAILED


def test_tls_where_plain_http_is_expected(secure: HostileServer) -> None:
    answer = fetch(secure.url("/ok").replace("https:", "http:"))
    assert answer.reason in (fetched.BAD_RESPONSE, fetched.RESET)


def test_a_handshake_that_never_comes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answer = fetch(f"https://127.0.0.1:{listener.getsockname()[1]}/", connect_timeout=0.3)
    assert answer.reason == fetched.CONNECT_TIMEOUT


def test_http2(certificate: tuple[Path, Path]) -> None:
    async def many(client: HttpClient, url: str) -> list[Fetched]:
        return await asyncio.gather(*(client.fetch(Request(f"{url}/{n}")) for n in range(20)))

    with Http2Server(server_context(*certificate)) as server:
        url = f"https://127.0.0.1:{server.port}"
        pages = with_client(lambda client: many(client, url), ca_bundle=str(certificate[0]))
    assert {(page.status, page.body, page.http_version) for page in pages} == {(200, b"h2", "2")}
    assert server.connections == 1


def test_the_proxy_gets_the_request_and_resolves_the_name(server: HostileServer) -> None:
    server.route("/page", lambda asked, writer: server.routes["/ok"](asked, writer))
    page = fetch("http://anywhere.test/page?x", guard=Guard(), proxy=server.url(""))
    assert page.body == PAGE
    assert server.paths() == ["http://anywhere.test/page?x"]


@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost", "a.localhost.", "[::1]", "169.254.169.254"])
def test_a_proxy_is_no_way_inside(server: HostileServer, host: str) -> None:
    answer = fetch(f"http://{host}/", guard=Guard(), proxy=server.url(""))
    assert answer.reason == fetched.ADDRESS_BLOCKED
    assert server.requests == []


def test_a_proxy_that_refuses_the_tunnel(server: HostileServer) -> None:
    async def refuse(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

    server.routes = {"": refuse}
    answer = fetch("https://anywhere.test/", guard=Guard(), proxy=server.url(""))
    assert answer.reason == fetched.PROXY_FAILED
    assert server.requests[0].method == "CONNECT"


def test_a_proxy_that_is_not_there() -> None:
    with socket.socket() as nobody:  # bound, so that nobody else gets the port, and not listening
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        assert fetch("http://anywhere.test/", proxy=f"http://127.0.0.1:{port}").reason == fetched.PROXY_FAILED


def test_the_proxy_of_the_environment_is_not_used(server: HostileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    assert fetch(server.url("/ok")).ok


def test_a_request_is_sent_after_the_handshake(certificate: tuple[Path, Path]) -> None:
    """The delay of a host counts from there."""
    hold = 0.2

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        time.sleep(hold)
        with server_context(*certificate).wrap_socket(connection, server_side=True) as secured:
            secured.recv(65_536)
            secured.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=[listener], daemon=True)
        thread.start()
        page = fetch(f"https://127.0.0.1:{listener.getsockname()[1]}/", verify=False)
        thread.join()
    assert page.ok
    assert hold <= page.timings.connected <= page.timings.first_byte

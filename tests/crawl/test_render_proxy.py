"""The proxy that stands between a page and the network, spoken to without a browser."""

import asyncio
import os
import socket
import struct
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any

import pytest
import uvloop

from silkline.errors import UsageError
from silkline.fetch import peer_owner
from silkline.fetch.dns import SystemResolver
from silkline.fetch.guard import Guard, parse_exemption
from silkline.fetch.guarded_proxy import GuardedProxy
from silkline.fetch.render_proxy import PageProxy, Upstream
from tests.crawl.scripted_pages import ScriptedPages


@pytest.fixture
def site() -> Iterator[ScriptedPages]:
    with ScriptedPages() as server:
        yield server


def run(
    site: ScriptedPages,
    work: Callable[[PageProxy], Coroutine[Any, Any, Any]],
    *,
    allowed: bool = True,
    peer: str = "127.0.0.1",
    upstream: str = "",
    max_bytes: int = 1_000_000,
    max_connections: int = 100,
    user: int | None = None,
) -> Any:
    async def whole() -> Any:
        resolver = SystemResolver(look_up=lambda host: ("127.0.0.1",))
        guard = Guard([parse_exemption(f"127.0.0.1:{site.port}")] if allowed else ())
        proxy = PageProxy(guard, resolver, Upstream(upstream) if upstream else None, max_bytes, max_connections)
        await proxy.open("127.0.0.1", peer, user)
        try:
            return await work(proxy)
        finally:
            proxy.close()
            resolver.close()
            await asyncio.sleep(0)

    return uvloop.run(whole())


async def say(proxy: PageProxy, text: str, then: str = "") -> bytes:
    """What is answered, to the end."""
    host, _, port = proxy.address.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(text.replace("\n", "\r\n").encode())
        answer = b""
        if then:
            answer = await reader.readuntil(b"\r\n\r\n")
            writer.write(then.replace("\n", "\r\n").encode())
        return answer + await reader.read(-1)
    except ConnectionError:
        return b""
    finally:
        writer.transport.abort()


def test_a_request_goes_on_without_what_was_meant_for_the_proxy(site: ScriptedPages) -> None:
    async def work(proxy: PageProxy) -> bytes:
        return await say(
            proxy,
            f"GET http://name.example:{site.port}/words?x=1 HTTP/1.1\nHost: name.example:{site.port}\n"
            "Proxy-Connection: keep-alive\nProxy-Authorization: Basic eA==\nX-Mine: 1\n\n",
        )

    answer: bytes = run(site, work)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"built by a script")
    assert answer.count(b"Connection: close\r\n") == 1
    ((path, headers),) = site.log
    assert path == "/words?x=1"
    assert (headers["x-mine"], headers["connection"]) == ("1", "close")
    assert not {"proxy-connection", "proxy-authorization"} & headers.keys()


def test_a_tunnel(site: ScriptedPages) -> None:
    async def work(proxy: PageProxy) -> bytes:
        ask = f"GET /words HTTP/1.1\nHost: x:{site.port}\nConnection: close\n\n"
        return await say(proxy, f"CONNECT x:{site.port} HTTP/1.1\nHost: x:{site.port}\n\n", ask)

    answer: bytes = run(site, work)
    assert answer.startswith(b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"built by a script")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "0x7f.1", "2130706433", "[::1]", "localhost", "any.example"])
def test_what_the_guard_refuses_is_not_connected_to(site: ScriptedPages, host: str) -> None:
    async def work(proxy: PageProxy) -> tuple[bytes, bytes, int]:
        at = f"{host}:{site.port}"
        tunnel = await say(proxy, f"CONNECT {at} HTTP/1.1\nHost: {at}\n\n")
        plain = await say(proxy, f"GET http://{at}/words HTTP/1.1\nHost: {at}\n\n")
        return tunnel, plain, proxy.refused

    tunnel, plain, refused = run(site, work, allowed=False)
    assert tunnel.startswith(b"HTTP/1.1 403 ")
    assert plain.startswith(b"HTTP/1.1 502 ")
    assert refused == 2
    assert site.log == []


@pytest.mark.parametrize(
    "request_line",
    ["GET /words HTTP/1.1", "GET ftp://x/ HTTP/1.1", "GET https://x/ HTTP/1.1", "GET file:///etc/passwd HTTP/1.1", "x"],
)
def test_what_is_no_request_for_a_proxy(site: ScriptedPages, request_line: str) -> None:
    async def work(proxy: PageProxy) -> bytes:
        return await say(proxy, f"{request_line}\nHost: x\n\n")

    assert run(site, work) in (b"", b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    assert site.log == []


def test_nobody_else_may_use_it(site: ScriptedPages) -> None:
    async def work(proxy: PageProxy) -> bytes:
        return await say(proxy, f"GET {site.url}/words HTTP/1.1\nHost: x\n\n")

    assert run(site, work, peer="192.0.2.1") == b""
    assert site.log == []


@pytest.mark.parametrize("by_kernel", [True, False])
def test_no_other_user_of_the_machine_may_use_it(
    site: ScriptedPages, by_kernel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(proxy: PageProxy) -> bytes:
        return await say(proxy, f"GET {site.url}/words HTTP/1.1\nHost: x\n\n")

    monkeypatch.setattr(peer_owner, "_kernel_answers", lambda: by_kernel)
    assert run(site, work, user=os.geteuid() + 1) == b""
    assert site.log == []
    served: bytes = run(site, work, user=os.geteuid())
    assert served.endswith(b"built by a script")


def test_the_proxy_of_libraries_is_for_this_user_too(site: ScriptedPages, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask() -> bytes:
        proxy = GuardedProxy(site.url)
        try:
            with socket.create_connection(("127.0.0.1", int(proxy.url.rpartition(":")[2])), 30) as client:
                client.sendall(f"GET {site.url}/words HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                return b"".join(iter(partial(client.recv, 65536), b""))
        except ConnectionError:
            return b""
        finally:
            proxy.close()

    assert ask().endswith(b"built by a script")
    us = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: us + 1)
    assert ask() == b""
    assert site.asked("/words") == 1


def test_a_connection_that_was_closed_has_no_owner() -> None:
    """The kernel says 0 for its owner, as for root."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.connect(server.getsockname())
        here, there = client.getsockname(), client.getpeername()
        held, _ = server.accept()
        with held:
            assert asyncio.run(peer_owner.owner_of(here, there)) == os.geteuid()
            client.close()
            assert asyncio.run(peer_owner.owner_of(here, there)) is None


def test_connections_that_are_reset_at_once_harm_nobody(site: ScriptedPages) -> None:
    """The socket of such a connection has no address any more. An error here would end the job."""
    unexpected: list[Any] = []

    async def work(proxy: PageProxy) -> bytes:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: unexpected.append(context))
        host, _, port = proxy.address.removeprefix("http://").rpartition(":")
        for _ in range(50):
            with socket.socket() as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.connect((host, int(port)))
        return await say(proxy, f"GET {site.url}/words HTTP/1.1\nHost: x\n\n")

    answer: bytes = run(site, work)
    assert answer.endswith(b"built by a script")
    assert unexpected == []


def test_a_page_that_has_had_its_connections_gets_no_more(site: ScriptedPages) -> None:
    async def work(proxy: PageProxy) -> tuple[list[bytes], set[str]]:
        ask = f"GET {site.url}/words HTTP/1.1\nHost: x\n\n"
        return [(await say(proxy, ask))[9:12] for _ in range(4)], proxy.cut

    assert run(site, work, max_connections=3) == ([b"200", b"200", b"200", b"403"], {"requests"})
    assert site.asked("/words") == 3


def test_what_a_page_only_declares_as_likely_is_not_fetched(site: ScriptedPages) -> None:
    async def work(proxy: PageProxy) -> bytes:
        return await say(proxy, f"GET {site.url}/words HTTP/1.1\nHost: x\nSec-Purpose: prefetch;prerender\n\n")

    answer: bytes = run(site, work)
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert site.log == []


def test_a_page_that_has_had_its_bytes_gets_no_more(site: ScriptedPages) -> None:
    async def work(proxy: PageProxy) -> tuple[int, bytes, bool]:
        first = await say(proxy, f"GET {site.url}/megabytes HTTP/1.1\nHost: x\n\n")
        return len(first), await say(proxy, f"GET {site.url}/words HTTP/1.1\nHost: x\n\n"), proxy.full

    had, then, full = run(site, work, max_bytes=500_000)
    assert had <= 500_000
    assert (then, full) == (b"", True)
    assert site.asked("/words") == 0


def test_behind_the_operators_proxy(site: ScriptedPages) -> None:
    """It resolves names, so they are not looked up here; addresses are judged here all the same."""
    heads: list[bytes] = []

    async def operators(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()
        writer.close()

    async def work(_: PageProxy) -> list[bytes]:
        server = await asyncio.start_server(operators, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        proxy = PageProxy(Guard(), SystemResolver(), Upstream(f"http://me:p%40ss@127.0.0.1:{port}"), 1_000_000)
        await proxy.open("127.0.0.1", "127.0.0.1")
        try:
            return [
                await say(proxy, "GET http://a.example/x HTTP/1.1\nHost: a.example\n\n"),
                await say(proxy, "CONNECT a.example:443 HTTP/1.1\nHost: a.example:443\n\n"),
                await say(proxy, "GET http://10.0.0.1/ HTTP/1.1\nHost: 10.0.0.1\n\n"),
                await say(proxy, "CONNECT sub.localhost:80 HTTP/1.1\nHost: x\n\n"),
            ]
        finally:
            proxy.close()
            server.close()

    plain, tunnel, address, local = run(site, work)
    assert plain.endswith(b"ok")
    assert tunnel.endswith(b"ok")
    assert address.startswith(b"HTTP/1.1 502 ")
    assert local.startswith(b"HTTP/1.1 403 ")
    assert heads[0].startswith(b"GET http://a.example/x HTTP/1.1\r\n")
    assert heads[1].startswith(b"CONNECT a.example:443 HTTP/1.1\r\n")
    assert all(b"Proxy-Authorization: Basic bWU6cEBzcw==\r\n" in head for head in heads)
    assert len(heads) == 2


@pytest.mark.parametrize("url", ["socks5://x:1080", "socks5h://x", "ftp://x", "http://"])
def test_a_proxy_that_will_not_do(url: str) -> None:
    with pytest.raises(UsageError, match="http or https proxy"):
        Upstream(url)

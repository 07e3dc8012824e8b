"""Names, addresses and the guard together: judged after resolution, pinned, and never looked up a second time."""

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest
import uvloop

from silkline.fetch.client import HttpClient
from silkline.fetch.dns import Resolution, SystemResolver, look_up
from silkline.fetch.guard import Guard, parse_exemption
from silkline.model import fetched
from silkline.model.fetched import Request
from tests.crawl.hostile_client import Names, fetch, with_client
from tests.crawl.hostile_server import HostileServer

PUBLIC = Guard()


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    with HostileServer(addresses=("127.0.0.1", "127.0.0.2")) as running:
        yield running


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://[::1]/",
        "http://[::ffff:7f00:1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://0.0.0.0/",
        "https://169.254.169.254/",
        "http://one.test/",
        "http://①②⑦.⓪.⓪.①/",
    ],
)
def test_what_leads_inside_is_refused_however_it_is_written(url: str) -> None:
    answer = fetch(url, guard=PUBLIC, names=Names({"one.test": [("10.1.2.3",)]}))
    assert answer.reason == fetched.ADDRESS_BLOCKED
    assert "10.1.2.3" not in answer.detail, "where a name leads is not said"


def test_the_pinned_address_is_used_and_nothing_else(server: HostileServer) -> None:
    """The name exists in no DNS, so only the pin can have led there."""
    page = fetch(server.url("/ok", "only-in-the-table.test"), names=Names({"only-in-the-table.test": [("127.0.0.2",)]}))
    assert (page.ok, page.address) == (True, "127.0.0.2")
    assert server.requests[-1].headers["host"] == f"only-in-the-table.test:{server.port}"


def test_an_answer_that_changes_is_judged_again(server: HostileServer) -> None:
    """DNS rebinding: public at first, then inside. The first connection is closed by then."""
    guard = Guard([parse_exemption(f"127.0.0.2:{server.port}")])
    names = Names({"rebind.test": [("127.0.0.2",), ("127.0.0.1",)]})

    async def twice(client: HttpClient) -> list[str | None]:
        first = await client.fetch(Request(server.url("/truncated/gzip", "rebind.test")))
        second = await client.fetch(Request(server.url("/ok", "rebind.test")))
        return [first.reason, second.reason]

    assert with_client(twice, guard=guard, names=names) == [fetched.BAD_ENCODING, fetched.ADDRESS_BLOCKED]


def test_an_address_that_slipped_through_is_told_nothing(server: HostileServer) -> None:
    """The guard changes its mind between resolution and connection: no request may leave."""

    class Fickle(Guard):
        def _check(self, address: str, port: int) -> str | None:
            self.asked = getattr(self, "asked", 0) + 1
            return None if self.asked == 1 else fetched.ADDRESS_BLOCKED

    fickle = Fickle()
    fickle.check = fickle._check  # type: ignore[assignment]
    before = len(server.requests)
    assert fetch(server.url("/ok"), guard=fickle).reason == fetched.ADDRESS_BLOCKED
    assert len(server.requests) == before


def test_of_several_addresses_only_the_allowed_ones_are_tried(server: HostileServer) -> None:
    guard = Guard([parse_exemption("127.0.0.2")])
    names = Names({"mixed.test": [("127.0.0.1", "10.0.0.1", "127.0.0.2")]})
    assert fetch(server.url("/ok", "mixed.test"), guard=guard, names=names).address == "127.0.0.2"


def test_a_resolver_that_breaks_is_a_failed_look_up() -> None:
    class Broken(Names):
        async def resolve(self, host: str) -> Resolution:
            raise RuntimeError("no such thing")

    answer = fetch("http://one.test/", names=Broken({}))
    assert (answer.reason, "no such thing" in answer.detail) == (fetched.DNS_FAILED, True)


def test_closing_the_resolver_answers_those_who_wait() -> None:
    release = threading.Event()

    async def main() -> Resolution:
        resolver = SystemResolver(look_up=lambda _: ("192.0.2.1",) if release.wait(60) else fetched.DNS_TIMEOUT)
        waiting = asyncio.create_task(resolver.resolve("slow.test"))
        await asyncio.sleep(0)
        resolver.close()
        return await waiting

    assert asyncio.run(main()) == fetched.DNS_FAILED
    release.set()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://mixed.test/", ("1.1.1.1", "2606:4700::1")),
        ("http://inside.test/", fetched.ADDRESS_BLOCKED),
        ("http://nobody.test/", fetched.HOST_UNKNOWN),
        ("http://134744072/", ("8.8.8.8",)),
        ("ftp://mixed.test/", fetched.SCHEME_BLOCKED),
    ],
)
def test_addresses_are_known_before_the_fetch(url: str, expected: Resolution) -> None:
    names = Names({"mixed.test": [("10.0.0.1", "1.1.1.1", "2606:4700::1")], "inside.test": [("10.0.0.1",)]})
    assert with_client(lambda client: client.addresses(url), guard=PUBLIC, names=names) == expected


def test_the_next_address_is_tried_where_one_does_not_answer(server: HostileServer) -> None:
    names = Names({"half.test": [("127.0.0.9", "127.0.0.2")], "dead.test": [("127.0.0.9", "127.0.0.8")]})
    assert fetch(server.url("/ok", "half.test"), names=names).address == "127.0.0.2"
    assert fetch(server.url("/ok", "dead.test"), names=names).reason == fetched.CONNECT_FAILED


class FullPlace:
    """Only the addresses in `free` have a place; the last address comes first if there are several."""

    def __init__(self, *free: str) -> None:
        self.free = free
        self.entered: list[str] = []
        self.timeouts = 0

    def order(self, addresses: tuple[str, ...]) -> tuple[str, ...]:
        return (addresses[-1], *addresses[:-1])

    def enter(self, address: str, _port: int) -> str | None:
        self.entered.append(address)
        return None if address in self.free else fetched.ADDRESS_BUSY

    def timed_out(self) -> None:
        self.timeouts += 1


def test_an_address_without_a_place_for_the_request_is_not_connected_to(server: HostileServer) -> None:
    """A name with a dead address before that of another site: the limit of that site must hold for it too."""
    names = Names({"half.test": [("127.0.0.2", "127.0.0.9")], "full.test": [("127.0.0.2",)]})
    before = len(server.requests)

    def outcome(name: str, place: FullPlace) -> fetched.Fetched:
        return with_client(lambda client: client.fetch(Request(server.url("/ok", name)), place), names=names)

    dead = FullPlace("127.0.0.9")
    assert outcome("half.test", dead).reason == fetched.CONNECT_FAILED, "what happened at the first address"
    assert dead.entered == ["127.0.0.9", "127.0.0.2"]
    assert outcome("full.test", FullPlace()).reason == fetched.ADDRESS_BUSY
    assert len(server.requests) == before
    assert outcome("half.test", FullPlace("127.0.0.9", "127.0.0.2")).address == "127.0.0.2"


def test_a_server_that_does_not_accept_is_a_connect_timeout() -> None:
    """A full backlog: the kernel leaves further connections unanswered."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(address)
            fillers.append(filler)
        place = FullPlace("127.0.0.1")
        request = Request(f"http://127.0.0.1:{address[1]}/")
        answer = with_client(lambda client: client.fetch(request, place), connect_timeout=0.3)
        for filler in fillers:
            filler.close()
    assert answer.reason == fetched.CONNECT_TIMEOUT
    assert place.timeouts == 1


def test_a_handshake_that_takes_too_long_says_nothing_about_the_port() -> None:
    """Other names of the same address and port may have a server that answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = FullPlace("127.0.0.1")
        request = Request(f"https://127.0.0.1:{listener.getsockname()[1]}/")
        answer = with_client(lambda client: client.fetch(request, place), connect_timeout=0.3)
    assert (answer.reason, place.timeouts) == (fetched.CONNECT_TIMEOUT, 0)


def test_ipv6_addresses_can_be_pinned_too() -> None:
    if not socket.has_ipv6:
        pytest.fail("this machine has no IPv6")
    with HostileServer(addresses=("::1",)) as server:
        url = f"http://six.test:{server.port}/ok"
        page = fetch(url, guard=Guard([parse_exemption("[::1]")]), names=Names({"six.test": [("::1",)]}))
    assert (page.ok, page.address) == (True, "::1")


def resolve_all(resolver: SystemResolver, *hosts: str) -> list[Resolution]:
    async def main() -> list[Resolution]:
        try:
            return list(await asyncio.gather(*(resolver.resolve(host) for host in hosts)))
        finally:
            resolver.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


def test_the_system_knows_localhost_and_numbers() -> None:
    assert "127.0.0.1" in look_up("localhost")
    assert look_up("0x7f.1") == ("127.0.0.1",)
    assert isinstance(look_up("x" * 300), str)
    assert isinstance(look_up("nothing-at-all.invalid"), str)


def test_a_host_is_looked_up_once_for_all_who_ask() -> None:
    asked: list[str] = []

    def answer(host: str) -> Resolution:
        asked.append(host)
        return ("192.0.2.1",)

    assert resolve_all(SystemResolver(look_up=answer), *["a.test"] * 50) == [("192.0.2.1",)] * 50
    assert asked == ["a.test"]


def test_answers_are_kept_for_a_while_and_failures_for_less() -> None:
    now = 0.0
    asked: list[str] = []

    def answer(host: str) -> Resolution:
        asked.append(host)
        return fetched.DNS_FAILED if host == "bad.test" else ("192.0.2.1",)

    async def main() -> None:
        nonlocal now
        resolver = SystemResolver(look_up=answer, clock=lambda: now, ttl=100, negative_ttl=10)
        for moment in (0.0, 9.0, 11.0, 99.0, 101.0):
            now = moment
            await resolver.resolve("good.test")
            await resolver.resolve("bad.test")
        resolver.close()

    asyncio.run(main())
    assert asked.count("good.test") == 2
    assert asked.count("bad.test") == 3


def test_the_cache_is_bounded() -> None:
    async def main() -> list[bool]:
        resolver = SystemResolver(look_up=lambda _: ("192.0.2.1",), max_entries=3)
        for n in range(10):
            await resolver.resolve(f"{n}.test")
        known = [resolver.cached(f"{n}.test") is not None for n in range(10)]
        resolver.close()
        return known

    assert asyncio.run(main()) == [False] * 7 + [True] * 3


def test_a_look_up_that_hangs_holds_up_nobody_else() -> None:
    release = threading.Event()

    def answer(host: str) -> Resolution:
        if host == "slow.test":
            release.wait(60)
        return ("192.0.2.1",)

    async def main() -> tuple[Resolution, bool]:
        resolver = SystemResolver(look_up=answer, timeout=60.0)
        slow = asyncio.create_task(resolver.resolve("slow.test"))
        await asyncio.sleep(0)
        quick = await resolver.resolve("quick.test")
        waits = not slow.done()
        release.set()
        await slow
        resolver.close()
        return quick, waits

    assert asyncio.run(main()) == (("192.0.2.1",), True)


def test_a_look_up_that_hangs_is_given_up() -> None:
    release = threading.Event()
    resolver = SystemResolver(look_up=lambda _: ("192.0.2.1",) if release.wait(60) else (), timeout=0.2)
    assert resolve_all(resolver, "slow.test") == [fetched.DNS_TIMEOUT]
    release.set()

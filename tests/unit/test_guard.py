"""Every range of the table, from both edges, in every wrapping; and what operators may write to get around it."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.errors import UsageError
from silkline.fetch.guard import REFUSED_V4, REFUSED_V6, Guard, is_refused, parse_exemption, unwrap
from silkline.model.fetched import ADDRESS_BLOCKED

GUARD = Guard()

PUBLIC = [
    *(
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
    ),
    *("168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0"),
    *("192.0.1.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255"),
    *("2606:4700:4700::1111", "2001:4860:4860::8888", "2a00:1450:4001::1", "2001:200::1", "2003::1"),
    "::ffff:8.8.8.8",
]
PRIVATE = [
    # Each of these is global in the eyes of some version of `ipaddress`.
    *("168.63.129.16", "192.0.0.192", "224.0.0.1", "239.255.255.255", "ff02::1", "fec0::1", "64:ff9b::808:808"),
    *("2002:7f00:1::", "2002:808:808::", "::7f00:1", "::", "::1", "0.0.0.0", "0.1.2.3", "255.255.255.255", "240.0.0.1"),
    *("10.0.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1", "192.168.1.1", "100.100.100.200"),
    *("192.88.99.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "192.0.2.1"),
    *("fe80::1", "fc00::1", "fd00:ec2::254", "100::1", "5f00::1", "2001:db8::1", "3fff::1", "2001:2::1", "2001:10::1"),
    *("::ffff:127.0.0.1", "::ffff:a9fe:a9fe", "::ffff:0:7f00:1", "64:ff9b::7f00:1", "64:ff9b:1::a00:1"),
    "2001:0:53aa:64c:0:fbfe:80ff:fffe",
    "2606:4700::5efe:127.0.0.1",
    "2606:4700::200:5efe:10.0.0.1",
]
NOT_ADDRESSES = ["", "localhost", "127.1", "0x7f.1", "2130706433", "127.0.0.1 ", "fe80::1%eth0", "127.0.0.1%1", "[::1]"]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_pass(address: str) -> None:
    assert GUARD.check(address, 443) is None


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_do_not(address: str) -> None:
    assert GUARD.check(address, 443) == ADDRESS_BLOCKED


@pytest.mark.parametrize("text", NOT_ADDRESSES)
def test_what_is_no_address_does_not_either(text: str) -> None:
    assert GUARD.check(text, 80) == ADDRESS_BLOCKED


@pytest.mark.parametrize("network", [*REFUSED_V4, *REFUSED_V6], ids=str)
def test_both_edges_of_every_range(network: IPv4Network | IPv6Network) -> None:
    assert GUARD.check(str(network[0]), 80) == ADDRESS_BLOCKED
    assert GUARD.check(str(network[-1]), 80) == ADDRESS_BLOCKED


@given(st.ip_addresses(v=4))
def test_a_wrapped_address_is_never_better_off_than_the_plain_one(plain: IPv4Address) -> None:
    number = int(plain)
    wrappings = [
        IPv6Address(0xFFFF << 32 | number),
        IPv6Address(number),
        IPv6Address(0xFFFF << 48 | number),
        IPv6Address((0x0064FF9B << 96) | number),
        IPv6Address((0x2002 << 112) | (number << 80)),
        IPv6Address((0x20010000 << 96) | (number ^ 0xFFFFFFFF)),
        IPv6Address((0x26064700 << 96) | (0x00005EFE << 32) | number),
    ]
    for wrapped in wrappings:
        assert plain in unwrap(wrapped) or GUARD.check(str(wrapped), 80) == ADDRESS_BLOCKED
        if is_refused(plain):
            assert GUARD.check(str(wrapped), 80) == ADDRESS_BLOCKED


@given(st.ip_addresses())
def test_the_guard_has_an_answer_for_every_address(address: IPv4Address | IPv6Address) -> None:
    assert GUARD.check(str(address), 80) in (None, ADDRESS_BLOCKED)
    if address.is_loopback or address.is_private or address.is_link_local or address.is_multicast:
        assert GUARD.check(str(address), 80) == ADDRESS_BLOCKED


@pytest.mark.parametrize(
    ("text", "allowed", "refused"),
    [
        ("10.0.0.0/8", [("10.1.2.3", 80), ("10.1.2.3", 8080)], [("192.168.0.1", 80), ("127.0.0.1", 80)]),
        ("10.0.0.5/8", [("10.1.2.3", 80)], [("127.0.0.1", 80)]),
        ("127.0.0.1:8080", [("127.0.0.1", 8080), ("::ffff:127.0.0.1", 8080)], [("127.0.0.1", 80), ("127.0.0.2", 8080)]),
        ("127.0.0.0/8:9000", [("127.4.5.6", 9000)], [("127.4.5.6", 9001)]),
        ("::1", [("::1", 80)], [("::2", 80), ("127.0.0.1", 80)]),
        ("[::1]:80", [("::1", 80)], [("::1", 81)]),
        ("[fd00::]/8", [("fd12::1", 80)], [("fc00::1", 80)]),
        ("[fd00::]/8:443", [("fd12::1", 443)], [("fd12::1", 80)]),
        ("fd00::/8", [("fd12::1", 80)], [("fe80::1", 80)]),
        (" 192.168.0.0/16 ", [("192.168.3.4", 1)], [("192.0.0.1", 1)]),
    ],
)
def test_exemptions(text: str, allowed: list[tuple[str, int]], refused: list[tuple[str, int]]) -> None:
    guard = Guard([parse_exemption(text)])
    assert [guard.check(*pair) for pair in allowed] == [None] * len(allowed)
    assert [guard.check(*pair) for pair in refused] == [ADDRESS_BLOCKED] * len(refused)
    assert guard.check("8.8.8.8", 80) is None


@pytest.mark.parametrize(
    "text",
    ["", "localhost", "10.0.0.0/33", "10.0.0.0/8:0", "10.0.0.0/8:65536", "127.0.0.1:http", "127.0.0.1:"],
)
def test_what_cannot_be_understood_is_said_so(text: str) -> None:
    with pytest.raises(UsageError, match="--allow-private"):
        parse_exemption(text)


def test_an_exemption_of_one_guard_does_not_reach_another() -> None:
    assert Guard([parse_exemption("127.0.0.0/8")]).check("127.0.0.1", 80) is None
    assert GUARD.check("127.0.0.1", 80) == ADDRESS_BLOCKED

"""Decides to which addresses the crawler may connect. Pure: it checks addresses, not names, and opens no socket.

The table is explicit because `ipaddress.is_global` allows a dozen ranges that no crawl needs (168.63.129.16, multicast,
site-local, NAT64, 6to4, ...). IPv4 addresses that are embedded in IPv6 addresses are checked too.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

import msgspec

from silkline.errors import UsageError
from silkline.model.fetched import ADDRESS_BLOCKED

Network = IPv4Network | IPv6Network


REFUSED_V4: Final = tuple(
    IPv4Network(cidr)
    for cidr in (
        "0.0.0.0/8",  # this host; Linux connects 0.0.0.0 to loopback
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier NAT; 100.100.100.200 is a metadata service
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's host agent
        "169.254.0.0/16",  # link-local; 169.254.169.254 is a metadata service
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocol assignments; 192.0.0.192 is a metadata service
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)

# Only 2000::/3 is assigned for public use. All other addresses are refused.
PUBLIC_V6: Final = IPv6Network("2000::/3")
REFUSED_V6: Final = tuple(
    IPv6Network(cidr)
    for cidr in (
        "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
        "3ffe::/16",  # the old 6bone
    )
)

# The metadata services of clouds, which give credentials to every client, and all link-local addresses. They are not
# allowed only because a user entered the address.
METADATA: Final[tuple[Network, ...]] = tuple(
    ip_network(cidr)
    for cidr in (
        "169.254.0.0/16",  # link-local: AWS, Google, Azure, OpenStack, Oracle, Tencent, Scaleway
        "fe80::/10",  # link-local
        "100.100.100.200/32",  # Alibaba
        "168.63.129.16/32",  # Azure's host agent
        "192.0.0.192/32",  # Oracle, the older one
        "fd00:ec2::/32",  # AWS
        "fd20:ce::/32",  # Google
        "fd00:42::/32",  # Scaleway
    )
)
METADATA_NAMES: Final = frozenset(
    {"metadata.google.internal", "metadata.goog", "metadata", "instance-data", "instance-data.ec2.internal"}
)

_NAT64: Final = IPv6Network("64:ff9b::/96")
_NAT64_LOCAL: Final = IPv6Network("64:ff9b:1::/48")
_COMPATIBLE: Final = IPv6Network("::/96")
_TRANSLATED: Final = IPv6Network("::ffff:0:0:0/96")
_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})


class Exemption(msgspec.Struct, frozen=True):
    """A range of addresses, or one port of it, that the operator allowed."""

    network: Network
    port: int | None = None

    def covers(self, address: IPv4Address | IPv6Address, port: int) -> bool:
        return (self.port is None or self.port == port) and address in self.network

    def includes(self, other: Exemption) -> bool:
        """Whether this exemption covers everything that the other covers."""
        if self.port is not None and self.port != other.port:
            return False
        ours, theirs = self.network, other.network
        if isinstance(ours, IPv4Network):
            return isinstance(theirs, IPv4Network) and theirs.subnet_of(ours)
        return isinstance(theirs, IPv6Network) and theirs.subnet_of(ours)


def parse_exemption(text: str) -> Exemption:
    """Parse `CIDR[:PORT]`: `10.0.0.0/8`, `127.0.0.1:8080`, `[fd00::]/8`, `[::1]:80`, `fd00::/8`."""
    network, port = _split_port(text.strip())
    try:
        parsed = ip_network(network.replace("[", "").replace("]", ""), strict=False)
    except ValueError:
        raise UsageError(
            f"--allow-private {text!r}: expected CIDR[:PORT], such as 10.0.0.0/8, 127.0.0.1:8080 or [::1]:80"
        ) from None
    if port is None:
        return Exemption(parsed)
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and 1 <= int(port) <= 65535):
        raise UsageError(f"--allow-private {text!r}: {port!r} is not a port (1 to 65535)")
    return Exemption(parsed, int(port))


def _split_port(text: str) -> tuple[str, str | None]:
    if text.startswith("["):
        inside, _, rest = text.partition("]")
        mask, colon, port = rest.partition(":")
        return f"{inside}]{mask}", port if colon else None
    if text.count(":") == 1:
        network, _, port = text.partition(":")
        return network, port
    return text, None


class Guard:
    """Refuses addresses that are not public, unless an exemption covers them. Immutable, so answers are cached."""

    def __init__(self, exemptions: Iterable[Exemption] = ()) -> None:
        self.exemptions = tuple(exemptions)
        # A check costs 10-20 us, a cached answer 0.1 us; 64k answers take about 10 MB.
        self.check = lru_cache(maxsize=65_536)(self._check)

    def _check(self, address: str, port: int) -> str | None:
        """The reason to refuse this address and port, or None. A text that is not an address is refused."""
        try:
            parsed = ip_address(address)
        except ValueError:
            return ADDRESS_BLOCKED
        if isinstance(parsed, IPv6Address) and parsed.scope_id is not None:
            return ADDRESS_BLOCKED
        faces = (parsed, *unwrap(parsed))
        # An exemption for 127.0.0.1 also covers ::ffff:127.0.0.1, because both reach the same socket.
        if any(exemption.covers(face, port) for exemption in self.exemptions for face in faces):
            return None
        return ADDRESS_BLOCKED if any(is_refused(face) for face in faces) else None


def is_metadata(address: str) -> bool:
    """Whether an address, or an IPv4 address embedded in it, is link-local or the metadata service of a cloud."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return any(face in network for face in (parsed, *unwrap(parsed)) for network in METADATA)


def is_refused(address: IPv4Address | IPv6Address) -> bool:
    """Whether the table refuses this address. Embedded IPv4 addresses are not checked here."""
    if isinstance(address, IPv4Address):
        return any(address in network for network in REFUSED_V4)
    if address.ipv4_mapped is not None:
        return False  # the embedded IPv4 address decides; `unwrap` returns it
    return address not in PUBLIC_V6 or any(address in network for network in REFUSED_V6)


def unwrap(address: IPv4Address | IPv6Address) -> tuple[IPv4Address, ...]:
    """Every IPv4 address that is embedded in an IPv6 address."""
    if isinstance(address, IPv4Address):
        return ()
    number = int(address)
    low = IPv4Address(number & 0xFFFFFFFF)
    found: list[IPv4Address] = []
    if address.ipv4_mapped is not None:
        found.append(address.ipv4_mapped)
    if address.sixtofour is not None:
        found.append(address.sixtofour)
    if address.teredo is not None:
        found.extend(address.teredo)
    if any(address in network for network in (_NAT64, _NAT64_LOCAL, _COMPATIBLE, _TRANSLATED)):
        found.append(low)
    if (number >> 32) & 0xFFFFFFFF in _ISATAP:
        found.append(low)
    return tuple(found)

"""The network of a client: what limits for each address of a client count for."""

from __future__ import annotations

import ipaddress
from typing import Any


def network_of(peer: Any) -> str:
    """The address that a connection counts for. For IPv6 it is the /64 network, since most clients have a whole one."""
    try:
        address = ipaddress.ip_address(peer[0])
    except (TypeError, IndexError, ValueError):
        return "unknown"
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))
    return str(address)

"""The hosts that wait for a place at one address, and which of them is next. Pure.

Quick hosts come first; a part of the places is for the others. Among equals, hosts of the usual ports and hosts of
other ports take turns, then domains, then the hosts of a domain. Otherwise somebody with many names for the address of
another site, or with links to many ports of it, would always be before that site.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque

from silkline.crawl.address_limit import Address
from silkline.crawl.frontier import HostQueue
from silkline.crawl.registrable_domain import domain_of

Waiter = HostQueue | asyncio.Future[None]
"""A host, or a request for a robots.txt that is under way and leads to another address."""


class TurnQueue:
    """Waiters by kind of port and domain, which take turns."""

    def __init__(self) -> None:
        self._ports: OrderedDict[bool, OrderedDict[str, deque[Waiter]]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._ports)

    def put(self, name: str, waiter: Waiter) -> None:
        """`name` is that of the host, with its port if it is not the usual one."""
        host, colon, port = name.rpartition(":")
        special = bool(colon) and not port.endswith("]")
        domain = domain_of(host if special else name)
        self._ports.setdefault(special, OrderedDict()).setdefault(domain, deque()).append(waiter)

    def take(self) -> Waiter:
        special, domains = next(iter(self._ports.items()))
        domain, waiters = next(iter(domains.items()))
        waiter = waiters.popleft()
        if waiters:
            domains.move_to_end(domain)
        else:
            del domains[domain]
        if domains:
            self._ports.move_to_end(special)
        else:
            del self._ports[special]
        return waiter


class WaitingHosts:
    """Those who wait for one address."""

    def __init__(self) -> None:
        self._quick = TurnQueue()
        self._unproven = TurnQueue()

    def __bool__(self) -> bool:
        return bool(self._quick) or bool(self._unproven)

    def put(self, name: str, waiter: Waiter, *, quick: bool) -> None:
        (self._quick if quick else self._unproven).put(name, waiter)

    def take(self, address: Address, now: float) -> Waiter | None:
        """The next one that can get a place; None if nobody can."""
        if address.full:
            return None
        fits = bool(self._unproven) and not address.full_for(quick=False) and not address.crowded
        first = fits and address.unproven < address.least_unproven and address.rests_until <= now
        if self._quick and not first:
            return self._quick.take()
        return self._unproven.take() if fits else None

"""The place of a request at an address. It counts where the request connects to, not where the host was before.

A name may have several addresses, and other ones after a while. If a request goes on to another address, it needs a
place there, and gives the first one back. So nobody can make us send more requests to an address than its limit allows.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakValueDictionary

from silkline.crawl.address_limit import SHOWN_PAGE, Address, address_key
from silkline.crawl.plan import Plan
from silkline.model.fetched import ADDRESS_BUSY, CONNECT_TIMEOUT

OnLeft = Callable[[Address, float], None]


class Addresses:
    """The addresses that hosts and requests of a fetcher use. `on_left` is called when a place becomes free."""

    def __init__(self, plan: Plan, clock: Callable[[], float], on_left: OnLeft) -> None:
        self._plan = plan
        self.clock = clock
        self.on_left = on_left
        # Weak: an address that nobody uses is forgotten, and no two values can exist for one address.
        self._known: WeakValueDictionary[str, Address] = WeakValueDictionary()

    def at(self, key: str) -> Address:
        """The address with this key. Without a key, it is one that nobody shares."""
        address = self._known.get(key) if key else None
        if address is None:
            address = Address(self._plan.pace, self._plan.fetchers, key)
            if self._plan.rendering is not None:  # enough for all browsers if it is the only address
                address.most_shown = max(address.most_shown, 2 * self._plan.rendering.count * SHOWN_PAGE)
            if key:
                self._known[key] = address
        return address

    def place(self, address: Address, *, quick: bool, is_new: bool) -> RequestPlace:
        """Take a place at an address. `is_new`: the host has never answered."""
        return RequestPlace(self, address, quick=quick, is_new=is_new)


class RequestPlace:
    """One place at one address at a time, until `leave`."""

    __slots__ = ("_addresses", "_is_new", "_port", "_quick", "_since", "address", "refused_by")

    def __init__(self, addresses: Addresses, address: Address, *, quick: bool, is_new: bool) -> None:
        self._addresses = addresses
        self._quick = quick
        self._is_new = is_new
        self._port = 0
        self.refused_by: Address | None = None
        """The address that had no place for the request."""
        self.address: Address | None = None
        self._since = 0.0
        self.take(address, addresses.clock())

    def order(self, addresses: tuple[str, ...]) -> tuple[str, ...]:
        """The address where the request has its place comes first."""
        own = self.address.key if self.address is not None else ""
        for number, address in enumerate(addresses):
            if address_key(address) == own:
                return (address, *addresses[:number], *addresses[number + 1 :]) if number else addresses
        return addresses

    def enter(self, address: str, port: int) -> str | None:
        """The request is about to connect to this address. Returns why it may not, or None."""
        self._port = port
        key = address_key(address)
        there, now = self.address, self._addresses.clock()
        if there is None or there.key != key:
            there = self._addresses.at(key)
        if self._is_new and there.is_silent(port, now):
            return CONNECT_TIMEOUT
        if there is not self.address:
            if there.full_for(quick=self._quick) or there.behind or there.unrendered or there.backlog(now):
                self.refused_by = there
                return ADDRESS_BUSY
            there.reserve(now)
            self.leave(now)
            self.take(there, now)
        self.refused_by = None
        return None

    def timed_out(self) -> None:
        if self.address is not None:
            self.address.timed_out(self._port, self._addresses.clock())

    def reached(self) -> None:
        """The last connection was made."""
        if self.address is not None:
            self.address.reached(self._port)

    def leave(self, now: float) -> None:
        """Give the place back, if there is one."""
        address, self.address = self.address, None
        if address is not None:
            address.leave(now, self._since, quick=self._quick)
            self._addresses.on_left(address, now)

    def home(self, *, reached: bool) -> Address | None:
        """Where the next request of the host should go: to the address that was reached, or that had no place."""
        return (self.address if reached else self.refused_by) if self._port else None

    def take(self, address: Address, now: float) -> None:
        """Take a place without a look at the limit."""
        self.address = address
        self._since = now
        address.enter(quick=self._quick)

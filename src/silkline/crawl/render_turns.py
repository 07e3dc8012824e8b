"""The pages of one fetcher that wait for a slot in a browser, and their order. Pure.

Domains and addresses take turns by the time that they used in browsers, as in reading_turns.py. So a domain whose pages
hang comes last, and gains nothing from many hosts.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from silkline.crawl.reading_turns import ReadingTurns, Sender, sender_of
from silkline.fetch.render_slots import WaitingPage

_AT_ONCE: Final = 1.0
"""Seconds that a page counts before it is rendered, so that the next one is a page of another sender."""
_SLOW: Final = 5.0
"""Seconds in a browser. A sender is slow if its last pages took so long on average."""
_MOST_REMEMBERED: Final = 1_000


class RenderTurns:
    """Implements `SlotTurns`."""

    def __init__(self) -> None:
        self._turns: ReadingTurns[WaitingPage] = ReadingTurns()
        self._usual: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """The last pages of domains and addresses, and their seconds. Earlier ones count less and less."""

    def __bool__(self) -> bool:
        return bool(self._turns)

    @property
    def longest(self) -> float:
        """How many seconds of browser time the last page is behind one of a new sender."""
        return self._turns.longest

    def add(self, page: WaitingPage) -> None:
        self._turns.add(_sender_of(page), page)

    def take(self) -> WaitingPage:
        sender, page = self._turns.take()
        self._turns.took(sender, _AT_ONCE)
        for name in {sender.domain, sender.address} - {""}:
            pages, seconds = self._usual.pop(name, (0.0, 0.0))
            self._usual[name] = pages / 2 + 1, seconds / 2
        while len(self._usual) > _MOST_REMEMBERED:
            self._usual.popitem(last=False)
        return page

    @property
    def slow(self) -> bool:
        return all(map(self._is_slow, self._turns.senders))

    def _is_slow(self, sender: Sender) -> bool:
        usual = (self._usual.get(name, (1.0, 0.0)) for name in sender[1:])
        return any(seconds >= _SLOW * pages for pages, seconds in usual)

    def remove(self, page: WaitingPage) -> None:
        self._turns.remove(_sender_of(page), page)

    def used(self, page: WaitingPage, seconds: float) -> None:
        sender = _sender_of(page)
        self._turns.used(sender, seconds)
        for name in {sender.domain, sender.address} - {""}:
            pages, before = self._usual.get(name, (1.0, 0.0))
            self._usual[name] = pages, before + seconds

    def place(self, host: str, address: str) -> float:
        """When a further page of a host would be rendered. Small is soon."""
        return self._turns.place(sender_of(host, address))

    def drop_last(self, place: float, size: int) -> WaitingPage | None:
        """Remove and return the page that would be rendered last. None: none is behind this place and size."""
        return self._turns.drop_last(place, size, lambda page: page.size)


def _sender_of(page: WaitingPage) -> Sender:
    return sender_of(page.host, page.address)

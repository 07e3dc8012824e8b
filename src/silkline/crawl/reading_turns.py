"""The order in which the isolated reader reads its inputs. Pure: the caller says how long each reading took.

Registrable domains and addresses take turns, and the hosts of a domain do. The time that their readings took counts: a
domain whose inputs are slow waits until the others had as much time, so it comes last, and many hosts of one domain, or
many domains at one address, have no more than one. A new domain begins at the current time, so it waits for nobody's
past, and nobody waits for ever (start-time fair queueing).
"""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from functools import lru_cache
from operator import itemgetter
from typing import Final, Generic, NamedTuple, TypeVar

from silkline.crawl.registrable_domain import domain_of

_SHORTEST: Final = 0.25
"""Seconds that every reading counts at least, so that ordinary inputs are read in simple turns."""
_MOST_REMEMBERED: Final = 10_000
_PORT: Final = re.compile(r":\d+$")

Item = TypeVar("Item")


class Sender(NamedTuple):
    """Where an input comes from. `address` is empty if it is not known."""

    host: str
    domain: str
    address: str


def sender_of(host: str, address: str = "") -> Sender:
    return Sender(host, _domain_of(host), address)


@lru_cache(maxsize=_MOST_REMEMBERED)
def _domain_of(host: str) -> str:
    """The domain without a port. Every page of a crawl may need it."""
    return _PORT.sub("", domain_of(host))


class ReadingTurns(Generic[Item]):
    """The inputs that wait."""

    def __init__(self) -> None:
        self._queues: OrderedDict[Sender, deque[Item]] = OrderedDict()
        self._now = 0.0
        # When the turn of each comes. Domains and addresses are together: the domain of an IP address is the address.
        self._hosts: dict[str, float] = {}
        self._groups: dict[str, float] = {}

    def __bool__(self) -> bool:
        return bool(self._queues)

    def add(self, sender: Sender, item: Item) -> None:
        self._queues.setdefault(sender, deque()).append(item)

    def take(self) -> tuple[Sender, Item]:
        """The oldest input of the sender whose turn it is."""
        sender = min(self._queues, key=self._turn)
        self._now = self._turn(sender)[0]
        queue = self._queues[sender]
        item = queue.popleft()
        if queue:
            self._queues.move_to_end(sender)
        else:
            del self._queues[sender]
        return sender, item

    def took(self, sender: Sender, seconds: float) -> None:
        """The reading of an input took so long."""
        seconds = max(seconds, _SHORTEST)
        _add(self._hosts, (sender.host,), self._now, seconds)
        add_time(self._groups, sender, self._now, seconds)
        # Time passes also while every input is the first of its sender: otherwise new ones would always be first.
        self._now += _SHORTEST / (1 + len(self._queues))

    def used(self, sender: Sender, seconds: float) -> None:
        """A part of a long reading, for one that `took` has counted already."""
        _add(self._hosts, (sender.host,), self._now, seconds)
        add_time(self._groups, sender, self._now, seconds)

    def remove(self, sender: Sender, item: Item) -> None:
        """Remove an input, if it waits."""
        queue = self._queues.get(sender)
        if queue is not None and item in queue:
            queue.remove(item)
            if not queue:
                del self._queues[sender]

    @property
    def longest(self) -> float:
        """How far the last input is behind one of a new sender."""
        places = (self._place(sender, len(queue) - 1) for sender, queue in self._queues.items())
        return max(places, default=self._now) - self._now

    def place(self, sender: Sender) -> float:
        """When a further input of the sender is read. Small is soon."""
        return self._place(sender, len(self._queues.get(sender, ())))

    def drop_last(self, place: float, size: int, size_of: Callable[[Item], int]) -> Item | None:
        """Remove and return the input that would be read last, of several the largest. None: no input is behind this
        place and size. An input of size 0 is never dropped."""
        waiting = (
            (self._place(sender, len(queue) - 1), size_of(queue[-1]), sender) for sender, queue in self._queues.items()
        )
        last = max((each for each in waiting if each[1]), key=itemgetter(0, 1), default=None)
        if last is None or last[:2] <= (place, size):
            return None
        queue = self._queues[last[2]]
        item = queue.pop()
        if not queue:
            del self._queues[last[2]]
        return item

    def clear(self) -> None:
        self._queues.clear()

    def _place(self, sender: Sender, before: int) -> float:
        return self._turn(sender)[0] + _SHORTEST * before

    def _turn(self, sender: Sender) -> tuple[float, float]:
        now, groups = self._now, self._groups
        group = max(now, groups.get(sender.domain, 0.0), groups.get(sender.address, 0.0))
        return group, max(now, self._hosts.get(sender.host, 0.0))


def add_time(groups: dict[str, float], sender: Sender, now: float, seconds: float) -> None:
    """The domain and the address of a sender used so much time."""
    _add(groups, {sender.domain, sender.address} - {""}, now, seconds)


def _add(turns: dict[str, float], names: Iterable[str], now: float, seconds: float) -> None:
    for name in names:
        turns[name] = max(now, turns.get(name, 0.0)) + seconds
    if len(turns) > _MOST_REMEMBERED:
        late = sorted(turns, key=turns.__getitem__, reverse=True)[: _MOST_REMEMBERED // 2]
        kept = {name: turns[name] for name in late if turns[name] > now}
        turns.clear()
        turns.update(kept)

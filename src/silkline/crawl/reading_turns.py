"""The order in which the isolated reader reads its inputs. Pure: the caller says how long each reading took.

Registrable domains and addresses take turns, and the hosts of a domain do. The time that their readings took counts: a
domain whose inputs are slow waits until the others had as much time, so it comes last, and many hosts of one domain, or
many domains at one address, have no more than one. A new domain begins at the current time, so it waits for nobody's
past, and nobody waits for ever (start-time fair queueing; the time passes as in weighted fair queueing).
"""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class _Queue(Generic[Item]):
    """The inputs of one sender that wait."""

    since: float
    items: deque[Item] = field(default_factory=deque)


class ReadingTurns(Generic[Item]):
    """The inputs that wait.

    While inputs of a sender wait, its turn stays where it is, and time passes by the share of one sender. So senders
    that are new each time get no more time than one whose inputs wait all the time.
    """

    def __init__(self) -> None:
        self._queues: OrderedDict[Sender, _Queue[Item]] = OrderedDict()
        self._now = 0.0
        # When the turn of each comes. Domains and addresses are together: the domain of an IP address is the address.
        self._hosts: dict[str, float] = {}
        self._groups: dict[str, float] = {}

    def __bool__(self) -> bool:
        return bool(self._queues)

    def add(self, sender: Sender, item: Item) -> None:
        queue = self._queues.get(sender)
        if queue is None:
            queue = self._queues[sender] = _Queue(self._now)
        queue.items.append(item)

    @property
    def senders(self) -> Iterable[Sender]:
        """Those whose inputs wait."""
        return self._queues.keys()

    def take(self) -> tuple[Sender, Item]:
        """The oldest input of the sender whose turn it is."""
        sender = min(self._queues, key=self._turn)
        group, host = self._turn(sender)
        self._now = max(self._now, group)
        _begin(self._hosts, (sender.host,), host)
        _begin(self._groups, sender[1:], group)
        queue = self._queues[sender]
        item = queue.items.popleft()
        if queue.items:
            self._queues.move_to_end(sender)
        else:
            del self._queues[sender]
        return sender, item

    def took(self, sender: Sender, seconds: float) -> None:
        """The reading of an input took so long."""
        seconds = max(seconds, _SHORTEST)
        self._add_time(sender, seconds)
        self._pass(seconds, at_least=_SHORTEST)

    def used(self, sender: Sender, seconds: float) -> None:
        """A part of a long reading, for one that `took` has counted already."""
        self._add_time(sender, seconds)
        self._pass(seconds)

    def _add_time(self, sender: Sender, seconds: float) -> None:
        _add(self._hosts, (sender.host,), self._now, seconds)
        add_used_time(self._groups, sender, self._now, seconds)

    def _pass(self, seconds: float, at_least: float = 0.0) -> None:
        """Let time pass by the share of each sender whose turn has come. Nobody shares time that nobody waited for."""
        others = sum(self._turn(sender)[0] <= self._now for sender in self._queues)
        self._now += (seconds if others else at_least) / (1 + others)

    def remove(self, sender: Sender, item: Item) -> None:
        """Remove an input, if it waits."""
        queue = self._queues.get(sender)
        if queue is not None and item in queue.items:
            queue.items.remove(item)
            if not queue.items:
                del self._queues[sender]

    @property
    def longest(self) -> float:
        """How far the last input is behind one of a new sender."""
        places = (self._place(sender, len(queue.items) - 1) for sender, queue in self._queues.items())
        return max(places, default=self._now) - self._now

    def place(self, sender: Sender) -> float:
        """When a further input of the sender is read. Small is soon."""
        queue = self._queues.get(sender)
        return self._place(sender, len(queue.items) if queue else 0)

    def drop_last(self, place: float, size: int, size_of: Callable[[Item], int]) -> Item | None:
        """Remove and return the input that would be read last, of several the largest. None: no input is behind this
        place and size. An input of size 0 is never dropped."""
        waiting = (
            (self._place(sender, len(queue.items) - 1), size_of(queue.items[-1]), sender)
            for sender, queue in self._queues.items()
        )
        last = max((each for each in waiting if each[1]), key=itemgetter(0, 1), default=None)
        if last is None or last[:2] <= (place, size):
            return None
        queue = self._queues[last[2]]
        item = queue.items.pop()
        if not queue.items:
            del self._queues[last[2]]
        return item

    def clear(self) -> None:
        self._queues.clear()

    def _place(self, sender: Sender, before: int) -> float:
        return max(self._now, self._turn(sender)[0]) + _SHORTEST * before

    def _turn(self, sender: Sender) -> tuple[float, float]:
        """When the turn of its domain and address comes, and among those the turn of its host."""
        queue, groups = self._queues.get(sender), self._groups
        since = self._now if queue is None else queue.since
        group = max(since, groups.get(sender.domain, 0.0), groups.get(sender.address, 0.0))
        return group, max(since, self._hosts.get(sender.host, 0.0))


def add_time(groups: dict[str, float], sender: Sender, now: float, seconds: float) -> None:
    """The domain and the address of a sender use so much time from now on."""
    _begin(groups, (sender.domain, sender.address), now)
    add_used_time(groups, sender, now, seconds)


def add_used_time(groups: dict[str, float], sender: Sender, now: float, seconds: float) -> None:
    """They used so much time for something that has begun before."""
    _add(groups, {sender.domain, sender.address} - {""}, now, seconds)


def _begin(turns: dict[str, float], names: Iterable[str], now: float) -> None:
    """A reading begins now, so earlier time that these did not use is gone."""
    for name in names:
        if name:
            turns[name] = max(now, turns.get(name, 0.0))


def _add(turns: dict[str, float], names: Iterable[str], now: float, seconds: float) -> None:
    for name in names:
        turns[name] = turns.get(name, now) + seconds
    if len(turns) > _MOST_REMEMBERED:
        late = sorted(turns, key=turns.__getitem__, reverse=True)[: _MOST_REMEMBERED // 2]
        kept = {name: turns[name] for name in late if turns[name] > now}
        turns.clear()
        turns.update(kept)

"""Which inputs of a job have killed a process that read them. They are read in isolation from then on.

One blamed input makes its whole host suspect, and a few blamed inputs the whole job: a site with a thousand harmful
pages must not cost a thousand processes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from silkline.model.url import host_of, origin_of
from silkline.reading_marks import ROBOTS, RULES, Mark, clipped

MOST_BLAMED: Final = 3
"""With this many blamed inputs, the whole job is read in isolation."""
GIVE_UP_AT: Final = 2
"""An input that was blamed this often is not read again: it kills processes even in isolation."""


def input_of(mark: Mark) -> str:
    """The name under which an input is blamed: its URL, or its origin if it is about robots.txt."""
    return origin_of(mark.name) if mark.kind in (ROBOTS, RULES) else mark.name


class Suspects:
    """How often each input was blamed. An origin stands for its robots.txt."""

    def __init__(self, blamed: Iterable[tuple[str, int]] = (), *, everything: bool = False) -> None:
        self._times: dict[str, int] = {}
        self._hosts: set[str] = set()
        self.everything = everything
        self.learn(blamed)

    def __bool__(self) -> bool:
        return self.everything or bool(self._times)

    def learn(self, blamed: Iterable[tuple[str, int]]) -> None:
        """Add what other processes know: each input and how often it was blamed."""
        for name, times in blamed:
            self._times[name] = max(times, self._times.get(name, 0))
            if name.startswith(("http://", "https://")):  # a process that was taken over may have marked any text
                self._hosts.add(host_of(name))
        if len(self._times) >= MOST_BLAMED:
            self.everything = True

    def blame(self, mark: Mark) -> tuple[str, int]:
        """A process died while it read this input. Returns its name, and how often it was blamed so far."""
        name = input_of(mark)
        times = self._times.get(name, 0) + 1
        self.learn([(name, times)])
        return name, times

    def listed(self) -> list[tuple[str, int]]:
        return list(self._times.items())

    def includes(self, host: str) -> bool:
        """Whether inputs from this host are read in isolation."""
        return self.everything or host in self._hosts

    def blamed(self, name: str) -> bool:
        """Whether this input itself was blamed."""
        return bool(self._times) and clipped(name) in self._times

    def hopeless(self, name: str) -> bool:
        """Whether this input must not be read any more."""
        return bool(self._times) and self._times.get(clipped(name), 0) >= GIVE_UP_AT

"""What the metrics show of one fetcher: how full it is, its rate, and how long it was slowed down."""

from __future__ import annotations

from typing import Final

from silkline.metrics.instruments import (
    BACKPRESSURE,
    BACKPRESSURE_SECONDS,
    FETCHER_PAGES,
    FRONTIER_URLS,
    IN_FLIGHT,
    PAGES_PER_SECOND,
    PARSER_QUEUE,
    UNSAVED_BYTES,
    UNSAVED_PAGES,
    meter_name,
    tell_cpu,
)

FREE, SOFT, HARD = "", "soft", "hard"
_WINDOW: Final = 2.0
"""Seconds over which the rate is measured."""


class FetcherGauges:
    """`now` is the time of the event loop."""

    def __init__(self, now: float) -> None:
        self._name = meter_name()
        self._pages = 0
        self._measured_at = now

    def page(self) -> None:
        """The fetcher finished a page."""
        self._pages += 1
        FETCHER_PAGES.add(1, self._name)

    def show(
        self, now: float, *, in_flight: int, frontier: int, unsaved: int, unsaved_bytes: int, parsers: int
    ) -> None:
        IN_FLIGHT.set(in_flight)
        FRONTIER_URLS.set(frontier)
        UNSAVED_PAGES.set(unsaved)
        UNSAVED_BYTES.set(unsaved_bytes)
        PARSER_QUEUE.set(parsers)
        if (seconds := now - self._measured_at) >= _WINDOW:
            PAGES_PER_SECOND.set(self._pages / seconds, self._name)
            self._pages, self._measured_at = 0, now
            tell_cpu()

    def close(self) -> None:
        """The fetcher ended; its process may live on."""
        for gauge in (IN_FLIGHT, FRONTIER_URLS, UNSAVED_PAGES, UNSAVED_BYTES, PARSER_QUEUE):
            gauge.set(0)
        PAGES_PER_SECOND.set(0, self._name)
        tell_cpu()


class BackPressure:
    """Counts how often, and how long, the limits of unsaved pages slow a fetcher down."""

    def __init__(self) -> None:
        self._level = FREE
        self._since = 0.0

    def note(self, pressure: float, full: bool, now: float) -> None:
        """`pressure`: 0 at the soft limit, 1 at the hard one. `full`: nothing may start for another reason."""
        level = FREE if pressure <= 0 and not full else HARD if full or pressure >= 1 else SOFT
        if level == FREE == self._level:
            return
        if self._level != FREE:
            BACKPRESSURE_SECONDS.add(now - self._since, self._level)
        if level not in (FREE, self._level):
            BACKPRESSURE.add(1, level)
        self._level, self._since = level, now

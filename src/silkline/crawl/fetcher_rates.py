"""Pages per second of each fetcher, over the last seconds. Counts batches, not pages. Pure."""

from __future__ import annotations

from typing import Final

WINDOW: Final = 5.0


class FetcherRates:
    def __init__(self, fetchers: int, now: float) -> None:
        self._pages = [0] * fetchers
        self._since = now
        self._rates = [0.0] * fetchers

    def add(self, fetcher: int, pages: int) -> None:
        self._pages[fetcher] += pages

    def rates(self, now: float) -> list[float]:
        """The rates of the last complete window; in the first window, of the time so far."""
        passed = now - self._since
        if passed >= WINDOW or not any(self._rates):
            self._rates = [round(pages / max(passed, 0.001), 2) for pages in self._pages]
        if passed >= WINDOW:
            self._pages, self._since = [0] * len(self._pages), now
        return self._rates

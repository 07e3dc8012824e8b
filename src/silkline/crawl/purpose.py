"""What a kind of job is after: the one place where `site`, `page` and `map` differ in what they make of an answer.

How a URL is asked for, and what becomes of an answer, is the same for all of them (pump.py, decisions.py, answers.py).
"""

from __future__ import annotations

from typing import Protocol

from silkline.crawl.frontier import FrontierUrl
from silkline.crawl.messages import FetchedPage
from silkline.crawl.reading import Body, Reading
from silkline.fetch.robots import Robots
from silkline.model.fetched import Fetched
from silkline.model.ledger import Settled


class Purpose(Protocol):
    """Fulfilled by `SiteCrawl` (site_crawl.py), and by the jobs of the kinds `page` and `map`."""

    @property
    def full(self) -> bool:
        """More waits to be stored than memory should hold: start no request."""
        ...

    def introduced(self, host: str, url: str, rules: Robots) -> None:
        """The robots.txt of a host has been read, for this URL."""
        ...

    def is_over(self, entry: FrontierUrl) -> bool:
        """Whether the limits of the job leave a URL out that was queued before."""
        ...

    def body(self, host: str, entry: FrontierUrl, fetched: Fetched) -> Body:
        """What is handed to the reader."""
        ...

    def follow(self, entry: FrontierUrl, fetched: Fetched, target: str) -> FrontierUrl | FetchedPage:
        """A redirect: what is asked next in the same row of the ledger, or the end of this row."""
        ...

    def read(self, host: str, entry: FrontierUrl, fetched: Fetched, reading: Reading) -> FetchedPage:
        """A body was read: the end of its URL."""
        ...

    def ended(self, entry: FrontierUrl, settled: Settled, fetched: Fetched | None) -> FetchedPage:
        """A URL brought nothing, for the reason in `settled`; `fetched` is the last answer, if one came."""
        ...

    def close(self) -> None: ...


def onward(entry: FrontierUrl, target: str) -> FrontierUrl:
    """A redirect that is followed within one row: the target, with the URLs that led to it."""
    chain = f"{entry.chain} {entry.url}" if entry.chain else entry.url
    return entry._replace(url=target, chain=chain, attempts=0, put_off=0)

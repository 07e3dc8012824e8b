"""The purpose of a job: the only place where `site`, `page` and `map` differ in how they use an answer.

Requests and decisions about answers are the same for all of them (pump.py, decisions.py, answers.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, Protocol

from silkline.crawl.messages import PageOutcome
from silkline.crawl.reading import Body, Reading
from silkline.crawl.url_queue import FrontierUrl
from silkline.fetch.robots import Robots
from silkline.model.fetched import Fetched
from silkline.model.ledger import Settled

MORE: Final = "more"
LATER: Final = "later"
Portions = Iterator[PageOutcome | Literal["more", "later"]]
"""What a large reading makes, in portions: `MORE` after each, and the end of the URL at last. `LATER` instead of the
end: it is to be fetched again when it need not wait any more."""
LATER_SECONDS: Final = 2.0
"""So long a URL that must wait stays out of the queue of its host, before it is looked at again."""


class Purpose(Protocol):
    """Implemented by `SiteCrawl` (site_crawl.py), and by the jobs of the kinds `page` and `map`."""

    @property
    def full(self) -> bool:
        """More results wait to be stored than memory should hold: start no request."""
        ...

    def introduced(self, host: str, url: str, rules: Robots) -> None:
        """The robots.txt of a host was read, for this URL."""
        ...

    def is_over(self, entry: FrontierUrl) -> bool:
        """Whether the limits of the job now exclude a URL that was queued before."""
        ...

    def must_wait(self, entry: FrontierUrl) -> bool:
        """Whether the URL is not to be requested yet."""
        ...

    def body(self, host: str, entry: FrontierUrl, fetched: Fetched) -> Body:
        """The input for the reader."""
        ...

    def follow(self, entry: FrontierUrl, fetched: Fetched, target: str) -> FrontierUrl | PageOutcome:
        """A redirect: returns the next URL for the same row of the ledger, or the end of this row."""
        ...

    def read(self, host: str, entry: FrontierUrl, fetched: Fetched, reading: Reading) -> PageOutcome | Portions:
        """A body was read: returns the end of its URL. With portions, the next one is made when it is not `full`."""
        ...

    def ended(self, entry: FrontierUrl, settled: Settled, fetched: Fetched | None) -> PageOutcome:
        """A URL has no page, for the reason in `settled`. `fetched` is the last answer, if there was one."""
        ...

    def close(self) -> None: ...


def onward(entry: FrontierUrl, target: str) -> FrontierUrl:
    """A redirect within one row: the target, with the URLs that redirected to it."""
    chain = f"{entry.chain} {entry.url}" if entry.chain else entry.url
    return entry._replace(url=target, chain=chain, attempts=0, put_off=0)

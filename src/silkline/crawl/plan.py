"""The plan of a crawl, as one value for every process of its tree. No I/O, no policy.

`crawl/plan_from_spec.py` makes it from a spec. Fetchers, parsers and readers get a ready plan and import no spec: with
the library of the specs, their start would take twice as long.
"""

from __future__ import annotations

import secrets
from typing import Final

import msgspec

from silkline.fetch.settings import PRODUCT
from silkline.model.fields import Field
from silkline.page_files import FilePlace

HOME: Final = "https://github.com/silkline/silkline"


class Pace(msgspec.Struct, frozen=True):
    """The limits on the load of a host and of an address.

    The smallest delay of a host is `patience` times its response time. `most` is the longest delay that failures can
    cause.
    """

    delay: float
    per_host: int
    per_address: int
    patience: float
    most: float


PACES: Final = {
    "polite": Pace(delay=2.0, per_host=1, per_address=2, patience=2.0, most=60.0),
    "normal": Pace(delay=0.5, per_host=2, per_address=8, patience=1.0, most=30.0),
    "fast": Pace(delay=0.1, per_host=4, per_address=32, patience=0.25, most=10.0),
    "max": Pace(delay=0.0, per_host=64, per_address=1_000_000, patience=0.0, most=1.0),
}


class Tuning(msgspec.Struct, frozen=True):
    """Times, sizes and bounds of the engine. Normal use needs only the defaults; tests make them small."""

    checkpoint_seconds: float = 1.0
    checkpoint_pages: int = 500
    flush_seconds: float = 0.01
    look_seconds: float = 1.0
    idle_seconds: float = 3.0
    drain_seconds: float = 1.0
    log_seconds: float = 30.0
    window: int = 20_000
    per_host_window: int = 1_000
    refill_rows: int = 5_000
    soft_unsaved: int = 1_000
    hard_unsaved: int = 3_000
    soft_unsaved_bytes: int = 32 << 20
    hard_unsaved_bytes: int = 96 << 20
    tries: int = 3
    retry_base: float = 3.0
    retry_cap: float = 300.0
    longest_wait: float = 300.0
    """A job with nothing else to do gives up a host that asks us to wait longer than this."""
    fail_long_waits: bool = False
    """A URL whose host asks for more than `longest_wait` fails at once, even if the job has other work."""
    most_waited: float = 1200.0
    """A host that asks us to wait again and again is given up after this long, even if the job has other work."""
    give_up_after: int = 10
    robots_tries: int = 3
    robots_count: bool = True
    """The request for robots.txt counts like any other request: the next one waits for the delay of the host."""
    booking_seconds: float = 4.0
    """Seconds of a host that are booked at once; 0: one request."""
    idle_hosts: int = 20_000
    max_redirects: int = 10
    max_body: int = 20 << 20
    total_timeout: float = 60.0
    idle_timeout: float = 20.0
    connect_timeout: float = 10.0
    host_budget: int = 200_000
    template_budget: int = 10_000
    query_budget: int = 2_000
    trap_rows: int = 2_000
    host_bytes: int = 64 << 20
    """Limit on the size of the URLs of one host in the ledger; 200,000 URLs of 100 bytes take half of it."""
    source_bytes: int = 64 << 20
    """Limit on the size of the rows that pages of one host cause. URLs of the host itself that are to be fetched do not
    count. It is enough for 400,000 links of 80 bytes to other sites."""
    page_bytes: int = 32 << 10
    """Limit on the size of the new URLs of one page, in addition to `page_factor` for each byte of the page on the
    wire."""
    page_factor: int = 64
    most_rendering: int = 64
    most_rendering_bytes: int = 64 << 20
    render_seconds: float = 20.0
    read_seconds: float = 8.0
    """How long reading one input may take."""
    read_memory: int = 1 << 30
    """Memory that a reader process may use for one input; 0: no limit."""

    @property
    def small_bytes(self) -> int:
        """A host that has used less than this of its budgets may be forgotten."""
        return min(self.source_bytes, self.host_bytes) >> 10


class Rendering(msgspec.Struct, frozen=True):
    """How pages are rendered, and with which browser."""

    auto: bool
    """Render only pages that need it; otherwise all."""
    count: int
    """Pages in browsers at once, on this machine."""
    places: str
    url: str = ""
    """A browser that the operator runs; empty: one of our own."""
    job: str = ""
    """Jobs take turns in the browsers of a machine."""
    screenshot: str = ""
    pdf: bool = False
    files: FilePlace | None = None
    """Where screenshots and PDFs are stored, if they are wanted."""


def _new_seed() -> int:
    return secrets.randbits(64)


class Plan(msgspec.Struct, frozen=True):
    """A spec prepared for the engine."""

    fetchers: int
    parsers: int
    concurrency: int
    pace: Pace
    user_agent: str
    scope: str
    content: str
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    no_links: bool = False
    no_images: bool = False
    link_titles: bool = False
    depth: int | None = None
    limit: int | None = None
    max_duration: float | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    exclude_hosts: tuple[str, ...] = ()
    seeded_hosts_only: bool = False
    ignore_robots: bool = False
    sitemaps: bool = True
    proxy: str = ""
    allow_private: tuple[str, ...] = ()
    origin_headers: dict[str, tuple[tuple[str, str], ...]] = {}
    tuning: Tuning = Tuning()
    archive: tuple[str, str, int] | None = None
    """Where raw answers are archived, if they are: the data directory, the job and its lease."""
    rendering: Rendering | None = None
    by_name: bool = False
    """Each URL was requested by name: it is read even with `noindex`, and as text if it is a feed or other XML."""
    listings: bool = False
    """Readings of sitemaps hold their entries, with dates and priorities."""
    shard: int | None = None
    """Which shard of a crawl over many machines this is; None: it is a whole crawl."""
    shards: int = 1
    seen_seed: int = msgspec.field(default_factory=_new_seed)
    """The seed of the keys in the seen-sets of this attempt (crawl/seen.py). No page can know it."""

    fields: tuple[Field, ...] = ()
    each: str = ""
    require_fields: float = 0.0
    facts: tuple[str, ...] = ()
    hooks: tuple[tuple[str, str], ...] = ()
    """The page hooks that are installed: the name and the place of each (crawl/page_hooks.py)."""
    keep_html: bool = False

    @property
    def extracts(self) -> bool:
        """Whether the code of users, their selectors or their hooks, runs for each page."""
        return bool(self.fields or self.hooks)

    @property
    def wants_headers(self) -> bool:
        """Whether readers need the headers of responses."""
        return bool(self.hooks) or "headers" in self.facts

    @property
    def scoped(self) -> bool:
        """Whether the scope depends on the seeds."""
        return self.scope != "any" or self.seeded_hosts_only


def user_agent_of(own: str | None, contact: str) -> str:
    """The user agent: the name of the crawler and a contact."""
    if own:
        return own
    return f"{PRODUCT} (+{contact})" if contact else f"{PRODUCT} (+{HOME})"

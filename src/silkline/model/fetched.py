"""What one request to the web came to: the request, the outcome, and every reason an outcome can have.

Values only. A reason is what the ledger stores and people read, so these words are a contract that does not change.
"""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import Final

import msgspec

# The request never left.
BAD_URL: Final = "bad_url"
BAD_REQUEST: Final = "bad_request"
SCHEME_BLOCKED: Final = "scheme_blocked"
ADDRESS_BLOCKED: Final = "address_blocked"
CLOSED: Final = "closed"
# The server was not reached.
DNS_FAILED: Final = "dns_failed"
DNS_TIMEOUT: Final = "dns_timeout"
HOST_UNKNOWN: Final = "host_unknown"
CONNECT_FAILED: Final = "connect_failed"
CONNECT_TIMEOUT: Final = "connect_timeout"
TLS_FAILED: Final = "tls_failed"
PROXY_FAILED: Final = "proxy_failed"
HOST_UNAVAILABLE: Final = "host_unavailable"
"""Not asked any more in this job: the host failed too often, or asked to be left alone for too long."""
# The answer was no good.
TIMEOUT: Final = "timeout"
RESET: Final = "reset"
TRUNCATED: Final = "truncated"
BAD_RESPONSE: Final = "bad_response"
HEADERS_TOO_LARGE: Final = "headers_too_large"
BODY_TOO_LARGE: Final = "body_too_large"
BAD_ENCODING: Final = "bad_encoding"
TOO_MANY_CHUNKS: Final = "too_many_chunks"
MEMORY_FULL: Final = "memory_full"
# The answer pointed elsewhere.
BAD_REDIRECT: Final = "bad_redirect"
REDIRECT_LOOP: Final = "redirect_loop"
TOO_MANY_REDIRECTS: Final = "too_many_redirects"
# The page came, and its scripts were to run.
RENDERER_MISSING: Final = "renderer_missing"
RENDER_BUSY: Final = "render_busy"
RENDER_CRASHED: Final = "render_crashed"
RENDER_FAILED: Final = "render_failed"
RENDER_REFUSED: Final = "render_refused"
RENDER_TIMEOUT: Final = "render_timeout"
RENDER_TOO_LARGE: Final = "render_too_large"
# The page came, and no process that read it came to an end.
READER_DIED: Final = "reader_died"

_TEMPORARY: Final = frozenset(
    {
        DNS_FAILED,
        DNS_TIMEOUT,
        CONNECT_FAILED,
        CONNECT_TIMEOUT,
        PROXY_FAILED,
        TIMEOUT,
        RESET,
        TRUNCATED,
        MEMORY_FULL,
        CLOSED,
        RENDER_BUSY,
        HOST_UNAVAILABLE,
    }
)
_TEMPORARY_STATUSES: Final = frozenset({408, 421, 425, 429, 500, 502, 503, 504, 507, 509, *range(520, 528), 529, 530})

_LONGEST_RETRY_AFTER: Final = 86_400.0
_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class Request(msgspec.Struct, frozen=True):
    """One hop to make. `headers` go to this URL's origin and to no other."""

    url: str
    etag: str = ""
    last_modified: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    max_body: int | None = None
    cut: bool = False
    """A body above the limit is cut to it instead of refused: robots.txt is read this way."""


class Timings(msgspec.Struct, frozen=True):
    """Seconds since the request was handed in; zero where it never came so far."""

    connected: float = 0.0
    first_byte: float = 0.0
    total: float = 0.0


class Rendered(msgspec.Struct, frozen=True):
    """What became of a page in a browser: its DOM as UTF-8, or the reason why there is none."""

    url: str
    """Where the page's scripts say it is, which need not be true."""
    body: bytes = b""
    reason: str | None = None
    detail: str = ""
    seconds: float = 0.0
    requests: int = 0
    wire_bytes: int = 0
    cut: tuple[str, ...] = ()
    """What the page wanted more of than it was given: time, requests, bytes, navigations."""


class Fetched(msgspec.Struct, frozen=True):
    """The outcome of one hop. A Struct, because building a frozen dataclass of this size costs ten times as much."""

    url: str
    status: int = 0
    reason: str | None = None
    headers: Mapping[str, str] = _NO_HEADERS
    body: bytes = b""
    content_type: str = ""
    charset: str = ""
    location: str | None = None
    wire_bytes: int = 0
    address: str = ""
    http_version: str = ""
    timings: Timings = Timings()
    hops: tuple[str, ...] = ()
    """The URLs that redirected here, first to last; only `follow` fills it."""
    detail: str = ""
    """What the network library said, for logs and `explain`; never for decisions."""
    rendered: Rendered | None = None
    """What a browser made of it; the rest is as the server sent it."""

    @property
    def ok(self) -> bool:
        """There is a page to read."""
        return self.reason is None and 200 <= self.status < 300

    @property
    def unchanged(self) -> bool:
        """The server confirmed the copy that the request named."""
        return self.reason is None and self.status == 304

    @property
    def redirect(self) -> bool:
        """There is another URL to ask, in `location`."""
        return self.reason is None and self.location is not None

    @property
    def temporary(self) -> bool:
        """Trying again later may help."""
        return is_temporary(self.reason)


def http_reason(status: int) -> str:
    """The reason for an answer whose status says that it is no page."""
    return f"http_{status}"


def is_temporary(reason: str | None) -> bool:
    """Whether the same request may succeed when it is made again later."""
    if reason is None:
        return False
    if reason.startswith("http_"):
        return int(reason[5:]) in _TEMPORARY_STATUSES
    return reason in _TEMPORARY


def retry_after(fetched: Fetched, now: float) -> float | None:
    """Seconds the server asked to be left alone, from `Retry-After` in either form; at most a day."""
    value = fetched.headers.get("retry-after", "").strip()
    if not value:
        return None
    if value.isascii() and value.isdigit():
        return min(float(value[:9]), _LONGEST_RETRY_AFTER)
    try:
        seconds = parsedate_to_datetime(value).timestamp() - now
    except (ValueError, OverflowError):
        return None
    return min(max(seconds, 0.0), _LONGEST_RETRY_AFTER)

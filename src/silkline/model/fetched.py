"""One request to the web and its outcome, with every reason that an outcome can have.

Values only. The ledger stores these reasons and users read them, so their names do not change.
"""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import Final

import msgspec

# The request was not sent.
BAD_URL: Final = "bad_url"
BAD_REQUEST: Final = "bad_request"
SCHEME_BLOCKED: Final = "scheme_blocked"
ADDRESS_BLOCKED: Final = "address_blocked"
ADDRESS_BUSY: Final = "address_busy"
"""Its address has as many requests at once as are allowed."""
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
"""The job sends no more requests to this host: it failed too often, or asked to wait too long."""
# The response was not valid.
TIMEOUT: Final = "timeout"
RESET: Final = "reset"
TRUNCATED: Final = "truncated"
BAD_RESPONSE: Final = "bad_response"
HEADERS_TOO_LARGE: Final = "headers_too_large"
BODY_TOO_LARGE: Final = "body_too_large"
BAD_ENCODING: Final = "bad_encoding"
TOO_MANY_CHUNKS: Final = "too_many_chunks"
MEMORY_FULL: Final = "memory_full"
# The redirects were not valid.
BAD_REDIRECT: Final = "bad_redirect"
REDIRECT_LOOP: Final = "redirect_loop"
TOO_MANY_REDIRECTS: Final = "too_many_redirects"
# The page was fetched, and rendering it failed.
RENDERER_MISSING: Final = "renderer_missing"
RENDER_BUSY: Final = "render_busy"
RENDER_CRASHED: Final = "render_crashed"
RENDER_FAILED: Final = "render_failed"
RENDER_REFUSED: Final = "render_refused"
RENDER_TIMEOUT: Final = "render_timeout"
RENDER_TOO_LARGE: Final = "render_too_large"
# The files that can be made of a rendered page.
SCREENSHOT: Final = "screenshot"
PDF: Final = "pdf"
# The page was fetched, and every process that parsed it died or took too long.
READER_DIED: Final = "reader_died"

_TEMPORARY: Final = frozenset(
    {
        ADDRESS_BUSY,
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
    """One request, without following redirects. `headers` are sent only to the origin of this URL."""

    url: str
    etag: str = ""
    last_modified: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    max_body: int | None = None
    cut: bool = False
    """Whether a too large body is cut instead of refused. Used for robots.txt."""
    purpose: str = "page"
    """For metrics: `page`, `robots`, `sitemap` or `other`."""


class Timings(msgspec.Struct, frozen=True):
    """Seconds since the start of the request; zero for steps that were not reached. `connected`: the request could be
    sent, over an encrypted connection if it needs one."""

    connected: float = 0.0
    first_byte: float = 0.0
    total: float = 0.0


class PageFile(msgspec.Struct, frozen=True):
    """A file made of a rendered page: its bytes until it is stored, then the machine that has it; or what failed."""

    name: str
    body: bytes = b""
    size: int = 0
    host: str = ""
    error: str = ""


class Rendered(msgspec.Struct, frozen=True):
    """The outcome of rendering a page: its DOM as UTF-8, or the reason of the failure."""

    url: str
    """The address that the scripts of the page set. It may be false."""
    body: bytes = b""
    reason: str | None = None
    detail: str = ""
    seconds: float = 0.0
    requests: int = 0
    wire_bytes: int = 0
    cut: tuple[str, ...] = ()
    """The limits that the page reached: time, requests, bytes, navigations."""
    files: tuple[PageFile, ...] = ()


class Fetched(msgspec.Struct, frozen=True):
    """The outcome of one request. A Struct, because a frozen dataclass of this size takes ten times as long."""

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
    """The URLs that redirected here, in order; only `follow` sets it."""
    detail: str = ""
    """The message of the network library, for logs and `explain`; never used for decisions."""
    rendered: Rendered | None = None
    """The rendered page; the other fields describe the response of the server."""

    @property
    def ok(self) -> bool:
        """Whether there is a page to parse."""
        return self.reason is None and 200 <= self.status < 300

    @property
    def unchanged(self) -> bool:
        """Whether the server says that the copy named in the request is still valid."""
        return self.reason is None and self.status == 304

    @property
    def redirect(self) -> bool:
        """Whether the response redirects to the URL in `location`."""
        return self.reason is None and self.location is not None

    @property
    def temporary(self) -> bool:
        """Whether a later retry may succeed."""
        return is_temporary(self.reason)


def http_reason(status: int) -> str:
    """The reason for a response whose status is not a success."""
    return f"http_{status}"


def is_temporary(reason: str | None) -> bool:
    """Whether the same request may succeed later."""
    if reason is None:
        return False
    if reason.startswith("http_"):
        return int(reason[5:]) in _TEMPORARY_STATUSES
    return reason in _TEMPORARY


def retry_after(fetched: Fetched, now: float) -> float | None:
    """The seconds to wait from `Retry-After`, in either of its formats; at most a day."""
    value = fetched.headers.get("retry-after", "").strip()
    if not value:
        return None
    if value.isascii() and value.isdigit():
        return min(float(value[:9]), _LONGEST_RETRY_AFTER)
    try:
        seconds = parsedate_to_datetime(value).timestamp() - now
    except (ValueError, OverflowError, OSError, TypeError, IndexError):  # the last two: errors of the library
        return None
    return min(max(seconds, 0.0), _LONGEST_RETRY_AFTER)

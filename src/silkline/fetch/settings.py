"""The settings of the client: its name, its timeouts and its size limits. Values only."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import certifi

from silkline import __version__
from silkline.errors import UsageError
from silkline.fetch.origin import locate
from silkline.model.framing_headers import FRAMING_HEADERS

# Sites need only the first two parts of the version.
PRODUCT: Final = "Silkline/" + ".".join(__version__.split(".")[:2])
MIB: Final = 1024 * 1024
_ABOVE_ZERO: Final = (
    *("connect_timeout", "idle_timeout", "total_timeout"),
    *("max_wire", "max_body", "max_headers", "max_buffered", "connections", "burst", "addresses"),
)


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """Times in seconds, sizes in bytes. Invalid values raise `UsageError` here, so that no fetch has to."""

    user_agent: str = PRODUCT
    accept: str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
    accept_language: str = "en,*;q=0.5"
    connect_timeout: float = 10.0
    idle_timeout: float = 20.0
    total_timeout: float = 60.0
    max_wire: int = 10 * MIB
    max_body: int = 20 * MIB
    max_headers: int = 64 * 1024
    max_buffered: int = 32 * MIB
    """All bodies that are being received. Above this limit, a body of more than a megabyte replaces much slower bodies,
    or is dropped as a temporary failure.
    """
    connections: int = 512
    """Idle connections that are kept, over all hosts."""
    most_connections: int = 100_000
    """Connections in use plus idle connections. Above this limit, a request waits until one is closed."""
    burst: int = 128
    """Sockets that are served before the event loop runs other callbacks."""
    addresses: int = 3
    """How many addresses of a host are tried, one after the other."""
    http2: bool = True
    verify: bool = True
    ca_bundle: str = ""
    """Empty: the bundle of the system, or of certifi if the system has none."""
    proxy: str = ""
    """The proxy of the operator. It resolves names itself, so the guard checks only hosts that are addresses."""
    origin_headers: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """Headers and cookies of the job, by origin (`https://example.com`). They are sent to no other origin."""

    def __post_init__(self) -> None:
        for name in _ABOVE_ZERO:
            if getattr(self, name) <= 0:
                raise UsageError(f"{name} must be above zero")
        for value in (self.user_agent, self.accept, self.accept_language):
            if not is_header_value(value):
                raise UsageError(f"{value!r} has characters that are not allowed in a header")
        for origin, headers in self.origin_headers.items():
            target = locate(origin)
            if isinstance(target, str) or target.origin.text != origin:
                raise UsageError(f"headers are for an origin such as https://example.com, not {origin!r}")
            for name, value in headers:
                if not (is_header_name(name) and is_header_value(value)):
                    raise UsageError(f"header {name!r}: the name or value has characters that are not allowed")
                if name.lower() in FRAMING_HEADERS:
                    raise UsageError(f"header {name!r} cannot be set, because Silkline sets it for each request")

    def ca_file(self) -> str:
        """The bundle of certificates that verifies servers."""
        if self.ca_bundle:
            return self.ca_bundle
        system = ssl.get_default_verify_paths().cafile
        for candidate in (system, "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"):
            if candidate and Path(candidate).is_file():
                return candidate
        return certifi.where()


@dataclass(frozen=True, slots=True)
class Capture:
    """The files that are made of each rendered page, and their limits. Seconds, bytes, pixels."""

    screenshot: str = ""
    """`full`: the whole page; `viewport`: its top, as a window shows it; empty: none."""
    pdf: bool = False
    seconds: float = 15.0
    """For each file."""
    max_bytes: int = 20 * MIB
    """Of each file."""
    max_height: int = 16_384
    """Of a screenshot. Chromium draws no larger pictures; what is below is not shown."""
    max_pixels: int = 40_000_000
    """Of a screenshot. Each needs 4 bytes of memory, several times; a page that is too wide for this is cut below."""

    @property
    def anything(self) -> bool:
        return bool(self.screenshot) or self.pdf


@dataclass(frozen=True, slots=True)
class RenderLimits:
    """Limits of time and size for a page in a browser. Seconds, bytes, characters."""

    seconds: float = 20.0
    """From the start of the page until its DOM is read, even if the page is not done."""
    settle_seconds: float = 5.0
    """How long a loaded page may continue to send requests."""
    timer_seconds: float = 2.0
    """How far timers of a loaded page may reach into the future. They fire at once (render_settling.py)."""
    quiet_seconds: float = 0.5
    """A loaded page without requests for this time is done, if it does work that timers do not show."""
    snapshot_seconds: float = 5.0
    wait_seconds: float = 600.0
    """How long a page waits for a slot in a browser."""
    max_dom: int = 10_000_000
    max_requests: int = 300
    max_bytes: int = 32 * MIB
    max_events: int = 64 * MIB
    """What the browser tells about the page: requests, frames, dialogs (render_budget.py)."""
    max_memory: int = 1024 * MIB
    """Memory of the page's process. Above this limit it is killed."""
    max_browser_memory: int = 1536 * MIB
    """Memory of a process of the browser that all pages share. Above this limit the browser is killed, and each of its
    pages is tried again, alone in a browser."""
    max_total_memory: int = 1280 * MIB
    total_memory_per_page: int = 384 * MIB
    """Memory of all processes of a browser: this much, and this much more for each open page. Above it, the same."""
    max_reloads: int = 2
    pages_per_browser: int = 200
    idle_seconds: float = 30.0
    """A browser without pages for this time is closed."""
    origin_headers: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)


def is_header_name(name: str) -> bool:
    """Whether the name is a token of RFC 9110. A line break could start another header."""
    return bool(name) and name.isascii() and all(c.isalnum() or c in "!#$%&'*+-.^_`|~" for c in name)


def is_header_value(value: str) -> bool:
    """Whether the value has only printable Latin-1 characters and tabs."""
    return all(c == "\t" or " " <= c <= "~" or "\xa0" <= c <= "\xff" for c in value)

"""How the client behaves: who it says it is, how long it waits, how much it takes. Values only."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import certifi

from silkline import __version__
from silkline.errors import UsageError
from silkline.fetch.origin import locate

# Two parts of the version are enough for sites.
PRODUCT: Final = "Silkline/" + ".".join(__version__.split(".")[:2])
MIB: Final = 1024 * 1024
_ABOVE_ZERO: Final = (
    *("connect_timeout", "idle_timeout", "total_timeout"),
    *("max_wire", "max_body", "max_headers", "max_buffered", "connections", "burst", "addresses"),
)


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """Times in seconds, sizes in bytes. Wrong values raise `UsageError` here, so that no fetch ever has to."""

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
    """Bodies on their way, all together. Above it one of more than a megabyte takes the place of much slower ones, or
    is dropped itself, as a passing failure."""
    connections: int = 512
    """Idle connections kept, over all hosts."""
    most_connections: int = 100_000
    """Connections in use and idle together; beyond them a request waits until one is closed."""
    burst: int = 128
    """Sockets that are served before the loop sees to anything else."""
    addresses: int = 3
    """How many addresses of a host are tried, one after the other."""
    http2: bool = True
    verify: bool = True
    ca_bundle: str = ""
    """Empty: the system's, or certifi's where the system has none."""
    proxy: str = ""
    """The operator's. It resolves names itself, so behind it the guard sees only hosts that are addresses."""
    origin_headers: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """Headers (cookies too) of the job, by origin (`https://example.com`); no other origin ever gets them."""

    def __post_init__(self) -> None:
        for name in _ABOVE_ZERO:
            if getattr(self, name) <= 0:
                raise UsageError(f"{name} must be above zero")
        for value in (self.user_agent, self.accept, self.accept_language):
            if not is_header_value(value):
                raise UsageError(f"{value!r} has characters that no header may have")
        for origin, headers in self.origin_headers.items():
            target = locate(origin)
            if isinstance(target, str) or target.origin.text != origin:
                raise UsageError(f"headers are for an origin such as https://example.com, not {origin!r}")
            for name, value in headers:
                if not (is_header_name(name) and is_header_value(value)):
                    raise UsageError(f"header {name!r}: the name or value has characters that no header may have")

    def ca_file(self) -> str:
        """The bundle to verify servers with."""
        if self.ca_bundle:
            return self.ca_bundle
        system = ssl.get_default_verify_paths().cafile
        for candidate in (system, "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"):
            if candidate and Path(candidate).is_file():
                return candidate
        return certifi.where()


@dataclass(frozen=True, slots=True)
class RenderLimits:
    """How long a page may run in a browser, and how much it may take. Seconds, bytes, characters."""

    seconds: float = 20.0
    """From its start to the moment it is read, done or not."""
    settle_seconds: float = 5.0
    """How long a page that is loaded may go on asking for more."""
    quiet_seconds: float = 0.5
    """A page that is loaded and has asked for nothing for so long is done."""
    snapshot_seconds: float = 5.0
    wait_seconds: float = 600.0
    """How long a page waits for a place in a browser."""
    max_dom: int = 10_000_000
    max_requests: int = 300
    max_bytes: int = 32 * MIB
    max_memory: int = 1024 * MIB
    """Of the page's process, which is killed beyond it."""
    max_reloads: int = 2
    pages_per_browser: int = 200
    idle_seconds: float = 30.0
    """A browser that has shown nothing for so long is closed."""
    origin_headers: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)


def is_header_name(name: str) -> bool:
    """RFC 9110's token; the colon and line breaks would start another header."""
    return bool(name) and name.isascii() and all(c.isalnum() or c in "!#$%&'*+-.^_`|~" for c in name)


def is_header_value(value: str) -> bool:
    """Printable Latin-1 and tabs."""
    return all(c == "\t" or " " <= c <= "~" or "\xa0" <= c <= "\xff" for c in value)

"""Binds the address of the API. The parent process does this, so it knows the port and can refuse unsafe addresses."""

from __future__ import annotations

import errno
import ipaddress
import socket

from silkline.config import Settings
from silkline.errors import UsageError

PORT = 8700


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a bind address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int | None, settings: Settings, *, option: str = "") -> tuple[socket.socket, int]:
    """A listening socket and its port. If no port is given: 8700, or a free port if 8700 is in use.

    `option` is in front of the names of the options that messages advise: --host and --port.
    """
    if not is_loopback(host) and not settings.api_token:
        raise UsageError(
            f"other machines can reach Silkline at {host}: set SILKLINE_API_TOKEN first, or leave --{option}host out"
        )
    try:
        listener = _bind(host, PORT if port is None else port)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise UsageError(f"cannot listen at {host}: {error.strerror or error}") from error
        if port is not None:
            raise UsageError(
                f"port {port} at {host} is in use; choose another port with --{option}port, or leave --{option}port out"
            ) from error
        listener = _bind(host, 0)
    return listener, listener.getsockname()[1]


def _bind(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    return listener


def url(host: str, port: int) -> str:
    """The URL that a user opens."""
    shown = "127.0.0.1" if host in ("0.0.0.0", "::", "localhost") else host  # noqa: S104 - compared, not bound
    return f"http://{f'[{shown}]' if ':' in shown else shown}:{port}/"

"""Refuses URLs with private addresses, and says how the operator can allow them.

Only the text of the URL counts, in its canonical form: `http://%31%32%37.1/` is 127.0.0.1 for a browser. Nothing here
resolves a name, so a caller cannot learn the address of a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from silkline.config import Settings
from silkline.errors import SpecError, UsageError
from silkline.fetch.guard import METADATA_NAMES, Guard, parse_exemption
from silkline.fetch.origin import locate
from silkline.model.fetched import ADDRESS_BLOCKED
from silkline.model.url import canonical_base

OPERATOR_CAN = (
    "The operator of this server can allow it: set SILKLINE_API_ALLOW_PRIVATE=true, or api_allow_private = true in "
    "silkline.toml, and restart Silkline"
)
ASK_OPERATOR = f"{OPERATOR_CAN}. Then list the address in allow_private"
NAME_IT = "List the address in allow_private, such as 10.0.0.0/8 or 192.168.1.5:8080"
_NAMES = "|".join(map(re.escape, sorted(METADATA_NAMES)))
_MAY_BE_PRIVATE = re.compile(rf"https?://(\[|[0-9]|(([^/:]+\.)?localhost|{_NAMES})[:/])")  # of a canonical URL
_PORT_0 = re.compile(r"(?<=[^/:]):0(?=/)")
_LOCALHOST = ("127.0.0.1", "::1")
_METADATA = ("169.254.169.254",)


def remedy(settings: Settings) -> str:
    """How to crawl a private address through this server."""
    return NAME_IT if settings.api_allow_private else ASK_OPERATOR


def explained(reason: str | None, text: str, settings: Settings) -> str:
    """The message of a failure, with the remedy if a private address is the reason."""
    return f"{text}: it is a private address. {remedy(settings)}" if reason == ADDRESS_BLOCKED else text


def private_url(urls: Iterable[str], allowed: Iterable[str] = ()) -> str | None:
    """The first URL with a private address that is not in `allowed`, a list of CIDR[:PORT] texts."""
    guard: Guard | None = None
    for url in urls:
        address = canonical_base(url)
        if not _MAY_BE_PRIVATE.match(address):
            continue
        guard = guard or Guard(map(parse_exemption, allowed))
        target = locate(_PORT_0.sub("", address, count=1))  # nothing is fetched from port 0, so it is no target
        if isinstance(target, str):
            continue
        origin = target.origin
        addresses = (origin.literal,) if origin.literal else _meant_by(origin.host)
        if addresses and all(guard.check(address, origin.port) for address in addresses):
            return url
    return None


def _meant_by(name: str) -> tuple[str, ...]:
    """The private addresses that a name means everywhere."""
    if f".{name}".endswith(".localhost"):  # browsers look up no name under localhost
        return _LOCALHOST
    return _METADATA if name in METADATA_NAMES else ()


def foreign_private_url(asked: str, landed: str, settings: Settings) -> bool:
    """Whether a request landed on a private address that neither the operator allows nor its own URL has."""
    ranges = settings.api_private_ranges
    if settings.api_allow_private and not ranges:
        return False
    if private_url([landed], ranges if settings.api_allow_private else ()) is None:
        return False
    return urlsplit(asked).hostname != urlsplit(landed).hostname


def check_allowed(texts: Iterable[str]) -> None:
    """Refuse texts that are not CIDR[:PORT], before the job is stored."""
    for text in texts:
        try:
            parse_exemption(text)
        except UsageError as error:
            raise SpecError(
                f"allow_private: {text[:80]!r} is not an address: write 10.0.0.0/8 or 127.0.0.1:8080"
            ) from error

"""A URL that the operator types at the command line allows its own address and port. A job from the API does not.

Cloud metadata services and link-local addresses are the exception: they always need `--allow-private`.

A host name is looked up only if the job runs in the foreground: later the name may have another address. For a name
in a private network the operator uses `allow_private`.
"""

from __future__ import annotations

from collections.abc import Sequence

from silkline.fetch.guard import METADATA_NAMES, Guard, is_metadata, parse_exemption
from silkline.fetch.origin import locate

LOCALHOST = ("127.0.0.1", "::1")


def exemptions(url: str, *, look_up_names: bool = False, allowed: Sequence[str] = ()) -> list[str]:
    """The entries of `allow_private` for this URL, as ADDRESS:PORT; empty if it is public or allowed already."""
    target = locate(url)
    if isinstance(target, str):
        return []
    origin, guard = target.origin, Guard(map(parse_exemption, allowed))
    if origin.host.rstrip(".") in METADATA_NAMES:
        return []
    if origin.literal:
        addresses: tuple[str, ...] = (origin.literal,)
    elif origin.host == "localhost":
        addresses = LOCALHOST
    else:
        addresses = _addresses(origin.host) if look_up_names else ()
    return [
        f"[{address}]:{origin.port}" if ":" in address else f"{address}:{origin.port}"
        for address in addresses
        if guard.check(address, origin.port) and not is_metadata(address)
    ]


def _addresses(host: str) -> tuple[str, ...]:
    from silkline.fetch.dns import look_up

    found = look_up(host)
    return () if isinstance(found, str) else found

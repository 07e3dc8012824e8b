"""A URL typed by the operator at the command line allows its own address and port; a job from elsewhere never does.

Only an address or `localhost` is allowed so: a name would have to be looked up here, and may lead elsewhere when the
job runs. For a name in a private network the operator says `allow_private`.
"""

from __future__ import annotations

from silkline.fetch.guard import Guard
from silkline.fetch.origin import locate

LOCALHOST = ("127.0.0.1", "::1")


def exemptions(url: str) -> list[str]:
    """What `allow_private` must hold for this URL, as ADDRESS:PORT; empty where the address is public anyway."""
    target = locate(url)
    if isinstance(target, str):
        return []
    origin, guard = target.origin, Guard()
    addresses = (origin.literal,) if origin.literal else LOCALHOST if origin.host == "localhost" else ()
    return [
        f"[{address}]:{origin.port}" if ":" in address else f"{address}:{origin.port}"
        for address in addresses
        if guard.check(address, origin.port)
    ]

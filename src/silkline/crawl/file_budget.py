"""Computes how many requests at once the open-file limit of a process allows, so that a crawl never reaches the limit.

Besides its connections, a process of a crawl needs files for the database, the connections to the other processes of
its tree, and threads that resolve names. Requests in flight and idle connections share the rest.
"""

from __future__ import annotations

import logging
import resource
from typing import Final

import msgspec

from silkline.crawl.plan import Plan
from silkline.errors import Permanent

LEAST_FILES: Final = 128
"""With fewer files a crawl is refused."""
_OWN: Final = 48
_PER_PROCESS: Final = 4
_PER_LOOK_UP: Final = 2
_RENDERING: Final = 64
_LEAST_CONNECTIONS: Final = 16
_MOST_LOOK_UPS: Final = 32


def allowed_files() -> int:
    """How many files this process may have open."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 1 << 30 if soft == resource.RLIM_INFINITY else soft


def fitted(plan: Plan, log: logging.Logger, files: int | None = None) -> Plan:
    """The plan with a concurrency that fits. Logs a warning if it was reduced. Raises `Permanent` if nothing fits."""
    files = allowed_files() if files is None else files
    room = connections_for(plan, files)
    if files < LEAST_FILES or room < _LEAST_CONNECTIONS:
        sizes = f"{plan.fetchers} fetchers and {plan.parsers} parsers"
        least = max(LEAST_FILES, files - room + _LEAST_CONNECTIONS)
        raise Permanent(
            f"only {files:,} files may be open here, and a crawl with {sizes} needs at least {least:,}: "
            f"raise the limit with `ulimit -n {max(1024, least)}`, or use fewer processes"
        )
    most = room * 2 // 3
    if plan.concurrency <= most:
        return plan
    log.warning(
        "only %d files may be open here: each fetcher sends %d requests at once, not %d; "
        "raise the limit with `ulimit -n` (LimitNOFILE= in a systemd unit)",
        *(files, most, plan.concurrency),
    )
    return msgspec.structs.replace(plan, concurrency=most)


def connections_for(plan: Plan, files: int) -> int:
    """Connections that one process may have, in use and idle together."""
    wires = _PER_PROCESS * (plan.fetchers + plan.parsers)
    rendering = _RENDERING if plan.rendering is not None else 0
    return files - _OWN - wires - rendering - _PER_LOOK_UP * look_ups_for(files)


def look_ups_for(files: int) -> int:
    """The number of threads that resolve names."""
    return min(_MOST_LOOK_UPS, max(4, files // 32))

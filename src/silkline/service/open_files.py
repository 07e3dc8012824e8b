"""How many files this process may have open."""

from __future__ import annotations

import resource


def allow_open_files(wanted: int) -> None:
    """Raise the soft limit to this number, or to the hard limit. Each running job needs four open files here."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))

"""What a process that fetches needs besides a fetcher: an HTTP client, and fewer runs of the garbage collector."""

from __future__ import annotations

import gc
from typing import Final

from silkline.crawl.file_budget import allowed_files, connections_for, look_ups_for
from silkline.crawl.plan import Plan
from silkline.crawl.registrable_domain import domain_of
from silkline.fetch.client import HttpClient
from silkline.fetch.dns import SystemResolver
from silkline.fetch.dns_queue import last_two_labels
from silkline.fetch.guard import Guard, parse_exemption
from silkline.fetch.settings import FetchSettings

# Other processes wait for messages of this loop: shorter bursts made two fetchers 15 % faster, and one alone 6 %
# slower.
_BURST: Final = 64
_BURST_ALONE: Final = 128
# Idle connections, at most a quarter of the files. With 2,000 hosts requested in turn, a page costs a tenth less over
# HTTP, and a fifth less over HTTPS, than with a new connection each time. They take 10 to 25 MB.
_KEPT: Final = 2048


def open_client(plan: Plan) -> HttpClient:
    """The HTTP client for a plan."""
    tuning, files = plan.tuning, allowed_files()
    most = max(1, connections_for(plan, files))
    settings = FetchSettings(
        user_agent=plan.user_agent,
        connect_timeout=tuning.connect_timeout,
        idle_timeout=tuning.idle_timeout,
        total_timeout=tuning.total_timeout,
        max_body=tuning.max_body,
        connections=min(most, max(64, plan.concurrency, min(_KEPT, files // 4))),
        most_connections=most,
        burst=_BURST if plan.fetchers > 1 else _BURST_ALONE,
        proxy=plan.proxy,
        origin_headers=plan.origin_headers,
    )
    return HttpClient(
        settings,
        Guard(map(parse_exemption, plan.allow_private)),
        SystemResolver(threads=look_ups_for(files), domain_of=_zone_of),
    )


def _zone_of(host: str) -> str:
    """The domain of hosts that usually share name servers. If no public suffix is known, it is the last two labels."""
    domain = domain_of(host)
    return last_two_labels(host) if domain == host else domain


def calm_collector() -> None:
    """Run the cycle collector less often: a crawl creates hardly any cycles, and searching took 4 to 6 % of its CPU."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)

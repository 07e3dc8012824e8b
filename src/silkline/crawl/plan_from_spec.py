"""The plan of a crawl from its spec. Only processes that run jobs import this."""

from __future__ import annotations

from typing import get_args

import msgspec

from silkline.crawl.plan import PACES, Plan, Rendering, Tuning, user_agent_of
from silkline.model.credential_origins import origins_of
from silkline.model.fields import read_fields
from silkline.model.spec import Fact, SiteSpec


def plan_of(
    spec: SiteSpec,
    *,
    fetchers: int,
    concurrency: int,
    parsers: int = 0,
    contact: str = "",
    tuning: Tuning | None = None,
    rendering: Rendering | None = None,
) -> Plan:
    """The plan for a spec. `fetchers`, `parsers`, `concurrency` and `contact` are used if the spec has no value.

    `concurrency` is the number of requests in flight of the whole crawl, so the fetchers share it; there are never more
    fetchers than requests. The number in the spec is for each fetcher.
    """
    fetchers = spec.fetchers or fetchers
    if spec.concurrency is None:
        fetchers = min(fetchers, concurrency)
    pace = PACES[spec.speed]
    tuning = tuning or Tuning()
    if spec.delay is not None:
        pace = msgspec.structs.replace(pace, delay=spec.delay)
        # A host that waits because the user wants it is not given up.
        tuning = msgspec.structs.replace(tuning, longest_wait=tuning.longest_wait + spec.delay)
    return Plan(
        fetchers=fetchers,
        parsers=parsers if spec.parsers is None else spec.parsers,
        concurrency=spec.concurrency or concurrency // fetchers,
        pace=pace,
        user_agent=user_agent_of(spec.user_agent, spec.contact or contact),
        scope=spec.scope,
        content=spec.content,
        keep=spec.keep,
        drop=spec.drop,
        no_links=spec.no_links,
        no_images=spec.no_images,
        link_titles=spec.link_titles,
        depth=spec.depth,
        limit=spec.limit,
        max_duration=spec.max_duration,
        include=spec.include,
        exclude=spec.exclude,
        exclude_hosts=spec.exclude_hosts,
        seeded_hosts_only=spec.seeded_hosts_only,
        ignore_robots=spec.ignore_robots,
        sitemaps=spec.scope != "any",
        proxy=spec.proxy or "",
        allow_private=spec.allow_private,
        origin_headers=_headers_of(spec),
        tuning=tuning,
        rendering=rendering,
        fields=read_fields(spec.fields, spec.each) if spec.fields else (),
        each=spec.each or "",
        require_fields=spec.require_fields or 0.0,
        facts=facts_of(spec.facts),
        keep_html=spec.keep_html,
    )


def facts_of(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the facts that are wanted; `all` means each of them."""
    return tuple(name for name in get_args(Fact) if name != "all" and (name in names or "all" in names))


def _headers_of(spec: SiteSpec) -> dict[str, tuple[tuple[str, str], ...]]:
    """The job's own headers and cookies, only for the origins that get them."""
    headers = list(spec.headers.items())
    if spec.cookies:
        headers.append(("Cookie", "; ".join(f"{name}={value}" for name, value in spec.cookies.items())))
    if not headers:
        return {}
    origins = origins_of(spec.all_urls()) if spec.headers_for is None else spec.headers_for
    return dict.fromkeys(origins, tuple(headers))

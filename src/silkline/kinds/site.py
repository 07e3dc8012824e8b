"""The kind `site`: crawls one site or a million hosts with the crawl engine."""

from __future__ import annotations

import math
import os
from pathlib import Path

import msgspec
import uvloop

from silkline.crawl.fetcher_setup import calm_collector
from silkline.crawl.file_budget import fitted
from silkline.crawl.leader import Leader
from silkline.crawl.page_hooks import installed_hooks
from silkline.crawl.plan import Tuning
from silkline.crawl.plan_from_spec import plan_of
from silkline.errors import Permanent
from silkline.kinds.browser import rendering_for
from silkline.kinds.reader_limits import limits_of
from silkline.model.job import End
from silkline.model.kind import Context
from silkline.model.spec import SiteSpec
from silkline.model.url import canonical, host_of
from silkline.warc_files import place_of


def run(context: Context[SiteSpec]) -> End | None:
    return crawl(context, limits_of(context.settings, Tuning()))


def crawl(context: Context[SiteSpec], tuning: Tuning) -> End | None:
    """The same, with the times and bounds of the engine as an argument."""
    spec = context.spec
    if spec.planting:
        raise Permanent("the command that adds the seeds was killed before it finished: start the crawl again")
    settings = context.settings
    plan = plan_of(
        spec,
        fetchers=settings.fetchers or useful_fetchers(spec, usable_cores(spec.cpus or settings.cpus)),
        parsers=settings.parsers,
        concurrency=settings.max_concurrent_http,
        contact=settings.contact,
        tuning=tuning,
        rendering=rendering_for(spec, context),
    )
    job = context.progress.job
    if job.shard is not None:
        plan = msgspec.structs.replace(plan, shard=job.shard, shards=spec.shards or 1)
    plan = msgspec.structs.replace(fitted(plan, context.log), hooks=installed_hooks())
    if spec.warc:
        plan = msgspec.structs.replace(plan, archive=place_of(Path(settings.data), job))

    async def lead() -> End | None:
        return await Leader(context, plan, list(spec.all_urls())).run()

    calm_collector()
    return uvloop.run(lead())


def usable_cores(cpus: float) -> int:
    """The cores that this process may use. `cpus`: the CPU limit of the job; 0: none."""
    cores = len(os.sched_getaffinity(0))
    return min(cores, math.ceil(cpus)) if cpus else cores


def useful_fetchers(spec: SiteSpec, cores: int) -> int:
    """One fetcher for each core, but not more than there are hosts. A shard has one: a worker holds several shards."""
    if spec.shards is not None:
        return 1
    if spec.scope == "any" or spec.seeded:
        return cores
    hosts = {host_of(url) for url in map(canonical, spec.all_urls()) if url is not None}
    return max(1, min(cores, len(hosts)))

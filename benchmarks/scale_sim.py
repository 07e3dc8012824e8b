"""Simulates a broad crawl of a billion pages on 12 machines of 16 cores and one database, and says what saturates.

    make bench BENCH=scale_sim ARGS="--delay 60"       or: .venv/bin/python -m benchmarks.scale_sim --help

Pages flow through the parts of the crawl in steps of two minutes. In each step a shard fetches as many pages as its hosts
allow (one request of a host at a time, and a delay after it), its requests in flight, the cores of its machine, its
leader and its share of the network; then all shards together get as much as the database can write. Hosts are
heavy-tailed: most have a few pages, some have as many as the budget of a host allows. What a page costs is measured
(decision 0034, docs/scaling.md), what the web is like is assumed: see `Web`. A real page costs more than a page of the
benchmarks, so `--page-factor` multiplies the cost of fetching and parsing. Nothing here opens a connection.
"""

from __future__ import annotations

import argparse
import math
import random
from collections import defaultdict
from dataclasses import dataclass, field, replace

HOUR = 3600.0


@dataclass(frozen=True)
class Costs:
    """What a page and a URL cost, as measured."""

    fetch_ms: float = 1.0
    """CPU of a fetcher for a page: request, parsing, links, frontier."""
    tls_ms: float = 0.9
    """More CPU for a new encrypted connection."""
    leader_ms: float = 0.05
    """CPU of the leader for a page that another fetcher fetched, without the URLs that it brings."""
    leader_url_ms: float = 0.002
    database_ms: float = 0.32
    """CPU of the database server for a page, without its new URLs."""
    database_url_ms: float = 0.0035
    outbox_link_ms: float = 0.0002
    """CPU of the database server for a link to another shard, which is written, read and removed in packed rows.
    Assumed."""
    wal_page: float = 2_200.0
    wal_url: float = 250.0
    """Bytes of the write-ahead log."""
    disk_page: float = 1_650.0
    """Bytes of the tables beside the URLs, without content."""
    disk_url: float = 282.0
    seen_url: float = 12.0
    """Bytes of memory for a URL in the seen-set of its fetcher."""


@dataclass(frozen=True)
class Web:
    """What the web is like. Assumed, not measured."""

    hosts: int = 20_000_000
    least_pages: float = 10.0
    tail: float = 1.1
    """The number of hosts with more than x pages falls like x to the power of minus this."""
    most_pages: int = 200_000
    """The budget of a host."""
    latency: float = 0.7
    """Seconds of a request, on average, with those that time out."""
    page_bytes: float = 60_000.0
    """On the wire, compressed."""
    new_urls: float = 10.0
    """URLs of a page that are new to the crawl."""
    links: float = 40.0
    """Links of a page to another host that are not yet known to be stored."""
    new_connections: float = 0.5
    """How many pages need a new connection."""


@dataclass(frozen=True)
class Fleet:
    """Machines, and the database."""

    machines: int = 12
    cores: int = 16
    shards: int = 48
    requests: int = 40_000
    """Requests in flight on one machine."""
    network: float = 10e9 / 8
    memory: float = 128e9
    database_cores: int = 16
    database_write: float = 1.5e9
    """Bytes a second that the disks of the database write; each byte of a table is written about twice more."""
    write_factor: float = 3.0


@dataclass(frozen=True)
class Crawl:
    pages: float = 1e9
    delay: float = 0.5
    page_factor: float = 5.0
    """How many times the pages of the benchmarks a real page costs a fetcher."""
    step: float = 120.0
    longest: float = 30 * 24 * HOUR


@dataclass
class Outcome:
    seconds: float = 0.0
    pages: float = 0.0
    peak: float = 0.0
    saturated: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """For how many seconds each part held the crawl back, summed over shards and divided by their number."""
    load: dict[str, float] = field(default_factory=dict)
    """How busy each part was, on average, where 1 is all it can do."""
    rates: list[tuple[float, float]] = field(default_factory=list)

    @property
    def bottleneck(self) -> str:
        return max(self.saturated, key=lambda part: self.saturated[part], default="nothing")


class Hosts:
    """The hosts of one shard, in groups of about the same size. All hosts of a group are equally far."""

    def __init__(self, groups: list[tuple[float, float]]) -> None:
        self.numbers = [number for number, _ in groups]
        self.left = [pages for _, pages in groups]

    def rate(self, interval: float, step: float) -> float:
        """Pages a second that the hosts allow, if each may be asked once in an interval."""
        return sum(n * min(1 / interval, left / step) for n, left in zip(self.numbers, self.left, strict=True))

    def take(self, share: float, interval: float, step: float) -> float:
        """Fetch this share of what the hosts allow. Returns the number of pages."""
        taken = 0.0
        for place, left in enumerate(self.left):
            pages = share * min(step / interval, left)
            self.left[place] = left - pages
            taken += self.numbers[place] * pages
        return taken


def groups_of(web: Web, shards: int, chance: random.Random) -> list[Hosts]:
    """Spread the hosts over the shards, as the hash does: large hosts are few, so shards differ."""
    per_shard: list[list[tuple[float, float]]] = [[] for _ in range(shards)]
    low = web.least_pages
    while low < web.most_pages:
        high = min(low * 2, float(web.most_pages))
        above = (high / web.least_pages) ** -web.tail if high < web.most_pages else 0.0
        share = (low / web.least_pages) ** -web.tail - above
        expected = web.hosts * share / shards
        for groups in per_shard:
            groups.append((_poisson(expected, chance), math.sqrt(low * high)))
        low = high
    return [Hosts(groups) for groups in per_shard]


def _poisson(mean: float, chance: random.Random) -> float:
    if mean > 50:
        return max(0.0, round(chance.gauss(mean, math.sqrt(mean))))
    limit, product, number = math.exp(-mean), chance.random(), 0
    while product > limit:
        product *= chance.random()
        number += 1
    return float(number)


def demands(costs: Costs, web: Web, crawl: Crawl, fleet: Fleet) -> dict[str, float]:
    """What one page needs of each part, in the unit of its capacity."""
    abroad = web.links * (1 - 1 / fleet.shards)
    fetch = (costs.fetch_ms * crawl.page_factor + costs.tls_ms * web.new_connections) / 1000
    leader = (costs.leader_ms + costs.leader_url_ms * web.new_urls) / 1000
    database = (costs.database_ms + costs.database_url_ms * web.new_urls + costs.outbox_link_ms * abroad) / 1000
    return {
        "requests in flight": web.latency,
        "cores of the machines": fetch + leader,
        "leaders": leader,
        "network": web.page_bytes,
        "database CPU": database,
        "database disk": (costs.wal_page + costs.wal_url * web.new_urls) * fleet.write_factor,
    }


def capacities(fleet: Fleet) -> dict[str, float]:
    """What one shard has of each part of its machine, and what all shards have of the database."""
    per_machine = fleet.shards / fleet.machines
    return {
        "requests in flight": fleet.requests / per_machine,
        "cores of the machines": fleet.cores / per_machine,
        "leaders": 1.0,
        "network": fleet.network / per_machine,
        "database CPU": float(fleet.database_cores),
        "database disk": fleet.database_write,
    }


SHARED = ("database CPU", "database disk")
HOSTS = "politeness"


def simulate(costs: Costs, web: Web, fleet: Fleet, crawl: Crawl, seed: int = 1) -> Outcome:
    """Crawl until the wanted number of pages is stored, or nothing is left."""
    shards = groups_of(web, fleet.shards, random.Random(seed))
    need, have, outcome = demands(costs, web, crawl, fleet), capacities(fleet), Outcome()
    interval = max(crawl.delay, web.latency)
    own = {part: have[part] / need[part] for part in need if part not in SHARED and need[part]}
    shared = {part: have[part] / need[part] for part in SHARED if need[part]}
    while outcome.pages < crawl.pages and outcome.seconds < crawl.longest:
        offered = [hosts.rate(interval, crawl.step) for hosts in shards]
        if not sum(offered):
            break
        rates, held = [], []
        for polite in offered:
            limits = {HOSTS: polite, **own}
            part = min(limits, key=lambda name: limits[name])
            rates.append(limits[part])
            held.append(part)
        total, most = sum(rates), min(shared.values(), default=math.inf)
        if total > most:
            part = min(shared, key=lambda name: shared[name])
            rates, held = [rate * most / total for rate in rates], [part] * len(rates)
        step = min(crawl.step, (crawl.pages - outcome.pages) / sum(rates))
        pages = 0.0
        for hosts, rate, polite in zip(shards, rates, offered, strict=True):
            if polite:
                pages += hosts.take(rate / polite * step / crawl.step, interval, crawl.step)
        for part in held:
            outcome.saturated[part] += step / len(held)
        outcome.pages += pages
        outcome.seconds += step
        outcome.peak = max(outcome.peak, pages / step)
        outcome.rates.append((outcome.seconds, pages / step))
    mean = outcome.pages / outcome.seconds if outcome.seconds else 0.0
    outcome.load = {part: mean / (own[part] * fleet.shards) for part in own}
    outcome.load |= {part: mean / shared[part] for part in shared}
    return outcome


def report(costs: Costs, web: Web, fleet: Fleet, crawl: Crawl) -> str:
    outcome = simulate(costs, web, fleet, crawl)
    urls = outcome.pages * web.new_urls
    days = outcome.seconds / 86_400
    lines = [
        f"{outcome.pages:,.0f} pages in {outcome.seconds / HOUR:.1f} hours: {outcome.pages / outcome.seconds:,.0f} pages/s"
        f" on average, {outcome.peak:,.0f} at most",
        "| part | average load | held the crawl back |",
        "|---|---|---|",
    ]
    for part in (HOSTS, *outcome.load):
        load = f"{outcome.load[part]:.0%}" if part in outcome.load else ""
        lines.append(f"| {part} | {load} | {outcome.saturated[part] / outcome.seconds:.0%} of the time |")
    disk = outcome.pages * costs.disk_page + urls * costs.disk_url
    memory = urls * costs.seen_url / fleet.machines
    lines.append(f"What saturates: {outcome.bottleneck}.")
    lines.append(
        f"The database has {disk / 1e12:.1f} TB at the end ({disk / days / 1e12:.1f} TB a day) without page content;"
        f" the seen-sets take {memory / 1e9:.0f} GB on each machine of {fleet.memory / 1e9:.0f}."
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=float, default=Crawl.pages)
    parser.add_argument("--delay", type=float, default=Crawl.delay, help="seconds between two requests to a host")
    parser.add_argument("--machines", type=int, default=Fleet.machines)
    parser.add_argument("--cores", type=int, default=Fleet.cores)
    parser.add_argument("--database-cores", type=int, default=Fleet.database_cores)
    parser.add_argument("--shards", type=int, help="default: 4 for each machine")
    parser.add_argument("--hosts", type=int, default=Web.hosts)
    parser.add_argument("--new-urls", type=float, default=Web.new_urls)
    parser.add_argument("--page-factor", type=float, default=Crawl.page_factor)
    options = parser.parse_args()
    fleet = Fleet(
        machines=options.machines,
        cores=options.cores,
        shards=options.shards or 4 * options.machines,
        database_cores=options.database_cores,
    )
    web = Web(hosts=options.hosts, new_urls=options.new_urls)
    crawl = Crawl(pages=options.pages, delay=options.delay, page_factor=options.page_factor)
    print(report(Costs(), web, fleet, crawl))
    print("A published crawl of a billion pages on 12 machines of 16 cores took 25.5 hours; its CPU was the limit.")
    if crawl.delay == Crawl.delay:
        print("\nThe same with 60 s between two requests to a host:\n")
        print(report(Costs(), web, fleet, replace(crawl, delay=60.0)))


if __name__ == "__main__":
    main()

"""The simulator of large crawls calculates correctly where the answer is known."""

import random
from dataclasses import replace

import pytest

from benchmarks.scale_sim import HOSTS, Costs, Crawl, Fleet, Hosts, Web, capacities, demands, groups_of, simulate

FREE = Costs(*[0.0] * 12)
WEB = Web(hosts=100_000, least_pages=100.0, most_pages=101, latency=0.5, page_bytes=0.0, new_urls=10.0, links=0.0)
FLEET = Fleet(machines=2, cores=4, shards=4, requests=10**9)
CRAWL = Crawl(pages=5e6, delay=2.0, page_factor=1.0, step=10.0)


def test_polite_hosts_are_asked_once_in_a_delay() -> None:
    """100,000 hosts, one page each in 2 s: 50,000 pages a second."""
    outcome = simulate(FREE, WEB, FLEET, CRAWL)
    assert outcome.seconds == pytest.approx(100, rel=0.02)
    assert outcome.bottleneck == HOSTS
    assert outcome.pages == pytest.approx(CRAWL.pages)


def test_a_slow_host_sets_its_own_pace() -> None:
    outcome = simulate(FREE, replace(WEB, latency=4.0), FLEET, CRAWL)
    assert outcome.seconds == pytest.approx(200, rel=0.02)


@pytest.mark.parametrize(
    ("costs", "part"),
    [
        (replace(FREE, fetch_ms=0.2), "cores of the machines"),  # 8 cores
        (replace(FREE, database_ms=0.5), "database CPU"),  # 20 cores
        (replace(FREE, database_url_ms=0.05), "database CPU"),  # 10 URLs a page
        (replace(FREE, leader_ms=0.1), "leaders"),  # 4 leaders
        (replace(FREE, wal_page=10.0), "database disk"),
    ],
)
def test_the_scarcest_part_sets_the_pace(costs: Costs, part: str) -> None:
    """Each allows 40,000 pages a second, and the hosts 50,000."""
    outcome = simulate(costs, WEB, replace(FLEET, database_cores=20, database_write=1.2e6), CRAWL)
    assert outcome.bottleneck == part
    assert outcome.seconds == pytest.approx(125, rel=0.02)
    assert outcome.load[part] == pytest.approx(1)
    assert all(load <= 1.0001 for load in outcome.load.values())


def test_links_to_other_shards_cost_the_database() -> None:
    costs, web = replace(FREE, outbox_link_ms=1.0), replace(WEB, links=20.0)
    assert demands(costs, web, CRAWL, FLEET)["database CPU"] == pytest.approx(0.015)
    assert demands(costs, web, CRAWL, replace(FLEET, shards=1))["database CPU"] == 0


def test_requests_in_flight_are_rate_times_latency() -> None:
    fleet = replace(FLEET, requests=5_000)
    assert capacities(fleet)["requests in flight"] == 2_500
    outcome = simulate(FREE, WEB, fleet, CRAWL)  # 4 shards, 2,500 requests of half a second each
    assert outcome.peak == pytest.approx(20_000, rel=0.02)


def test_a_crawl_ends_when_nothing_is_left() -> None:
    outcome = simulate(FREE, WEB, FLEET, replace(CRAWL, pages=1e9))
    assert outcome.pages == pytest.approx(10_050_000, rel=0.02)
    assert outcome.seconds == pytest.approx(201, rel=0.1)


def test_hosts_have_a_heavy_tail() -> None:
    web = Web(hosts=1_000_000, least_pages=10.0, most_pages=100_000, tail=1.0)
    hosts = groups_of(web, 4, random.Random(1))
    several = [(n, left) for shard in hosts for n, left in zip(shard.numbers, shard.left, strict=True)]
    assert sum(n for n, _ in several) == pytest.approx(web.hosts, rel=0.01)
    large = sum(n for n, left in several if left > 1_000)
    assert large == pytest.approx(web.hosts / 100, rel=0.4)
    assert max(left for _, left in several) <= web.most_pages


def test_hosts_give_no_more_than_they_have() -> None:
    hosts = Hosts([(10.0, 3.0), (1.0, 1000.0)])
    assert hosts.rate(interval=1.0, step=10.0) == pytest.approx(10 * 0.3 + 1)
    assert hosts.take(1.0, interval=1.0, step=10.0) == pytest.approx(40)
    assert hosts.left == pytest.approx([0, 990])

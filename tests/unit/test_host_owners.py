"""Hosts over fetchers: every host has one owner, the same in every process."""

import subprocess
import sys
from collections import Counter

import pytest

from silkline.crawl.host_owners import RECORDING, SLOTS, HostOwners, slots

HOSTS = [f"host-{number}.example" for number in range(4_000)]


@pytest.mark.parametrize("fetchers", [1, 2, 3, 4, 7, 64])
def test_every_fetcher_gets_its_share(fetchers: int) -> None:
    owners = HostOwners(fetchers)
    counted = Counter(owners.owner_of(host) for host in HOSTS)
    assert set(counted) == set(range(fetchers))
    fair = len(HOSTS) / fetchers
    assert all(0.1 * fair < hosts < 2 * fair for hosts in counted.values())


def test_the_leader_has_less_to_fetch_because_it_writes_the_checkpoints() -> None:
    for fetchers in (2, 3):
        shares = Counter(slots(fetchers))
        assert sum(shares.values()) == SLOTS
        assert shares[0] + RECORDING * SLOTS == pytest.approx(shares[1], abs=2)


def test_the_leader_of_many_still_fetches() -> None:
    assert 0 < slots(64).count(0) < SLOTS / 64


def test_another_process_agrees() -> None:
    owners_of = "[HostOwners(5).owner_of(f'host-{n}.example') for n in range(50)]"
    ask = f"from silkline.crawl.host_owners import HostOwners; print({owners_of})"
    said = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout
    owners = HostOwners(5)
    assert said.strip() == str([owners.owner_of(f"host-{number}.example") for number in range(50)])

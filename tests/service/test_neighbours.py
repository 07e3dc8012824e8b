"""What a supervisor does for one of its own machine that died."""

import os
from pathlib import Path

import pytest

from silkline.service import cgroup
from silkline.store import workers
from silkline.store.identity import Identity
from tests.support.supervisors import Yard, eventually


def test_the_cgroups_of_a_dead_supervisor_are_removed(yard: Yard) -> None:
    dead = yard.ready(yard.start())
    (id,) = yard.add("sleep", seconds=600)
    yard.runner_of(id)
    (worker,) = workers.everyone(yard.database)
    base = cgroup._base_of(worker.id)
    dead.kill()
    yard.ready(yard.start())
    eventually("they are gone, if this machine lets us make any", lambda: base is None or not base.exists())


def test_a_supervisor_that_ended_well_leaves_nothing_behind(yard: Yard) -> None:
    supervisor = yard.ready(yard.start())
    (id,) = yard.add("sleep", seconds=600)
    yard.runner_of(id)
    (worker,) = workers.everyone(yard.database)
    assert supervisor.terminate() == 0
    base = cgroup._base_of(worker.id)
    assert base is None or not base.exists()
    assert list((supervisor.data / "workers").iterdir()) == []


def test_a_lock_is_held_as_soon_as_neighbours_can_see_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    neighbour = Identity(tmp_path)
    opened = os.open

    def look(path: Path, flags: int, mode: int) -> int:
        """The file is there, the lock is not: a neighbour looks just now."""
        descriptor = opened(path, flags, mode)
        monkeypatch.undo()
        seen.append(neighbour.dead_neighbours())
        return descriptor

    monkeypatch.setattr("os.open", look)
    other = Identity(tmp_path)
    assert seen == [[]]
    other.close(in_order=False)
    assert neighbour.dead_neighbours() == [other.id]
    neighbour.close(in_order=True)

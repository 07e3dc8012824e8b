"""Adds up the meters of a machine."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from silkline.metrics.families import BY_NAME
from silkline.metrics.family import Source, Type
from silkline.metrics.meter import stored
from silkline.metrics.process import SEPARATOR, SUM

Labels = tuple[str, ...]


@dataclass
class Distribution:
    """The value of a histogram. `counts` are not cumulative; the last is for everything above the last bucket."""

    counts: list[float]
    sum: float = 0.0


@dataclass
class Gathered:
    """The values of families by name and labels, and who lives."""

    numbers: dict[str, dict[Labels, float]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(float)))
    distributions: dict[str, dict[Labels, Distribution]] = field(default_factory=lambda: defaultdict(dict))
    alive: dict[int, str] = field(default_factory=dict)
    """The role of each living process, by pid."""
    meters: list[str] = field(default_factory=list)
    """The ids of all meters."""

    def set(self, name: str, value: float, *labels: str) -> None:
        self.numbers[name][labels] = value


def gather(folder: Path) -> Gathered:
    """The sum of all meters. Counters of dead processes count, their gauges do not."""
    gathered = Gathered()
    for meter in stored(folder):
        gathered.meters.append(meter.id)
        if meter.used:
            gathered.alive[meter.pid] = meter.role
        for key, value in meter.items:
            _add(gathered, key.split(SEPARATOR), value, used=meter.used)
    return gathered


def _add(gathered: Gathered, key: list[str], value: float, *, used: bool) -> None:
    family = BY_NAME.get(key[0])
    parts = 1 + len(family.labels) + (family.type is Type.HISTOGRAM) if family is not None else 0
    if family is None or family.source is not Source.PROCESSES or len(key) != parts:  # of another version, or forged
        return
    labels = tuple(key[1 : 1 + len(family.labels)])
    if family.type is not Type.HISTOGRAM:
        if family.type is Type.COUNTER or used:
            gathered.numbers[family.name][labels] += value
        return
    of_family = gathered.distributions[family.name]
    if labels not in of_family:
        of_family[labels] = Distribution([0.0] * (len(family.buckets) + 1))
    ends = [f"{bound:g}" for bound in family.buckets]
    if key[-1] == SUM:
        of_family[labels].sum += value
    elif key[-1] in ends:
        of_family[labels].counts[ends.index(key[-1])] += value
    else:  # above the last bucket, or a bucket of another version
        of_family[labels].counts[-1] += value

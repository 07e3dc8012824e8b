"""Writes metrics in the text format of Prometheus, version 0.0.4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from silkline.metrics.families import ALL
from silkline.metrics.family import Family, Type
from silkline.metrics.gather import Distribution, Gathered

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def exposition(gathered: Gathered) -> str:
    """Every family of the table, in its order. A family without values has only its description, or a single 0."""
    return "".join(f"{line}\n" for family in ALL for line in _family(family, gathered))


def _family(family: Family, gathered: Gathered) -> Iterator[str]:
    yield f"# HELP {family.name} {_escaped_help(family.help)}"
    yield f"# TYPE {family.name} {family.type}"
    if family.type is Type.HISTOGRAM:
        for labels, found in sorted(gathered.distributions.get(family.name, {}).items()):
            yield from _histogram(family, labels, found)
        return
    values = gathered.numbers.get(family.name, {})
    if not values and not family.labels and family.type is Type.COUNTER:
        values = {(): 0.0}  # so that a rate can be taken from the first count on
    for labels, value in sorted(values.items()):
        yield f"{family.name}{_labels(zip(family.label_names, labels, strict=True))} {_number(value)}"


def _histogram(family: Family, labels: tuple[str, ...], found: Distribution) -> Iterator[str]:
    named = list(zip(family.label_names, labels, strict=True))
    total = 0.0
    for bound, count in zip((*(f"{bound:g}" for bound in family.buckets), "+Inf"), found.counts, strict=True):
        total += count
        yield f"{family.name}_bucket{_labels([*named, ('le', bound)])} {_number(total)}"
    yield f"{family.name}_sum{_labels(named)} {_number(found.sum)}"
    yield f"{family.name}_count{_labels(named)} {_number(total)}"


def _labels(pairs: Iterable[tuple[str, str]]) -> str:
    text = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in pairs)
    return f"{{{text}}}" if text else ""


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _escaped_help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")

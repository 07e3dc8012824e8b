"""Writes metrics in the text format of Prometheus, version 0.0.4."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from silkline.metrics.families import ALL
from silkline.metrics.family import Family, Source, Type
from silkline.metrics.gather import Distribution, Gathered

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
# Users choose the values of some labels, such as tenants. A terminal would obey these characters: C0, DEL and C1
# controls, line and paragraph separators, marks that reverse the direction of text.
_CODES: Final = (*range(0x20), *range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_CONTROLS: Final = dict.fromkeys(_CODES, "\N{REPLACEMENT CHARACTER}")
_ESCAPES: Final = str.maketrans({**_CONTROLS, "\\": r"\\", '"': r"\"", "\n": r"\n"})


def exposition(gathered: Gathered) -> str:
    """Every family of the table, in its order."""
    return "".join(f"{line}\n" for family in ALL for line in _family(family, gathered))


def _family(family: Family, gathered: Gathered) -> Iterator[str]:
    yield f"# HELP {family.name} {_escaped_help(family.help)}"
    yield f"# TYPE {family.name} {family.type}"
    always = family.always if family.labels else ((),)
    shown = always if family.source is Source.PROCESSES else ()
    if family.type is Type.HISTOGRAM:
        empty = {labels: Distribution([0.0] * (len(family.buckets) + 1)) for labels in shown}
        for labels, found in sorted({**empty, **gathered.distributions.get(family.name, {})}.items()):
            yield from _histogram(family, labels, found)
        return
    values = {**dict.fromkeys(shown, 0.0), **gathered.numbers.get(family.name, {})}
    written: defaultdict[str, float] = defaultdict(float)  # labels that look the same count together
    for labels, value in sorted(values.items()):
        written[_labels(zip(family.label_names, labels, strict=True))] += value
    yield from (f"{family.name}{labels} {float(value)}" for labels, value in written.items())


def _histogram(family: Family, labels: tuple[str, ...], found: Distribution) -> Iterator[str]:
    named = list(zip(family.label_names, labels, strict=True))
    total = 0.0
    for bound, count in zip((*(f"{bound:g}" for bound in family.buckets), "+Inf"), found.counts, strict=True):
        total += count
        yield f"{family.name}_bucket{_labels([*named, ('le', bound)])} {total}"
    yield f"{family.name}_sum{_labels(named)} {found.sum}"
    yield f"{family.name}_count{_labels(named)} {total}"


def _labels(pairs: Iterable[tuple[str, str]]) -> str:
    text = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in sorted(pairs))
    return f"{{{text}}}" if text else ""


def _escaped_help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")

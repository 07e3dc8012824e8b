"""The meter of this process, and the instruments that count in it.

Like a log, the meter belongs to the process, so instruments are module constants (instruments.py). A process calls
`attach` once, soon after its start. Until then it counts in memory; `attach` adds these counts to the file. A forked
process counts in memory again, never in the meter of its parent.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from bisect import bisect_left
from pathlib import Path
from typing import Final

from silkline.metrics.family import Family, Type
from silkline.metrics.meter import Meter, claim

FOLDER: Final = "metrics"
"""In the data directory."""
SEPARATOR: Final = "\x1f"
SUM: Final = "sum"
ABOVE: Final = "+Inf"

log = logging.getLogger("silkline.metrics")


_NO_VALUES: Final = memoryview(bytearray()).cast("d")


class _Current:
    """What changes when the process gets its meter, or is forked."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.values = _NO_VALUES
        self.made: Meter | None = None
        self.lock = threading.Lock()
        self.folder: Path | None = None
        self.role = "other"
        self.cpu = 0.0
        self.later: tuple[Path, str] | None = None

    @property
    def meter(self) -> Meter:
        """Made in memory when something is counted for the first time: many forked processes count nothing there."""
        return self.use(Meter()) if self.made is None else self.made

    def use(self, meter: Meter) -> Meter:
        self.made, self.values = meter, meter.values
        return meter


_current: Final = _Current()


class _Instrument:
    """The cells of one family in the meter of this process."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self._cells: dict[tuple[str, ...], int] = {}
        _instruments.append(self)

    def forget_cells(self) -> None:
        self._cells.clear()

    def _cell(self, labels: tuple[str, ...]) -> int:
        if len(labels) != len(self.family.labels):
            raise TypeError(f"{self.family.name} has the labels {self.family.label_names}, not {labels}")
        cell = self._cells[labels] = _current.meter.cell(SEPARATOR.join((self.family.name, *labels)))
        return cell


_instruments: Final[list[_Instrument]] = []


class Counter(_Instrument):
    def add(self, amount: float = 1.0, *labels: str) -> None:
        with _current.lock:
            cell = self._cells.get(labels)
            if cell is None:
                cell = self._cell(labels)
            _current.values[cell] += amount


class Gauge(_Instrument):
    def set(self, value: float, *labels: str) -> None:
        with _current.lock:
            cell = self._cells.get(labels)
            if cell is None:
                cell = self._cell(labels)
            _current.values[cell] = value

    def add(self, amount: float, *labels: str) -> None:
        with _current.lock:
            cell = self._cells.get(labels)
            if cell is None:
                cell = self._cell(labels)
            _current.values[cell] += amount


class Histogram(_Instrument):
    """A row of cells: the sum, then one count for each bucket, then the count above the last bucket."""

    def __init__(self, family: Family) -> None:
        super().__init__(family)
        self._bounds = family.buckets
        self._ends = (SUM, *(f"{bound:g}" for bound in family.buckets), ABOVE)
        self._rows: dict[tuple[str, ...], list[int]] = {}

    def forget_cells(self) -> None:
        self._rows.clear()

    def observe(self, value: float, *labels: str) -> None:
        with _current.lock:
            row = self._rows.get(labels)
            if row is None:
                row = self._rows[labels] = [self._cell((*labels, end)) for end in self._ends]
            values = _current.values
            values[row[bisect_left(self._bounds, value) + 1]] += 1.0
            values[row[0]] += value

    def _cell(self, labels: tuple[str, ...]) -> int:
        if len(labels) != len(self.family.labels) + 1:
            raise TypeError(f"{self.family.name} has the labels {self.family.label_names}, not {labels[:-1]}")
        return _current.meter.cell(SEPARATOR.join((self.family.name, *labels)))


def attach(data: Path, role: str) -> None:
    """Take a meter of this role in the data directory, unless this process has one.

    If the directory cannot be written, or its disk is full, the process goes on to count in memory, where nobody reads
    it.
    """
    if not _has_file():
        meter = _claim_if_possible(data / FOLDER, role)
        if meter is not None:
            _use(meter, data / FOLDER)


def attach_later(data: Path, role: str) -> None:
    """The same, when this process first commits something. A command that only reads makes no file."""
    _current.later = (data, role)


def inherit(descriptor: int, name: str) -> None:
    """Use the meter that the parent process took for this process (`claim_for_child`)."""
    _use(Meter(descriptor, name), None)


def claim_for_child(role: str) -> Meter | None:
    """Take a meter for a child that cannot do it itself. Pass it the descriptor, then close the meter here."""
    return None if _current.folder is None else _claim_if_possible(_current.folder, role)


def _claim_if_possible(folder: Path, role: str) -> Meter | None:
    try:
        return claim(folder, role)
    except OSError as error:
        log.warning("no meter in %s, the metrics of this %s are not shown: %s", folder, role, error.strerror or error)
        return None


def role() -> str:
    return _current.role


def name() -> str:
    """The name of the meter, such as `fetcher-1`. Empty without one."""
    return _current.made.name if _current.made is not None else ""


def meter_id() -> str | None:
    """The id of the meter; None if this process counts in memory only."""
    with _current.lock:
        later, _current.later = _current.later, None
    if later is not None:
        attach(*later)
    return _current.meter.id if _has_file() else None


def _has_file() -> bool:
    return _current.made is not None and _current.made.descriptor is not None


def _use(meter: Meter, folder: Path | None) -> None:
    with _current.lock:
        _clear_gauges(meter)
        meter.take()
        for key, value in _current.made.items() if _current.made is not None else ():
            if value:
                meter.values[meter.cell(key)] += value
        _current.use(meter)
        _current.folder, _current.role = folder, meter.role
        for instrument in _instruments:
            instrument.forget_cells()


def _clear_gauges(meter: Meter) -> None:
    """Gauges of the process that had this meter before are not valid any more."""
    gauges = {each.family.name for each in _instruments if each.family.type is Type.GAUGE}
    for key, _ in meter.items():
        if key.partition(SEPARATOR)[0] in gauges:
            meter.values[meter.cell(key)] = 0.0


def new_cpu_seconds() -> float:
    """CPU time that this process used since the last call."""
    now = time.process_time()
    spent, _current.cpu = now - _current.cpu, now
    return spent


def detach() -> None:
    """Count in memory again, from zero. In a forked process this releases only its copy of the descriptor."""
    before = _current.made
    _current.reset()
    for instrument in _instruments:
        instrument.forget_cells()
    if before is not None:
        before.close()


os.register_at_fork(after_in_child=detach)

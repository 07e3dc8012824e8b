"""Files that processes have mapped, on a full disk: a write into them must not end the process with SIGBUS."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from silkline.metrics.meter import SIZE, claim
from silkline.metrics.process import FOLDER
from tests.conftest import ROOT
from tests.support.small_disk import NAMESPACE, NONE, can_mount, run_in_namespace, small_disk

WRITE_EVERYWHERE = """
import logging, sys
from pathlib import Path
from silkline.metrics import process
from silkline.metrics.meter import CELLS
from silkline.reading_marks import PAGE, SLOTS, ReadingMarks, path_of

logging.basicConfig(format="%(message)s")
data = Path(sys.argv[1])
process.attach(data, "runner")
marks = ReadingMarks.create(data / "marks" / "job-1.marks")
print("ready", flush=True)
sys.stdin.readline()
meter = process._current.meter
for number in range(CELLS):
    meter.values[meter.cell(f"key {number}")] += 1.0
of_runner = ReadingMarks.open(path_of(marks.descriptor))
for slot in range(SLOTS):
    of_runner.slot(slot).begin(PAGE, f"https://example.com/{slot}")
print(len(marks.active()), "marks,", sum(1 for _ in meter.items()), "keys, meter:", meter.name or "in memory")
"""
IN_MEMORY, IN_FILE = ("256 marks, 4095 keys, meter: " + place for place in ("in memory", "runner-0"))
NO_SPACE = ": No space left on device"


def test_no_process_ends_when_it_counts_and_marks(tmp_path: Path) -> None:
    if can_mount(tmp_path):
        for case in (new_files, a_sparse_meter_of_an_older_version, the_disk_fills_up_later):
            with small_disk(tmp_path / "disk", mebibytes=4) as disk:
                case(disk)
    elif can_mount(tmp_path, inside=NAMESPACE):
        run_in_namespace(f"{__file__}::{THIS_TEST}", ROOT, tmp_path)
    else:
        pytest.skip(NONE)


THIS_TEST = test_no_process_ends_when_it_counts_and_marks.__name__


def new_files(disk: Path) -> None:
    (disk / FOLDER).mkdir()
    (disk / "marks").mkdir()
    fill(disk)
    output, told = write_everywhere(disk)
    assert output == IN_MEMORY
    assert len(told) == 2, "one line for the meter, one for the marks"
    assert all(line.endswith(NO_SPACE) for line in told), told
    assert list((disk / "marks").iterdir()) == []


def a_sparse_meter_of_an_older_version(disk: Path) -> None:
    meter = claim(disk / FOLDER, "runner")
    meter.values[meter.cell("x")] = 5.0
    meter.close()
    path = disk / FOLDER / "runner-0"
    content = path.read_bytes()
    make_sparse(path, content)
    fill(disk)
    assert write_everywhere(disk)[0] == IN_MEMORY
    assert path.read_bytes() == content, "it keeps its counts"
    (disk / "filler").unlink()
    assert write_everywhere(disk) == (IN_FILE, [])


def the_disk_fills_up_later(disk: Path) -> None:
    assert write_everywhere(disk, before_it_writes=lambda: fill(disk)) == (IN_FILE, [])


def make_sparse(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        for at in range(0, SIZE, 4096):
            if any(content[at : at + 4096]):
                file.seek(at)
                file.write(content[at : at + 4096])
        file.truncate(SIZE)
    assert path.stat().st_blocks * 512 < SIZE


def fill(disk: Path) -> None:
    with (disk / "filler").open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                continue


def write_everywhere(data: Path, *, before_it_writes: Callable[[], None] = lambda: None) -> tuple[str, list[str]]:
    """What a process prints and logs that writes to every page of its meter and its marks."""
    command = [sys.executable, "-c", WRITE_EVERYWHERE, str(data)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        before_it_writes()
        output, log = process.communicate("go\n")
    assert process.returncode == 0, log
    return output.strip(), log.splitlines()

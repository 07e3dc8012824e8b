"""A mark says what a process is reading, also after the process was killed."""

import os
import signal
import time
import timeit
from pathlib import Path
from typing import Any

from silkline.crawl.suspects import Suspects
from silkline.reading_marks import (
    LEADER,
    LINKS,
    MOST_NAME,
    PAGE,
    RULES,
    SLOT_BYTES,
    SLOTS,
    Mark,
    MarksFile,
    ReadingMarks,
    clipped,
)

URL = "https://www.example.com/some/path/to/a/page-with-a-name.html?id=123"


def test_a_mark_outlives_the_process_that_made_it(tmp_path: Path) -> None:
    marks = ReadingMarks.create(tmp_path / "x.marks")
    pid = os.fork()
    if pid == 0:
        slot = ReadingMarks.open(tmp_path / "x.marks").slot(7)
        slot.begin(PAGE, URL + "/before")
        slot.end()
        slot.begin(PAGE, URL)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    [mark] = marks.active()
    assert mark._replace(started=0.0) == Mark(7, PAGE, URL, pid, 0.0)
    assert 0 <= time.monotonic() - mark.started < 3600
    assert ReadingMarks.open(tmp_path / "x.marks").mark_of(7) == mark, "it is in the file"


def test_who_outlives_the_readers_survives_a_file_of_any_size(tmp_path: Path) -> None:
    """A process that has the file mapped would end with SIGBUS."""
    path = tmp_path / "x.marks"
    marks = MarksFile.create(path)
    pid = os.fork()
    if pid == 0:
        ReadingMarks.open(path).slot(7).begin(PAGE, URL)
        os._exit(0)
    os.waitpid(pid, 0)
    assert [mark.name for mark in marks.active()] == [URL]
    for size in (7 * SLOT_BYTES + 100, 7 * SLOT_BYTES, 1, 0, 1 << 30):
        os.truncate(path, size)
        assert marks.active() == []
        assert marks.mark_of(7) is None
        assert marks.mark_of(LEADER) is None


def test_without_a_descriptor_the_process_marks_as_before(tmp_path: Path) -> None:
    path = tmp_path / "x.marks"
    marks = ReadingMarks.create(path)
    pid = os.fork()
    if pid == 0:
        marks.give_up_descriptors()
        marks.slot(7).begin(PAGE, URL)
        file = path.stat()
        still_open = [name for name in Path("/proc/self/fd").iterdir() if name.exists() and name.samefile(path)]
        os._exit(0 if not still_open and file.st_size == SLOTS * SLOT_BYTES and marks.mark_of(7) else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert [mark.name for mark in marks.active()] == [URL]
    marks.close()


def test_any_text_in_a_mark_can_be_blamed() -> None:
    """A process that was taken over chooses what its mark says."""
    suspects = Suspects()
    for kind in (PAGE, RULES, 77):
        for name in ("", "x", "http:/", "a//", "\x00\ufffd", URL):
            suspects.blame(mark_of(kind, name))
    assert Suspects(suspects.listed()).listed() == suspects.listed()


def test_what_has_been_read_is_not_marked(tmp_path: Path) -> None:
    marks = ReadingMarks.create(tmp_path / "x.marks")
    slot = marks.slot(SLOTS - 1)
    slot.begin(PAGE, URL)
    slot.end()
    assert marks.active() == []
    assert marks.mark_of(LEADER) is None


def test_a_long_name_is_cut_and_still_found() -> None:
    marks = ReadingMarks.open("")
    slot = marks.slot(LEADER)
    for name in (URL + "x" * 9000, URL + "é" * 900):
        slot.begin(PAGE, name)
        mark = marks.mark_of(LEADER)
        assert mark is not None
        assert len(mark.name.encode()) <= MOST_NAME + 2
        assert mark.name == clipped(name)


def test_a_mark_that_is_kept_is_not_replaced() -> None:
    marks = ReadingMarks.open("")
    slot = marks.slot(LEADER)
    slot.begin(PAGE, URL)
    slot.keep()
    slot.begin(PAGE, "https://innocent.example/")
    slot.end()
    assert [mark.name for mark in marks.active()] == [URL]


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    ReadingMarks.create(tmp_path / "new" / "x.marks").close()
    assert (tmp_path / "new" / "x.marks").stat().st_mode & 0o077 == 0
    assert (tmp_path / "new").stat().st_mode & 0o077 == 0


def test_what_a_mark_costs(record_property: Any) -> None:
    slot = ReadingMarks.open("").slot(LEADER)

    def mark() -> None:
        slot.begin(PAGE, URL)
        slot.end()

    times = 20_000
    best = min(timeit.repeat(mark, number=times, repeat=10, timer=time.process_time)) / times
    record_property("figure", f"{best * 1e6:.2f} µs for one mark, made and cleared")


def mark_of(kind: int, name: str) -> Mark:
    return Mark(LEADER, kind, name, 1, 0.0)


def test_one_blamed_input_makes_its_host_suspect_and_three_the_whole_job() -> None:
    suspects = Suspects()
    assert not suspects.includes("a.example")
    assert suspects.blame(mark_of(PAGE, "https://a.example/x")) == ("https://a.example/x", 1)
    assert suspects.includes("a.example")
    assert not suspects.includes("b.example")
    suspects.blame(mark_of(PAGE, "https://a.example/y"))
    assert not suspects.everything
    suspects.blame(mark_of(RULES, "https://c.example/anything"))
    assert suspects.everything
    assert suspects.blamed("https://c.example"), "rules are blamed on the robots.txt of the origin"


def test_an_input_that_ends_processes_even_after_it_was_read_in_isolation_is_given_up() -> None:
    suspects = Suspects()
    suspects.blame(mark_of(PAGE, "https://a.example/x"))
    assert not suspects.hopeless("https://a.example/x")
    suspects.blame(mark_of(LINKS, "https://a.example/x"))
    assert suspects.hopeless("https://a.example/x")
    assert not suspects.hopeless("https://a.example/y")


def test_others_learn_what_was_blamed() -> None:
    one, other = Suspects(), Suspects()
    for path in "xyz":
        one.blame(mark_of(PAGE, f"https://a.example/{path}"))
    other.learn(one.listed())
    assert other.everything
    assert other.listed() == one.listed()

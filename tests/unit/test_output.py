"""What a job prints is cut into lines that harm nobody."""

from pathlib import Path

from silkline.runner.log_file import LogFile
from silkline.service.output import LogQueue, Output


def lines_of(tmp_path: Path, *pieces: bytes, most_lines: int = 100) -> tuple[list[str], str]:
    queue, path = LogQueue(), tmp_path / "job.log"
    output = Output("job", 1, LogFile(path, 1 << 20), queue, most_lines)
    for piece in pieces:
        output.feed("info", piece)
    output.close()
    return [line.message for line in queue.take()], path.read_text()


def test_lines_are_put_together_from_pieces(tmp_path: Path) -> None:
    stored, written = lines_of(tmp_path, b"one\ntw", b"o\r\nthree")
    assert stored == ["one", "two", "three"]
    assert [line.rpartition("] ")[2] for line in written.splitlines()] == stored


def test_no_line_commands_a_terminal(tmp_path: Path) -> None:
    stored, written = lines_of(tmp_path, b"\x1b[2Jgone\x07\ttab\n")
    assert stored == ["\\x1b[2Jgone\\x07\ttab"]
    assert "\x1b" not in written


def test_a_line_without_end_is_cut(tmp_path: Path) -> None:
    stored, _ = lines_of(tmp_path, b"x" * 10_000)
    assert [len(line) for line in stored] == [4096, 4096, 1808]


def test_too_many_lines_are_in_the_file_only(tmp_path: Path) -> None:
    stored, written = lines_of(tmp_path, b"line\n" * 20, most_lines=5)
    assert len(stored) == 5
    assert "logs too much" in stored[-1]
    assert written.count("line") == 20

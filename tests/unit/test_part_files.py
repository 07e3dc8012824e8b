"""Exports into a folder where others may write: nobody gets an export, or has a file of the operator overwritten."""

import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from silkline.errors import UsageError
from silkline.export.folder import ResultFolder
from silkline.export.open import output_file, refuse_to_overwrite
from silkline.export.sitemap import SitemapFile
from silkline.model.fetched import SCREENSHOT, Fetched, PageFile, Rendered
from silkline.page_files import FilePlace, PageFiles, folder_of
from silkline.part_files import whole_file
from tests.unit.test_export import result

SECRET = b"the operator's own file"


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """A file of the operator. No export may change it."""
    path = tmp_path / "victim"
    path.write_bytes(SECRET)
    yield path
    assert path.read_bytes() == SECRET


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


@pytest.mark.parametrize("links", [True, False])
def test_no_process_id_says_the_name_of_a_part(shared: Path, victim: Path, links: bool) -> None:
    """The attack: links, or files that everybody can read, with the names that parts had."""
    theirs = shared / f".r.jsonl.{os.getpid()}.part"
    if links:
        theirs.symlink_to(victim)
    else:
        theirs.touch(0o666)
    with output_file(shared / "r.jsonl") as stream:
        stream.write(b"export")
    assert (shared / "r.jsonl").read_bytes() == b"export"
    assert not (shared / "r.jsonl").samefile(theirs if not links else victim)
    assert {path.name for path in shared.iterdir()} == {"r.jsonl", theirs.name}


@pytest.mark.parametrize("links", [True, False])
def test_a_name_that_somebody_guessed_is_refused(
    shared: Path, victim: Path, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "token_hex", lambda _: "guessed")
    theirs = shared / ".r.jsonl.guessed.part"
    if links:
        theirs.symlink_to(victim)
    else:
        theirs.write_bytes(b"theirs")
    with pytest.raises(UsageError, match="cannot be written"), output_file(shared / "r.jsonl") as stream:
        stream.write(b"export")
    assert [path.name for path in shared.iterdir()] == [theirs.name]
    assert links or theirs.read_bytes() == b"theirs"


def test_a_link_in_place_of_the_target_is_replaced(shared: Path, victim: Path) -> None:
    (shared / "r.jsonl").symlink_to(victim)
    with whole_file(shared / "r.jsonl") as stream:
        stream.write(b"export")
    assert not (shared / "r.jsonl").is_symlink()
    assert (shared / "r.jsonl").read_bytes() == b"export"


def test_the_files_of_a_large_sitemap_are_new_files(shared: Path, victim: Path) -> None:
    """They could be planted after the check for existing files, while the export runs."""
    for number in (1, 2, 3):
        (shared / f"map-{number}.xml").symlink_to(victim)
    with output_file(shared / "map.xml") as stream, ExitStack() as files:
        sitemap = SitemapFile(stream, shared / "map.xml", files, most=2)
        for number in range(5):
            sitemap.write(result(f"https://example.com/{number}"))
        sitemap.close()
        assert (shared / "map-1.xml").is_symlink(), "a part has its name when the whole export is complete"
    counts = [(shared / f"map{part}.xml").read_text().count("<loc>") for part in ("-1", "-2", "-3", "")]
    assert counts == [2, 2, 1, 3]
    assert len(list(shared.iterdir())) == 4


def test_a_sitemap_that_failed_leaves_nothing(shared: Path) -> None:
    def fail() -> None:
        with output_file(shared / "map.xml") as stream, ExitStack() as files:
            sitemap = SitemapFile(stream, shared / "map.xml", files, most=1)
            for number in range(5):
                sitemap.write(result(f"https://example.com/{number}"))
            raise RuntimeError("no space")

    with pytest.raises(RuntimeError):
        fail()
    assert list(shared.iterdir()) == []


def test_a_file_of_a_page_is_never_written_through_another_name(shared: Path, victim: Path) -> None:
    """With --force, a second name of a file of the operator (a hard link) is replaced and not written to."""
    place = shared / "example.com" / "a.md"
    place.parent.mkdir()
    place.hardlink_to(victim)
    ResultFolder(shared, force=True).write(result("https://example.com/a"))
    assert "# A" in place.read_text()


def test_what_another_user_made_is_no_device(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe, or a link to a device, of another user in a folder where they may write."""
    path = shared / "r.jsonl"
    os.mkfifo(path)
    refuse_to_overwrite("jsonl", path, force=False)  # our own pipe: written to, not replaced
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    if own == 0:
        os.chown(path, 12345, 12345)
    with pytest.raises(UsageError, match="exists"):
        refuse_to_overwrite("jsonl", path, force=False)
    with output_file(path) as stream:
        stream.write(b"export")
    assert path.read_bytes() == b"export"


def test_the_file_of_a_rendered_page_is_a_new_file(tmp_path: Path, victim: Path) -> None:
    """A hard link has the name that its part had."""
    files = PageFiles(FilePlace(str(tmp_path), "job", 3))
    folder = folder_of(tmp_path, "job")
    (folder / f".3-{os.getpid()}-7.png.part").hardlink_to(victim)
    fetched = Fetched("https://example.com/", rendered=Rendered("", files=(PageFile(SCREENSHOT, b"picture"),)))
    files.keep(7, fetched)
    assert (folder / "7.png").read_bytes() == b"picture"
    assert (folder / "7.png").stat().st_mode & 0o777 == 0o600

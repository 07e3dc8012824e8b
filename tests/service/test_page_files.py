"""Screenshots and PDFs of rendered pages: what they show, their limits, and what a kill leaves of them."""

import errno
import io
import os
import signal
import struct
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pypdf
import pytest

from silkline import page_files, warc_files
from silkline.fetch.settings import Capture
from silkline.model.fetched import PDF, SCREENSHOT, Fetched, PageFile, Rendered
from silkline.model.job import NewJob, Status
from silkline.page_files import FilePlace, PageFiles, folder_of, path_of
from silkline.store import jobs, results
from tests.crawl.scripted_pages import ScriptedPages
from tests.support.inline import Inline
from tests.support.supervisors import eventually
from tests.support.supervisors import yard as open_yard

OWN = {"speed": "max", "allow_private": ["127.0.0.0/8"]}
TALL = (
    "<title>Tall</title><body style='margin:0;background:#f00'><h1>A tall page</h1><img src=/picture width=10>"
    "<div style='height:3000px'></div><p id=end></p><script>end.textContent = 'written by a script'</script>"
)
PLAIN = "<title>Plain</title>" + "<p>All of the words are here already.</p>" * 40


@pytest.fixture
def site() -> Iterator[ScriptedPages]:
    with ScriptedPages({"/tall": TALL, "/plain": PLAIN, "/picture": "no picture"}) as server:
        yield server


@pytest.fixture
def inline(tmp_path: Path) -> Iterator[Inline]:
    place = Inline(tmp_path)
    yield place
    place.close()


def picture(png: bytes) -> tuple[int, int, tuple[int, ...]]:
    """Width, height and the first pixel of a PNG."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height, depth, colours = struct.unpack(">IIBB", png[16:26])
    assert (depth, colours) in ((8, 2), (8, 6))
    data, place = b"", 8
    while place < len(png):
        (size,) = struct.unpack(">I", png[place : place + 4])
        if png[place + 4 : place + 8] == b"IDAT":
            data += png[place + 8 : place + 8 + size]
        place += size + 12
    return width, height, tuple(zlib.decompressobj().decompress(data, 4)[1:4])


@pytest.mark.usefixtures("chromium")
def test_a_rendered_page_has_its_files(inline: Inline, site: ScriptedPages, tmp_path: Path) -> None:
    asked = {"url": f"{site.url}/tall", "render": "always", "max_age": 600, **OWN}
    (stored,) = inline.run("page", screenshot="full", pdf=True, **asked)
    about = stored.metadata["files"]
    assert about["screenshot"]["type"] == "image/png"
    assert about["pdf"]["host"] == os.uname().nodename
    files = {name: path_of(tmp_path, inline.job.id, stored.url_id, name).read_bytes() for name in about}
    assert {name: len(file) for name, file in files.items()} == {name: about[name]["bytes"] for name in about}
    width, height, pixel = picture(files[SCREENSHOT])
    assert (width, pixel) == (1280, (255, 0, 0))
    assert 3000 < height < 3400, "the whole page"
    printed = pypdf.PdfReader(io.BytesIO(files[PDF])).pages
    assert "written by a script" in "".join(page.extract_text() for page in printed)
    assert site.asked("/picture") == 1, "a picture of a page has its images"
    assert folder_of(tmp_path, inline.job.id).stat().st_mode & 0o077 == 0

    (top,) = inline.run("page", screenshot="viewport", **asked)
    assert "cached" not in top.metadata, "a page from the cache has no files"
    width, height, _ = picture(path_of(tmp_path, inline.job.id, top.url_id, SCREENSHOT).read_bytes())
    assert (width, height) == (1280, 800)
    (again,) = inline.run("page", **asked)
    assert again.metadata["cached"] is True
    assert "files" not in again.metadata, "they belong to the other job"
    warc_files.remove(tmp_path, tmp_path / "logs", inline.job.id)
    assert not folder_of(tmp_path, inline.job.id).exists()


@pytest.mark.usefixtures("chromium")
def test_a_file_over_its_limit_costs_only_the_file(
    inline: Inline, site: ScriptedPages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("silkline.crawl.render_queue.Capture", partial(Capture, max_bytes=1_000))
    wanted = {"screenshot": "full", "pdf": True, **OWN}
    (tall,) = inline.run("page", url=f"{site.url}/tall", render="always", **wanted)
    assert "written by a script" in tall.data["markdown"]
    too_large = {"error": "it has more than 1,000 bytes"}
    assert tall.metadata["files"] == {"screenshot": too_large, "pdf": too_large}
    assert list(folder_of(tmp_path, inline.job.id).iterdir()) == []
    (plain,) = inline.run("page", url=f"{site.url}/plain", render="auto", **wanted)
    assert "files" not in plain.metadata, "it was not rendered"


@pytest.mark.usefixtures("chromium")
def test_a_picture_with_too_many_pixels_is_cut_below(
    inline: Inline, site: ScriptedPages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("silkline.crawl.render_queue.Capture", partial(Capture, max_pixels=4_000_000))
    site.pages = {"/wide": "<body style='margin:0;background:#f00'><div style='width:2000px;height:9000px'></div>"}
    (wide,) = inline.run("page", url=f"{site.url}/wide", render="always", screenshot="full", **OWN)
    file = path_of(tmp_path, inline.job.id, wide.url_id, SCREENSHOT)
    assert picture(file.read_bytes()) == (2000, 2000, (255, 0, 0))


def rendered(**bodies: bytes) -> Fetched:
    files = tuple(PageFile(name, body, len(body)) for name, body in bodies.items())
    return Fetched("http://a/", 200, rendered=Rendered("http://a/", b"<p>", files=files))


def names(data: Path, job_id: str = "j") -> set[str]:
    return {path.name for path in folder_of(data, job_id).iterdir()}


def test_a_file_that_the_result_does_not_mean_is_not_shown(tmp_path: Path) -> None:
    """An attempt on this machine died. The next one, on another machine, gave the id of its page to another URL."""
    files = PageFiles(FilePlace(str(tmp_path), "j", 1))
    files.keep(7, rendered(screenshot=b"of another page"))
    about = {"files": {"screenshot": {"type": "image/png", "bytes": 5, "host": "another"}}}
    assert page_files.stored_files(tmp_path, "j", 7, about) == {}
    files.keep(7, rendered(screenshot=b"12345"))
    assert list(page_files.stored_files(tmp_path, "j", 7, about)) == ["screenshot"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_does_not_cost_a_page_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The attempt ends, and the page is fetched again when there is space."""
    files = PageFiles(FilePlace(str(tmp_path), "j", 1))

    def full(*arguments: object, **words: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(page_files, "whole_file", full)
    with pytest.raises(OSError, match=os.strerror(number)):
        files.keep(7, rendered(screenshot=b"one"))


def test_a_page_that_is_rendered_again_replaces_its_file(tmp_path: Path) -> None:
    first = PageFiles(FilePlace(str(tmp_path), "j", 1))
    kept = first.keep(7, rendered(screenshot=b"one", pdf=b"pdf"))
    assert kept.rendered is not None
    assert [(file.name, file.body, file.size) for file in kept.rendered.files] == [
        ("screenshot", b"", 3),
        ("pdf", b"", 3),
    ]
    (folder_of(tmp_path, "j") / ".1-99-8.png.part").write_bytes(b"ha")  # its process was killed
    (folder_of(tmp_path, "j") / ".2-98-9.png.part").write_bytes(b"ha")  # another process of the new attempt writes it
    second = PageFiles(FilePlace(str(tmp_path), "j", 2))
    second.keep(7, rendered(screenshot=b"two"))
    assert names(tmp_path) == {"7.png", "7.pdf", ".2-98-9.png.part"}
    assert path_of(tmp_path, "j", 7, SCREENSHOT).read_bytes() == b"two"


def test_a_file_that_cannot_be_stored_is_told(tmp_path: Path) -> None:
    files = PageFiles(FilePlace(str(tmp_path), "j", 1))
    folder_of(tmp_path, "j").rmdir()
    kept = files.keep(7, rendered(screenshot=b"one"))
    assert kept.rendered is not None
    told = page_files.told(kept.rendered.files)
    assert told == {"screenshot": {"error": "it could not be stored: No such file or directory"}}


@pytest.mark.usefixtures("chromium")
def test_a_killed_crawl_has_each_file_once_and_whole(tmp_path: Path) -> None:
    links = "".join(f"<a href=/{number}>{number}</a>" for number in range(6))
    pages = {"/": PLAIN + links, **{f"/{number}": TALL for number in range(6)}}
    with ScriptedPages(pages) as site, open_yard(f"sqlite:///{tmp_path}/files.db", tmp_path) as yard:
        payload = {**OWN, "url": site.url, "render": "always", "screenshot": "viewport", "fetchers": 1}
        job, _ = jobs.enqueue(yard.database, NewJob("site", payload, max_retries=5))
        yard.start()
        runner = yard.runner_of(job.id)
        folder = folder_of(yard.folder / "data", job.id)
        eventually("a file is there", lambda: folder.is_dir() and any(folder.glob("*.png")))
        lease = yard.job(job.id).run_lease
        os.kill(runner, signal.SIGKILL)
        yard.runner_of(job.id, after=lease)
        yard.wait_for(job.id, Status.COMPLETED)
        stored = list(results.every(yard.database, job.id))
        assert len(stored) == 7
        assert {path.name for path in folder.iterdir()} == {f"{each.url_id}.png" for each in stored}
        for each in stored:
            assert picture((folder / f"{each.url_id}.png").read_bytes())[:2] == (1280, 800)

"""Answers kept as they came, and written as one WARC file that warcio itself calls valid."""

import gzip
import io
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from warcio.archiveiterator import ArchiveIterator

from silkline.model.database import Database
from silkline.sample.server import SampleServer
from silkline.sample.site import SampleAnswer
from silkline.store import jobs
from silkline.warc_files import folder_of
from tests.acceptance.conftest import Silkline


def pages(path: Path) -> dict[str, tuple[str, bytes]]:
    with path.open("rb") as stream:
        return {
            record.rec_headers.get_header("WARC-Target-URI"): (
                record.http_headers.get_statuscode(),
                record.content_stream().read(),
            )
            for record in ArchiveIterator(stream)
            if record.rec_type == "response"
        }


def test_a_warc_of_a_job(silkline: Silkline, store: Database, tmp_path: Path) -> None:
    with SampleServer() as site:
        asked = [f"{site.url}{path}" for path in ("birds/puffin", "handbook.pdf", "directions", "nowhere", "lamp.png")]
        assert silkline("fetch", *asked, "--warc", "--speed", "max").code == 0
    file = tmp_path / "pages.warc.gz"
    told = silkline("results", "last", "-o", str(file))
    assert (told.code, told.err) == (0, f"4 results were written to {file}.\n")
    checked = subprocess.run([sys.executable, "-m", "warcio.cli", "check", str(file)], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    found = pages(file)
    assert set(found) == {
        f"{site.url}{path}" for path in ("birds/puffin", "handbook.pdf", "visit/getting-there", "lamp.png")
    }
    assert found[asked[0]][0] == "200"
    assert b"Puffins dig." in found[asked[0]][1]
    assert found[asked[1]][1].startswith(b"%PDF-")
    only = silkline("results", "last", "--format", "warc", "--match", "puffin", "-o", str(file), "--force")
    assert "1 result was written" in only.err
    assert silkline("jobs", "rm", "last").code == 0
    assert list((tmp_path / "data" / "warc").iterdir()) == []


def test_a_crawl_keeps_its_answers_too(silkline: Silkline, tmp_path: Path) -> None:
    with SampleServer() as site:
        options = ("--warc", "--speed", "max", "--limit", "12", "--fetchers", "2")
        assert silkline("crawl", site.url, *options).code == 0
    file = tmp_path / "site.warc.gz"
    told = silkline("results", "last", "-o", str(file))
    assert "12 results were written" in told.err, told
    assert len(pages(file)) == 12


def test_large_pages_are_kept_by_every_fetcher_and_what_was_not_kept_is_said(
    silkline: Silkline, tmp_path: Path
) -> None:
    links = "".join(f"<a href='/{number}'>{number}</a>" for number in range(6)).encode()

    def respond(target: str, origin: str) -> SampleAnswer:
        return SampleAnswer(200, "text/html", b"<p>A large page.</p>" + links + b"<!--" + b"x" * 600_000 + b"-->")

    with ExitStack() as stack:
        sites = [stack.enter_context(SampleServer(respond=respond)).url for _ in range(4)]
        options = ("--warc", "--speed", "max", "--fetchers", "3", "--ignore-robots")
        done = silkline("crawl", *sites, *options, "--json")
        assert done.json["progress"]["done"] == 4 * 7
    file = tmp_path / "site.warc.gz"
    assert "28 results were written" in silkline("results", "last", "-o", str(file)).err
    assert {len(body) for _, body in pages(file).values()} == {600_000 + 27 + len(links)}

    kept = max((tmp_path / "data" / "warc" / done.json["id"]).iterdir(), key=lambda file: file.stat().st_size)
    lost = len(list(ArchiveIterator(io.BytesIO(kept.read_bytes()))))
    kept.unlink()
    again = silkline("extract", "last", "--content", "text", "--json").json
    assert (again["progress"]["done"], again["progress"]["skipped"]) == (28 - lost, lost)
    assert f"of {lost} pages of job {done.json['id']} nothing was kept here" in silkline("logs", "last").out


def test_a_record_that_was_cut_short_is_left_out(silkline: Silkline, store: Database, tmp_path: Path) -> None:
    with SampleServer() as site:
        silkline("fetch", f"{site.url}birds/puffin", f"{site.url}birds/eider", "--warc", "--speed", "max")
    (kept,) = folder_of(tmp_path / "data", jobs.find(store, "last").id).iterdir()
    kept.write_bytes(kept.read_bytes()[:-200])
    file = tmp_path / "pages.warc.gz"
    assert silkline("results", "last", "-o", str(file)).code == 0
    assert len(pages(file)) == 1
    assert gzip.decompress(file.read_bytes())


def test_bodies_are_stored_decoded(silkline: Silkline, tmp_path: Path) -> None:
    def respond(target: str, origin: str) -> SampleAnswer:
        return SampleAnswer(
            200, "text/html\r\nContent-Encoding: gzip", gzip.compress(b"<p>Packed for the journey.</p>")
        )

    with SampleServer(respond=respond) as site:
        assert silkline("fetch", site.url, "--warc", "--ignore-robots").code == 0
    file = tmp_path / "pages.warc.gz"
    silkline("results", "last", "-o", str(file))
    assert pages(file) == {site.url: ("200", b"<p>Packed for the journey.</p>")}


def test_a_job_that_kept_nothing(silkline: Silkline) -> None:
    with SampleServer() as site:
        silkline(f"{site.url}birds/puffin")
    silkline("results", "last", "--format", "warc").refused(2, "needs a job that ran with --warc")

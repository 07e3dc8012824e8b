"""`silkline demo`, and what can be asked of the job it leaves behind: results in every form, URLs, errors."""

import csv
import io
import json
import signal
import urllib.request
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.acceptance.conftest import PATIENCE, Finished, Silkline
from tests.acceptance.test_output import on_terminal

DONE, LISTED = 30, 43
NAMESPACE = "{http://www.sitemaps.org/schemas/sitemap/0.9}"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, byte_code: Path) -> tuple[Silkline, Finished]:
    """The demo, run once for all the tests that only read."""
    silkline = Silkline(tmp_path_factory.mktemp("demo"), byte_code)
    return silkline, silkline("demo")


@pytest.fixture
def after_demo(demo: tuple[Silkline, Finished]) -> Silkline:
    return demo[0]


def test_the_demo_accounts_for_every_url(demo: tuple[Silkline, Finished]) -> None:
    shown = demo[1]
    assert shown.code == 0, shown
    assert f"{LISTED} discovered = 0 queued + 0 in flight + {DONE} done + 3 failed + 10 skipped" in shown.out
    assert "failed: 1 http_404, 1 http_410, 1 redirect_loop" in shown.out
    assert "skipped: 3 redirected, 3 sitemap, 1 noindex, 1 not_a_page, 1 robots, 1 trap" in shown.out
    assert "/lost/lobster-pots (404)\n    on http://127.0.0.1:" in shown.out
    assert "/loop/two (redirect_loop)\n" in shown.out


def test_the_sample_site_can_be_served_alone(silkline: Silkline) -> None:
    process = silkline.start("demo", "--serve")
    assert process.stdout is not None
    url = process.stdout.readline().decode().strip()
    with urllib.request.urlopen(f"{url}birds/puffin", timeout=PATIENCE) as page:
        assert b"Puffins dig." in page.read()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 130


def test_results_as_json_lines(after_demo: Silkline) -> None:
    rows = [json.loads(line) for line in after_demo("results", "last").out.splitlines()]
    assert len(rows) == DONE
    assert list(rows[0]) == [
        *("id", "job_id", "url_id", "original_url", "final_url", "data", "success", "metadata", "created_at")
    ]
    assert rows[0]["data"]["title"] == "Tern Rock Light"
    assert rows[0]["metadata"]["http_status"] == 200
    assert after_demo("results", "last", "--format", "jsonl").out == after_demo("results", "last").out


def test_results_are_filtered(after_demo: Silkline) -> None:
    def number(*options: str) -> int:
        return len(after_demo("results", "last", *options).out.splitlines())

    assert number("--match", "/birds/") == 4
    assert number("--status", "2xx", "--state", "done", "--match", "/birds/p") == 1
    assert (number("--state", "failed"), number("--status", "404")) == (3, 1)
    after_demo("results", "last", "--match", "(").refused(2, "not a regular expression")
    after_demo("results", "last", "--status", "nine").refused(2, "not an HTTP status")
    after_demo("results", "ffff").refused(5, "no job")


def test_results_as_a_table(after_demo: Silkline, tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(after_demo("results", "last", "--format", "csv").out, newline="")))
    assert len(rows) == DONE
    assert (rows[0]["title"], rows[0]["success"]) == ("Tern Rock Light", "true")
    assert rows[0]["content"].startswith("# Tern Rock Light")
    told = after_demo("results", "last", "-o", str(tmp_path / "table.csv"))
    assert told.out == ""
    assert told.err == f"{DONE} results were written to {tmp_path / 'table.csv'}.\n"
    written = io.StringIO((tmp_path / "table.csv").read_bytes().decode(), newline="")
    assert len(list(csv.reader(written))) == DONE + 1
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"], "nothing unfinished is left behind"


def test_results_as_a_folder_of_markdown(after_demo: Silkline, tmp_path: Path) -> None:
    folder = tmp_path / "site"
    assert after_demo("results", "last", "--format", "md", "-o", str(folder)).code == 0
    (site,) = folder.iterdir()
    puffin = (site / "birds" / "puffin.md").read_text()
    assert puffin.startswith('---\ntitle: "Puffin"\nurl: "http://127.0.0.1:')
    assert "\n---\n\n# Puffin\n" in puffin
    assert len(list(folder.rglob("*.md"))) == DONE
    after_demo("results", "last", "--format", "md", "-o", str(folder)).refused(2, "not empty")
    after_demo("results", "last", "--format", "md").refused(2, "give its name with -o")


def test_results_as_parquet(after_demo: Silkline, tmp_path: Path) -> None:
    file = tmp_path / "pages.parquet"
    assert after_demo("results", "last", "-o", str(file)).code == 0
    table = pyarrow.parquet.read_table(file)
    assert table.num_rows == DONE
    assert table.column("http_status").to_pylist() == [200] * DONE
    assert json.loads(table.column("data")[0].as_py())["title"] == "Tern Rock Light"


def test_results_as_a_sitemap(after_demo: Silkline) -> None:
    root = ElementTree.fromstring(after_demo("results", "last", "--format", "sitemap").out)
    listed = [loc.text or "" for loc in root.iter(f"{NAMESPACE}loc")]
    assert len(listed) == DONE
    assert listed[0].endswith("/")


def test_a_bar_is_shown_to_a_person(after_demo: Silkline, tmp_path: Path) -> None:
    shown = on_terminal(after_demo, "results", "last", "-o", str(tmp_path / "pages.jsonl"))
    assert "Writing results" in shown
    assert f"{DONE} results were written" in shown
    quiet = on_terminal(after_demo, "-q", "results", "last", "-o", str(tmp_path / "pages.jsonl"), "--force")
    assert quiet.strip() == ""


def test_where_nothing_can_be_written(after_demo: Silkline, tmp_path: Path) -> None:
    after_demo("results", "last", "-o", str(tmp_path / "no" / "such" / "x.csv")).refused(2, "cannot be written")


def test_the_ledger_is_listed(after_demo: Silkline) -> None:
    assert len(after_demo("urls", "last").out.splitlines()) == LISTED
    skipped = after_demo("urls", "last", "--state", "skipped", "--reason", "robots").out
    assert skipped.split()[:3] == ["skipped", "-", "robots"]
    assert skipped.rstrip().endswith("/private/accounts")
    rows = [json.loads(line) for line in after_demo("urls", "last", "--json", "--match", "calendar").out.splitlines()]
    assert [row["reason"] for row in rows] == [None] * 4 + ["trap"]
    assert rows[0]["found_via"] == "link"


def test_errors_name_their_source_pages(after_demo: Silkline) -> None:
    shown = after_demo("errors", "last").out
    assert "1 http_404: the server answered 404 Not Found\n" in shown
    assert "/loop/two\n    redirected from http://127.0.0.1:" in shown
    lost = shown.partition("/lost/lobster-pots\n")[2].splitlines()[:2]
    assert [line.partition("127.0.0.1:")[0] for line in lost] == ["    linked from http://"] * 2
    assert {line.split("/", 3)[3] for line in lost} == {"", "about/keepers"}
    found = {problem["reason"]: problem for problem in after_demo("errors", "last", "--json").json}
    assert found["http_404"]["examples"][0]["links_in"]["count"] == 2
    source = found["http_404"]["examples"][0]["source"]
    assert source.split("/", 3)[3] in {"", "about/keepers"}, "whichever of the two was read first"
    assert found["redirect_loop"]["examples"][0]["source"].endswith("/visit/getting-there")

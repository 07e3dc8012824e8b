"""What people type every day: words in any case, times with units, `last`, slips of the finger. Run in this process."""

import json
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from silkline.api.app import create_app
from silkline.api.events import Hub
from silkline.cli.progress import progress_line
from silkline.cli.terminal import size, wrapped
from silkline.config import Settings
from silkline.model.database import Database
from silkline.model.host_wait import DELAY, ERRORS, Wait
from silkline.model.job import AttemptEnd, Backoff, End, Job, Verb, decide
from silkline.model.ledger import Checkpoint, Counts, NewResult, NewUrl, Settled
from silkline.model.url import url_key
from silkline.sample.server import SampleServer
from silkline.sample.site import SampleAnswer
from silkline.store import jobs, logs, urls
from tests.acceptance.conftest import Run

HTML = "text/html"


def begin(store: Database, job: Job) -> Job:
    return jobs.claim_one(store, "worker-1", "a-host", job.id)


def finish(store: Database, job: Job, end: End = End.COMPLETED) -> None:
    def how(now: Job) -> object:
        return decide(now, AttemptEnd(end), backoff=Backoff(), now=store.now(), jitter=0.5)

    jobs.finish(store, job, how)  # type: ignore[arg-type]


def crawled(store: Database, job: Job, *, end: bool = True) -> None:
    """A crawl of four URLs: a page, a redirect, one that is missing and one that took too long."""
    job = begin(store, job)
    addresses = [f"https://example.com/{name}" for name in ("", "moved", "gone", "slow")]
    found = [NewUrl(id, url_key(url), url, "example.com", 0) for id, url in enumerate(addresses, 1)]
    settled = [
        Settled(1, "done", None, None, 1, 200),
        Settled(2, "skipped", "redirected", "https://example.com/", 1, 301),
        Settled(3, "failed", "http_404", None, 1, 404),
        Settled(4, "failed", "timeout", "60 s", 3, None),
    ]
    page = NewResult(1, addresses[0], 1, addresses[0], 1, '{"title": "Home"}', True, '{"http_status": 200}')
    urls.record(store, job, Checkpoint(found=found, settled=settled, results=[page]))
    if end:
        finish(store, job)


@pytest.mark.parametrize("word", ["completed", "COMPLETED", "Completed"])
def test_a_status_in_any_case(here: Run, store: Database, enqueue: Callable[..., Job], word: str) -> None:
    job = enqueue()
    enqueue()
    finish(store, begin(store, job))
    assert [each["id"] for each in here("jobs", "ls", "--status", word, "--json").json] == [job.id]


@pytest.mark.parametrize("word", ["pausing", "Pausing", "PENDING", "queued", "Running", "stopping", "cancelling"])
def test_every_word_of_a_status_in_any_case(here: Run, store: Database, word: str) -> None:
    done = here("jobs", "ls", "--status", word)
    assert (done.code, done.err) == (0, f"No jobs are {word.lower()}.\n")


@pytest.mark.parametrize(
    ("option", "field", "seconds"), [("--delay", "delay", 1), ("--max-duration", "max_duration", 600)]
)
def test_times_of_a_crawl_have_units(here: Run, option: str, field: str, seconds: float) -> None:
    given = {"--delay": "1s", "--max-duration": "10m"}[option]
    done = here("crawl", "https://example.com/", option, given, "--detach")
    assert done.code == 0, done
    assert here("jobs", "show", "last", "--json").json["spec"][field] == seconds


def test_a_delay_of_zero_is_kept(here: Run) -> None:
    assert here("crawl", "https://example.com/", "--delay", "0", "--depth", "0", "--parsers", "0", "--detach").code == 0
    payload = here("jobs", "show", "last", "--json").json["spec"]
    assert (payload["delay"], payload["depth"], payload["parsers"]) == (0, 0, 0)


def test_results_of_a_crawl_can_be_its_failures(here: Run, store: Database, enqueue: Callable[..., Job]) -> None:
    crawled(store, enqueue(kind="site"))

    def found(*options: str) -> list[str]:
        return [json.loads(line)["final_url"][20:] for line in here("results", "last", *options).out.splitlines()]

    assert found() == [""]
    assert found("--state", "done") == [""]
    assert found("--state", "FAILED") == ["gone", "slow"]
    assert found("--status", "404") == ["gone"]
    assert found("--status", "4XX") == ["gone"]
    assert found("--status", "301") == ["moved"]
    assert found("--status", "200", "--status", "404") == ["", "gone"]
    assert found("--state", "failed", "--match", "slow") == ["slow"]
    (row,) = here("results", "last", "--state", "failed", "--status", "404").out.splitlines()
    assert json.loads(row)["success"] is False
    assert json.loads(row)["metadata"]["error"] == "http_404"


def test_urls_and_explain_print_the_json_of_the_api(here: Run, store: Database, enqueue: Callable[..., Job]) -> None:
    job = begin(store, enqueue(kind="site"))
    home, linked = "https://example.com/", "https://example.com/a"
    found = [
        NewUrl(1, url_key(home), home, "example.com", 0),
        NewUrl(2, url_key(linked), linked, "example.com", 1, found_on=1, found_via="link"),
    ]
    pages = [NewResult(1, home, 1, home, 1, '{"title": "Home", "markdown": "# Home"}', True, '{"http_status": 200}')]
    settled = [Settled(1, "done", None, None, 1, 200)]
    urls.record(store, job, Checkpoint(found=found, settled=settled, results=pages))
    api = TestClient(create_app(Settings(), store, Hub(store), "127.0.0.1", 80), base_url="http://127.0.0.1")

    printed = [json.loads(line) for line in here("urls", job.id, "--json").out.splitlines()]
    assert printed == api.get(f"/v1/jobs/{job.id}/urls").json()["items"]
    assert [each["found_on"] for each in printed] == [None, home]
    for url in (home, linked):
        told = here("explain", job.id, url, "--json").json
        answered = api.get(f"/v1/jobs/{job.id}/explain", params={"url": url}).json()
        for result in filter(None, (told["result"], answered["result"])):
            result["created_at"] = datetime.fromisoformat(result["created_at"])
        assert told == answered
    assert told["path"][0]["url"] == home


def test_last_is_the_newest_job_that_the_command_fits(here: Run, store: Database, enqueue: Callable[..., Job]) -> None:
    crawl, paused, waiting = enqueue(kind="site"), enqueue(), enqueue()
    crawled(store, crawl)
    jobs.wish(store, paused.id, Verb.PAUSE)
    logs.append(store, [logs.NewLine(crawl.id, 1, "info", "It began.", store.now())])
    for arguments in (("results",), ("urls",), ("errors",), ("logs",)):
        done = here(*arguments, "last")
        assert done.code == 0, done
        assert f"Using job {crawl.id}" in done.err, done
        assert done.out
    assert here("explain", "last", "https://example.com/gone").out
    assert here("jobs", "show", "last", "--json").json["id"] == waiting.id
    resumed = here("jobs", "resume", "last")
    assert f"Job {paused.id} is queued." in resumed.err
    assert f"Using job {paused.id}" in resumed.err
    done = here("jobs", "pause", "last")
    assert done.err == f"Job {waiting.id} is paused.\n", "the newest of all is not worth a word"
    assert here("jobs", "rm", "last").code == 0
    assert here("jobs", "show", crawl.id).code == 5


def test_urls_that_failed_for_one_reason_are_tried_again(
    here: Run, store: Database, enqueue: Callable[..., Job]
) -> None:
    job = enqueue(kind="site")
    crawled(store, job)
    enqueue()
    here("jobs", "retry", job.id, "--reason", "tls_failed").refused(5, "http_404, timeout")
    done = here("jobs", "retry", "last", "--reason", "timeout", "--json")
    assert done.code == 0, done
    assert done.json["spec"]["urls"] == ["https://example.com/slow"]
    assert done.json["parent_id"] == job.id


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("craw", "https://example.com/"), "Did you mean `silkline crawl`?"),
        (("reslts", "last"), "Did you mean `silkline results`"),
        (("jobs", "pasue", "last"), "Did you mean `silkline jobs pause`"),
        (("htp://example.com/a",), "did you mean http://example.com/a?"),
        (("htps://example.com/",), "did you mean https://example.com/?"),
        (("htps:example.com",), "did you mean https://example.com?"),
        (("https:/example.com/",), "did you mean https://example.com/?"),
        (("http//example.com/",), "did you mean http://example.com/?"),
        (("crawl", "htps://example.com/"), "did you mean https://example.com/?"),
        (("fetch", "javascript:alert(1)"), "only http:// and https:// are fetched"),
        (("map", "ftp://example.com/"), "only http:// and https:// are fetched"),
    ],
)
def test_a_slip_of_the_finger_gets_a_suggestion(here: Run, arguments: tuple[str, ...], words: str) -> None:
    here(*arguments).refused(2, words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("crawl", "https://a.example/", "--limit", "0"), "--limit '0': it must be greater than or equal to 1"),
        (("crawl", "https://a.example/", "--delay", "2h"), "--delay '7200.0': it must be less than or equal to 3600"),
        (("crawl", "https://a.example/", "--include", "("), "--include '(' is not a regular expression"),
        (("crawl", "https://a.example/", "--fetchers", "999"), "--fetchers '999'"),
        (("crawl", "https://a.example/", "--allow-private", "x"), "--allow-private 'x': expected CIDR[:PORT]"),
        (("crawl", "https://a.example/", "--cookie", "x"), "--cookie"),
        (("crawl", "https://a.example/", "--header", "bad name: x"), "--header bad name: is not a header name"),
        (("crawl",), "give at least one URL, or a file of URLs with --seeds FILE"),
        (("fetch", "https://a.example/", "http://"), "URL 'http://' is not a web address"),
        (("fetch", "https://a.example/", "--keep", "div["), "--keep 'div[' is not a CSS selector"),
        (("fetch", "https://a.example/", "--field", "a=h1["), "--field a, css: is not a CSS selector"),
        (("fetch", "https://a.example/", "--field", "a"), "--field 'a' is not a field"),
        (("fetch", "https://a.example/", "--require-fields", "1"), "--require-fields needs --fields or --field"),
        (("fetch", "https://a.example/", "--each", "li"), "--each needs --fields or --field"),
        (("fetch", "https://a.example/", "--pdf"), "--pdf needs a browser: add --render always"),
        (("serve", "--slots", "many"), "'many' is not a valid integer."),
        (("jobs", "retry", "last", "--cpus", "many"), "'many' is not a valid number."),
        (("fetch", "https://a.example/", "--delay", "soon"), "'soon' is not a duration"),
        (("crawl", "https://a.example/", "--max-duration", "0"), "--max-duration '0.0': it must be greater than 0"),
    ],
)
def test_errors_name_the_option_and_no_field(here: Run, arguments: tuple[str, ...], words: str) -> None:
    done = here(*arguments)
    done.refused(2, words)
    for field in ("urls.", "url:", "allow_private", "max_duration", "set url"):
        assert field not in done.err


def test_cookies_are_sent_to_the_named_origin(here: Run) -> None:
    with SampleServer() as site:
        assert here("fetch", site.url, "--cookie", "a=1", "--cookie", "b=2=3", "--speed", "max").code == 0
        assert {headers.get("Cookie") for headers in site.headers} == {"a=1; b=2=3"}
    assert here("jobs", "show", "last", "--json").json["spec"]["cookies"] == {"a": "***", "b": "***"}


def test_secret_headers_and_cookies_come_from_files(here: Run, tmp_path: Path) -> None:
    """Other users of the machine can read the arguments of a command, but no private file."""
    headers, cookies = tmp_path / "headers.txt", tmp_path / "cookies.txt"
    headers.write_text("X-One: first\n\nX-Two: a: b\r\n")
    cookies.write_text("a=1\nb=2=3")
    with SampleServer() as site:
        options = ("--header", f"@{headers}", "--header", "X-Three: typed", "--cookie", f"@{cookies}")
        assert here("fetch", site.url, *options, "--speed", "max").code == 0
        sent = site.headers[-1]
    assert [sent[f"X-{name}"] for name in ("One", "Two", "Three")] == ["first", "a: b", "typed"]
    assert sent["Cookie"] == "a=1; b=2=3"


@pytest.mark.parametrize("option", ["--header", "--cookie"])
def test_a_file_of_secrets_that_cannot_be_read_is_refused_without_its_text(
    here: Run, tmp_path: Path, option: str
) -> None:
    file = tmp_path / "secrets.txt"
    given = ("fetch", "https://a.example/", option, f"@{file}")
    here(*given).refused(2, "cannot be read", option)
    file.write_bytes(b"\xff")
    here(*given).refused(2, "is not UTF-8")
    file.write_text("\nhush-hush")
    done = here(*given)
    done.refused(2, "Line 2 of", "is not valid")
    assert "hush" not in done.err


def test_an_empty_page_is_explained(here: Run) -> None:
    shell = b"<title>App</title><div id=root></div><script src=/app.js></script>"
    with SampleServer(
        respond=lambda target, origin: SampleAnswer(404 if "robots" in target else 200, HTML, shell)
    ) as site:
        done = here(site.url)
    assert (done.code, done.out) == (0, "")
    assert "the page has no text; if its scripts create the text, run them with --render auto" in done.err


def test_the_help_shows_a_url_and_examples(here: Run) -> None:
    done = here("--help")
    assert "silkline [OPTIONS] URL | COMMAND" in done.out
    examples = [line for line in done.out.splitlines() if line.startswith("  silkline ")]
    assert len(examples) >= 5
    assert "silkline https://example.com/" in examples[0]


def test_nothing_speaks_of_unchanged_pages(here: Run, store: Database, enqueue: Callable[..., Job]) -> None:
    crawled(store, enqueue(kind="site"))
    shown = here("jobs", "show", "last").out + here("urls", "--help").out + here("explain", "--help").out
    assert "unchanged" not in shown
    assert "4 discovered = 0 queued + 0 in flight + 1 done + 2 failed + 1 skipped" in shown
    assert here("jobs", "show", "last", "--json").json["progress"]["unchanged"] == 0, "the documented sum stays"


@pytest.mark.parametrize(
    ("arguments", "package", "command"),
    [
        (("crawl", "http://127.0.0.1:9/", "--warc"), "warcio", "pip install 'silkline[warc]'"),
        (("fetch", "http://127.0.0.1:9/", "--warc"), "warcio", "pip install 'silkline[warc]'"),
        (("crawl", "http://127.0.0.1:9/", "-o", "a.parquet"), "pyarrow", "pip install 'silkline[parquet]'"),
        (
            ("jobs", "add", "--kind", "youtube", "https://youtu.be/lightlight1"),
            "youtube_transcript_api",
            "pip install 'silkline[youtube]'",
        ),
        (("mcp",), "mcp", "pip install 'silkline[mcp]'"),
    ],
)
def test_a_missing_package_is_named_once_before_a_job_exists(
    here: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], package: str, command: str
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == package or name == "silkline.api.mcp"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    here(*arguments).refused(2, package.replace("_", "-"), command)
    assert here("jobs", "--json").json == []


@pytest.mark.parametrize("arguments", [("fetch",), ("crawl",), ("map", "--links")])
def test_a_missing_browser_is_named_before_a_job_exists(
    here: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setattr("silkline.fetch.render_program.find_browser", lambda: None)
    here(*arguments, "http://127.0.0.1:9/", "--render", "always").refused(2, "--render always", "apt install chromium")
    assert here("jobs", "--json").json == []


def test_a_wait_is_never_cut_and_names_what_helps() -> None:
    wait = Wait("example.com", 380, 2, DELAY, "", 0.5, 1.0, 190.0)
    counts = Counts(
        discovered=500, queued=380, done=120, bytes=3_100_000, live={"rate": 2.0, "waits": [wait._asdict()]}
    )
    line = progress_line(counts, {"limit": 500})
    assert "3.1 MB" in line
    assert line.endswith(
        "this crawl waits 0.5 s between two pages of a host (use --speed fast to send requests more often)"
    )
    rows = wrapped(line, 39)
    assert all(len(row) <= 39 for row in rows)
    assert " ".join(rows) == line
    assert "--speed max" in progress_line(counts, {"speed": "fast"})
    assert "--speed" not in progress_line(counts, {"speed": "max"})
    assert "a smaller --delay" in progress_line(counts, {"delay": 5})


def test_no_higher_speed_is_suggested_for_a_server_with_errors() -> None:
    wait = Wait("example.com", 380, 2, ERRORS, "http_500", 0.5, 1.0, 190.0)
    line = progress_line(Counts(discovered=500, queued=380, done=120, live={"waits": [wait._asdict()]}), {})
    assert line.endswith("backing off after errors (http_500): 0.5 s between pages")


def test_sizes_are_in_units_of_a_thousand() -> None:
    sizes = [size(number) for number in (0, 999, 1_000, 3_100_000, 999_960_000, 2.5e9)]
    assert sizes == ["0 B", "999 B", "1.0 kB", "3.1 MB", "1.0 GB", "2.5 GB"]

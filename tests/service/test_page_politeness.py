"""How single pages are asked for: robots.txt at every hop, waits, another try, and when to leave a server alone."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from silkline.kinds import page
from silkline.sample.server import SampleServer
from silkline.sample.site import SampleAnswer
from silkline.store.results import Result
from tests.support.inline import Inline

HTML = "text/html; charset=utf-8"
PAGE = SampleAnswer(200, HTML, b"<title>Here</title><p>A page.</p>")
MISSING = SampleAnswer(404, HTML, b"")
BUSY = SampleAnswer(503, HTML, b"")


@pytest.fixture
def inline(tmp_path: Path) -> Iterator[Inline]:
    inline = Inline(tmp_path)
    yield inline
    inline.close()


def serving(respond: Callable[[str], SampleAnswer]) -> SampleServer:
    return SampleServer(respond=lambda target, origin: respond(target))


def robots(text: str) -> SampleAnswer:
    return SampleAnswer(200, "text/plain", text.encode())


def fetch(inline: Inline, *urls: str, **more: object) -> list[Result]:
    return inline.run("page", urls=list(urls), **{"speed": "max", "allow_private": ["127.0.0.0/8"], **more})


def test_a_passing_failure_is_tried_again(inline: Inline) -> None:
    answers = [BUSY, SampleAnswer(500, HTML, b""), PAGE]
    with serving(lambda target: MISSING if target == "/robots.txt" else answers.pop(0)) as site:
        (found,) = fetch(inline, site.url)
    assert found.success
    assert inline.ledger()[0].attempts == 3


def test_a_failure_that_stays_is_given_up(inline: Inline) -> None:
    with serving(lambda target: MISSING if target == "/robots.txt" else BUSY) as site:
        (found,) = fetch(inline, site.url)
        assert site.requests.count("/") == 3
    assert (found.success, found.metadata["error"], found.metadata["retryable"]) == (False, "http_503", True)


def test_a_server_that_wants_to_be_left_alone_for_long_is_left_alone(inline: Inline) -> None:
    tired = SampleAnswer(429, f"{HTML}\r\nRetry-After: 3600", b"")
    with serving(lambda target: MISSING if target == "/robots.txt" else tired) as site:
        (found,) = fetch(inline, site.url)
        assert site.requests.count("/") == 1
    assert found.metadata["error"] == "http_429"
    assert found.metadata["detail"] == "the server asks to be left alone for 3600 s"


def test_other_pages_of_a_server_that_wants_to_be_left_alone_are_given_up_too(inline: Inline) -> None:
    tired = SampleAnswer(503, f"{HTML}\r\nRetry-After: 3600", b"")
    with (
        serving(lambda target: MISSING if target == "/robots.txt" else tired) as site,
        serving(lambda target: MISSING if target == "/robots.txt" else PAGE) as other,
    ):
        pages = [f"{site.url}{number}" for number in range(12)]
        found = fetch(inline, *pages, other.url, speed="polite", delay=0)
        assert len([path for path in site.requests if path != "/robots.txt"]) == 1
    assert [each.success for each in found].count(True) == 1
    assert sorted({each.metadata["error"] for each in found if not each.success}) == ["host_unavailable", "http_503"]
    given_up = next(each for each in found if each.metadata.get("error") == "host_unavailable")
    assert given_up.metadata["detail"].startswith("http_503 asks for 3")
    assert given_up.metadata["retryable"]


def test_a_server_that_gives_no_robots_txt_for_an_hour_is_given_up(inline: Inline) -> None:
    tired = SampleAnswer(503, f"{HTML}\r\nRetry-After: 3600", b"")
    with serving(lambda target: tired if target == "/robots.txt" else PAGE) as site:
        found = fetch(inline, f"{site.url}a", f"{site.url}b")
        assert site.requests == ["/robots.txt"]
    assert [each.metadata["error"] for each in found] == ["host_unavailable"] * 2


def test_without_robots_txt_to_read_nothing_is_fetched(inline: Inline) -> None:
    with serving(lambda target: BUSY if target == "/robots.txt" else PAGE) as site:
        found = fetch(inline, f"{site.url}a", f"{site.url}b")
        assert set(site.requests) == {"/robots.txt"}
    assert [each.metadata["error"] for each in found] == ["robots_unavailable"] * 2
    assert {url.state for url in inline.ledger()} == {"skipped"}


def test_robots_txt_is_asked_at_every_hop(inline: Inline) -> None:
    with serving(lambda target: robots("User-agent: *\nDisallow: /secret") if target == "/robots.txt" else PAGE) as far:

        def respond(target: str) -> SampleAnswer:
            return MISSING if target == "/robots.txt" else SampleAnswer(302, HTML, b"", f"{far.url}{target[1:]}")

        with serving(respond) as near:
            secret, open_to_all = fetch(inline, f"{near.url}secret/1", f"{near.url}open")
            assert far.requests == ["/robots.txt", "/open"]
    assert (secret.metadata["error"], secret.metadata["detail"]) == ("robots", "Disallow: /secret")
    assert secret.final_url == f"{far.url}secret/1"
    assert secret.metadata["redirected_from"] == [f"{near.url}secret/1"]
    assert (open_to_all.success, open_to_all.final_url) == (True, f"{far.url}open")


def test_a_host_is_not_hurried(inline: Inline) -> None:
    asked: list[float] = []

    def respond(target: str) -> SampleAnswer:
        if target == "/robots.txt":
            return MISSING
        asked.append(time.monotonic())
        return PAGE

    with serving(respond) as site:
        began = time.monotonic()
        fetch(inline, *(f"{site.url}{number}" for number in range(4)), speed="fast", delay=0.2)
    assert asked[-1] - began >= 3 * 0.2


def test_one_silent_host_does_not_hold_up_the_others(inline: Inline) -> None:
    with serving(lambda target: MISSING if target == "/robots.txt" else PAGE) as site:
        dead = [f"http://127.0.0.9:1/{number}" for number in range(30)]
        found = fetch(inline, *dead, *(f"{site.url}{number}" for number in range(30)))
    assert sum(each.success for each in found) == 30
    assert {each.metadata["error"] for each in found if not each.success} == {"connect_failed"}


def test_a_url_with_a_password_is_not_fetched(inline: Inline) -> None:
    with serving(lambda target: MISSING if target == "/robots.txt" else PAGE) as site:
        assert fetch(inline, site.url.replace("://", "://me:hush@")) == []
    inline.assert_failed("user name or password")
    assert "hush" not in repr(inline.job.error_message) + repr(inline.ledger())


def test_what_is_no_address_fails_the_job(inline: Inline) -> None:
    assert fetch(inline, "http://[::1") == []
    inline.assert_failed("is not a web address")


class SharedAddress:
    """Hosts behind one address, one for each port; `most` requests were under way at once, robots.txt left out."""

    def __init__(self, hosts: int) -> None:
        self.most = 0
        self._under_way = 0
        self._lock = threading.Lock()
        self._hosts = [SampleServer(respond=self._respond) for _ in range(hosts)]

    def __enter__(self) -> list[str]:
        for host in self._hosts:
            host.__enter__()
        return [host.url for host in self._hosts]

    def __exit__(self, *_: object) -> None:
        for host in self._hosts:
            host.close()

    def _respond(self, target: str, origin: str) -> SampleAnswer:
        if target == "/robots.txt":
            return MISSING
        with self._lock:
            self._under_way += 1
            self.most = max(self.most, self._under_way)
        time.sleep(0.2)  # long enough for the others to come at the same time, if they did
        with self._lock:
            self._under_way -= 1
        return SampleAnswer(200, "application/xml", f"<urlset><url><loc>{origin}/a</loc></url></urlset>".encode())


@pytest.mark.parametrize("kind", ["page", "map"])
def test_hosts_that_share_an_address_share_its_limit(inline: Inline, kind: str) -> None:
    shared = SharedAddress(6)
    with shared as urls:
        asked = [f"{url}sitemap.xml" for url in urls]
        found = inline.run(kind, urls=asked, speed="polite", delay=0, allow_private=["127.0.0.0/8"])
    assert len(found) == 6
    assert all(each.success for each in found)
    assert shared.most == 2


def test_a_host_that_fails_too_often_in_a_row_is_given_up(inline: Inline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "TUNING", msgspec.structs.replace(page.TUNING, give_up_after=3))

    def respond(target: str) -> SampleAnswer:
        if target == "/robots.txt":
            return MISSING
        raise ConnectionAbortedError

    with serving(respond) as site, serving(lambda target: MISSING if target == "/robots.txt" else PAGE) as other:
        found = fetch(inline, *(f"{site.url}{number}" for number in range(20)), other.url, speed="polite", delay=0)
        assert 3 <= len([path for path in site.requests if path != "/robots.txt"]) < 20
    assert [each.success for each in found].count(True) == 1
    reasons = [each.metadata["error"] for each in found if not each.success]
    assert reasons.count("host_unavailable") >= 17
    assert len(inline.ledger()) == 21, "one row and one result for each URL that was asked for"


@pytest.mark.parametrize("kind", ["xml", "feed", "noindex"])
def test_who_asks_by_name_gets_what_a_crawl_leaves_out(inline: Inline, kind: str) -> None:
    answers = {
        "xml": SampleAnswer(200, "application/xml", b"<?xml version='1.0'?><notes><note>Words</note></notes>"),
        "feed": SampleAnswer(200, "application/rss+xml", b"<rss><channel><title>Words</title></channel></rss>"),
        "noindex": SampleAnswer(200, HTML, b"<meta name=robots content=noindex><title>T</title><p>Words"),
    }
    with serving(lambda target: MISSING if target == "/robots.txt" else answers[kind]) as site:
        (found,) = fetch(inline, site.url)
    assert found.success
    assert "Words" in found.data["markdown"]


def test_the_chain_of_redirects_stays_within_one_row_whatever_fails_on_the_way(inline: Inline) -> None:
    answers = {"/2": [BUSY, SampleAnswer(302, HTML, b"", "/3")], "/3": [BUSY, BUSY, PAGE]}

    def respond(target: str) -> SampleAnswer:
        if target == "/1":
            return SampleAnswer(302, HTML, b"", "/2")
        return answers[target].pop(0) if target in answers else MISSING

    with serving(respond) as site:
        (found,) = fetch(inline, f"{site.url}1")
        assert [path for path in site.requests if path != "/robots.txt"] == ["/1", "/2", "/2", "/3", "/3", "/3"]
    (row,) = inline.ledger()
    assert (row.url, row.state, row.detail) == (f"{site.url}1", "done", None)
    assert found.metadata["redirected_from"] == [f"{site.url}1", f"{site.url}2"]
    assert found.final_url == f"{site.url}3"

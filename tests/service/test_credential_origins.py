"""Headers and cookies of a job stay with the origins that its user gave them for, also when failed URLs are retried."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from silkline.api.requeue import requeue
from silkline.api.web.again import completed_by, repeated
from silkline.api.web.forms import posted_job
from silkline.errors import SpecError
from silkline.model.job import NewJob, Status
from silkline.model.ledger import FAILED, Checkpoint, NewUrl, Settled
from silkline.model.spec import PageSpec, validate
from silkline.model.url import url_key
from silkline.sample.server import SampleServer
from silkline.sample.site import SampleAnswer
from silkline.store import jobs, urls
from tests.support.inline import Inline

HTML = "text/html"
SECRET: dict[str, Any] = {"headers": {"Authorization": "Bearer tok"}, "cookies": {"sid": "1"}}
LOCAL: dict[str, Any] = {"allow_private": ["127.0.0.1"], "speed": "max"}


class Web:
    """Our site, and a host that it only links to, which has no page. robots.txt names a sitemap of the other host.

    Our own page `/gone` is there again when it is asked for a second time, so that the first retry completes.
    """

    def __init__(self, sites: ExitStack) -> None:
        self._missed: set[str] = set()
        self.other = sites.enter_context(SampleServer(respond=lambda target, origin: SampleAnswer(404, "", b"")))
        self.own = sites.enter_context(SampleServer(respond=self._answer))

    def _answer(self, target: str, origin: str) -> SampleAnswer:
        maps = f"Sitemap: {self.other.url}map.xml\nSitemap: {origin}/gone.xml\nSitemap: {origin}/map.xml"
        links = f'<a href="{self.other.url}gone">other</a><a href="{origin}/gone">own</a>'
        listed = f"<urlset><url><loc>{origin}/</loc></url></urlset>"
        pages = {"/": (HTML, links), "/robots.txt": ("text/plain", maps), "/map.xml": ("application/xml", listed)}
        if target == "/gone" and target in self._missed:
            return SampleAnswer(200, HTML, b"here again")
        self._missed.add(target)
        kind, text = pages.get(target, (HTML, ""))
        return SampleAnswer(200 if target in pages else 404, kind, text.encode())

    def told(self, server: SampleServer) -> list[bool]:
        """For each request: whether it had the header and the cookie. Never only one of the two."""
        found = [("Authorization" in each, "Cookie" in each) for each in server.headers]
        assert all(header == cookie for header, cookie in found)
        return [header for header, _ in found]


@pytest.fixture
def inline(tmp_path: Path) -> Iterator[Inline]:
    with closing(Inline(tmp_path)) as place:
        yield place


@pytest.fixture
def web() -> Iterator[Web]:
    with ExitStack() as sites:
        yield Web(sites)


@pytest.mark.parametrize(
    ("kind", "more"),
    [("site", {"scope": "any"}), ("map", {}), ("map", {"links": True})],
    ids=["site", "map", "map with links"],
)
def test_a_retry_sends_credentials_only_to_the_origins_of_the_first_job(
    inline: Inline, web: Web, kind: str, more: dict[str, Any]
) -> None:
    inline.run(kind, url=web.own.url, **SECRET, **LOCAL, **more)
    assert any(web.told(web.own))
    first, reached = inline.job, False
    for _ in range(3):  # later retries have only URLs of the other host
        inline.job = requeue(inline.database, inline.job, "http_404")
        inline.go_on()
        reached = reached or bool(web.other.headers)
        assert not any(web.told(web.other))
    assert inline.job.id != first.id
    assert inline.job.payload["headers_for"] == [web.own.url.rstrip("/")]
    assert reached


def test_a_job_whose_credentials_are_for_no_origin_stays_so(inline: Inline, web: Web) -> None:
    """Such as a crawl from a seeds file by an older Silkline: no origin is not the same as every origin."""
    inline.run("page", urls=[web.own.url, f"{web.other.url}gone"], headers_for=[], **SECRET, **LOCAL)
    inline.job = requeue(inline.database, inline.job, "http_404")
    inline.go_on()
    assert inline.job.payload["headers_for"] == []
    assert web.own.headers
    assert web.other.headers
    assert not any(web.told(web.own) + web.told(web.other))


def test_the_user_may_name_the_origins(inline: Inline, web: Web) -> None:
    inline.run("page", url=f"{web.own.url}gone", headers_for=[web.other.url.rstrip("/")], **SECRET, **LOCAL)
    assert web.own.headers
    assert not any(web.told(web.own))


@pytest.mark.parametrize("text", ["example.com", "https://example.com/", "https://u:p@example.com", "ftp://a.test", ""])
def test_only_origins_are_accepted(text: str) -> None:
    with pytest.raises(SpecError, match="is not an origin such as"):
        validate(PageSpec, {"url": "https://example.com/", "headers_for": [text]})


@pytest.mark.parametrize(("failed", "kept"), [("https://a.test/2", True), ("https://b.test/1", False)])
def test_a_plugin_gets_credentials_only_for_its_own_origins(inline: Inline, failed: str, kept: bool) -> None:
    new = NewJob("plugin", {"url": "https://a.test/", "headers": {"X": "1"}, "mine": 5})
    jobs.enqueue(inline.database, new)
    (job,) = jobs.claim(inline.database, "w", "here", ["plugin"], 1)
    found = [NewUrl(1, url_key(failed), failed, "x.test", 0)]
    urls.record(inline.database, job, Checkpoint(found=found, settled=[Settled(1, FAILED, "timeout", None, 1)]))
    again = requeue(inline.database, replace(job, status=Status.COMPLETED), "timeout")
    assert ("headers" in again.payload) is kept
    assert again.payload["mine"] == 5


def test_repeating_a_job_adds_no_origin(inline: Inline) -> None:
    """A user of the page may repeat a job whose secrets they cannot see."""
    payload = {"url": "https://a.test/", "headers": {"X": "1"}, "headers_for": ["https://a.test"]}
    job = jobs.enqueue(inline.database, NewJob("page", payload))[0]
    assert repeated(job, inline.settings).payload["headers_for"] == ["https://a.test"]
    form = {"kind": "page", "url": "https://a.test/", "headers_for": "https://evil.test"}
    same = completed_by(job, posted_job(form))
    assert (same["headers"], same["headers_for"]) == ({"X": "1"}, ["https://a.test"])
    other = completed_by(job, posted_job({**form, "url": "https://evil.test/", "headers": "Y: 2"}))
    assert other["headers"] == {"Y": "2"}
    assert "headers_for" not in other

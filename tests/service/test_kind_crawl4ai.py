"""Pages handed to crawl4ai: a stand-in with its documented face, since the real one brings a browser of its own."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.inline import Inline

PUBLIC = "http://93.184.215.14"
STAND_IN = """
from types import SimpleNamespace as Thing

class BrowserConfig:
    def __init__(self, headless, verbose, cdp_url=None): asked.append(f"browser {cdp_url}") if cdp_url else None
class CrawlerRunConfig:
    def __init__(self, check_robots_txt, verbose): self.check_robots_txt = check_robots_txt
class AsyncWebCrawler:
    def __init__(self, config): pass
    async def __aenter__(self):
        if fault: raise RuntimeError("Executable doesn't exist\\nrun this or that")
        return self
    async def __aexit__(self, *_): asked.append("closed")
    async def arun(self, url, config):
        assert config.check_robots_txt
        asked.append(url)
        if url.endswith("/crash"): raise RuntimeError("the browser died")
        if url.endswith("/robots"): return page(url, success=False, error_message="Access denied by robots.txt")
        if url.endswith("/404"): return page(url, status_code=404)
        if url.endswith("/lost"): return page(url, status_code=302, redirected_status_code=404)
        if url.endswith("/inward"): return page(url, redirected_url="http://127.0.0.1/admin")
        return page(url, redirected_url=url + "/landed")
asked, fault = [], []
def page(url, **more):
    html = "<title>Rendered</title><p>Some text</p><a href=/x>x</a>"
    markdown = Thing(raw_markdown="menu\\n\\n# Rendered", fit_markdown="# Rendered")
    usual = dict(url=url, success=True, status_code=200, error_message=None, html=html, markdown=markdown,
                 metadata={"title": "Rendered", "description": None}, redirected_url=None,
                 redirected_status_code=None)
    return Thing(**{**usual, **more})
"""


@pytest.fixture
def inline(tmp_path: Path) -> Iterator[Inline]:
    inline = Inline(tmp_path)
    yield inline
    inline.close()


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    (tmp_path / "crawl4ai.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(tmp_path)
    import crawl4ai

    yield crawl4ai.asked
    sys.modules.pop("crawl4ai", None)


def test_without_it(inline: Inline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "crawl4ai", None)
    inline.run("crawl4ai", url="https://example.com/")
    inline.assert_failed("crawl4ai is not installed", "use `page`")


@pytest.mark.parametrize(
    ("content", "field", "text"),
    [("markdown", "markdown", "# Rendered"), ("full", "markdown", "menu\n\n# Rendered"), ("text", "text", "Some text")],
)
def test_a_page_looks_like_any_other(inline: Inline, asked: list[str], content: str, field: str, text: str) -> None:
    (found,) = inline.run("crawl4ai", url=f"{PUBLIC}/a", content=content)
    assert inline.job.status == "completed", inline.job
    assert (found.original_url, found.final_url, found.success) == (f"{PUBLIC}/a", f"{PUBLIC}/a/landed", True)
    assert found.data["title"] == "Rendered"
    assert text in found.data[field]
    assert (found.metadata["http_status"], found.metadata["rendered"]) == (200, True)
    assert asked == [f"{PUBLIC}/a", "closed"]


def test_why_there_is_no_page(inline: Inline, asked: list[str]) -> None:
    paths = ("crash", "robots", "404", "lost", "inward", "fine")
    found = inline.run("crawl4ai", urls=[f"{PUBLIC}/{path}" for path in paths] + ["http://127.0.0.1:9/secret"])
    assert [each.metadata.get("error") for each in found] == [
        *("render_failed", "robots", "http_404", "http_404", "address_blocked", None, "address_blocked")
    ]
    assert "http://127.0.0.1:9/secret" not in asked, "a private address is never handed over"
    assert [url.state for url in inline.ledger()] == ["failed", "skipped", *["failed"] * 3, "done", "failed"]


def test_a_browser_that_runs_elsewhere_and_addresses_that_are_allowed(inline: Inline, asked: list[str]) -> None:
    inline.change_settings(renderer_url="http://127.0.0.1:9222")
    own = "http://127.0.0.1:8080/own"
    (found,) = inline.run("crawl4ai", url=own, allow_private=["127.0.0.1/32:8080"])
    assert found.success, found
    assert asked == ["browser http://127.0.0.1:9222", own, "closed"]


@pytest.mark.parametrize(
    ("there", "words"),
    [("", "`playwright install chromium`"), ("http://127.0.0.1:9222", "the browser at http://127.0.0.1:9222")],
)
def test_no_browser(inline: Inline, asked: list[str], there: str, words: str) -> None:
    inline.change_settings(renderer_url=there)
    sys.modules["crawl4ai"].fault.append("no browser")
    inline.run("crawl4ai", url=f"{PUBLIC}/a")
    inline.assert_failed("Executable doesn't exist", words)
    assert "this or that" not in (inline.job.error_message or "")

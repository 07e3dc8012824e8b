"""The kind `crawl4ai`: fetches pages with crawl4ai and its browser, if that is installed. Results look like those of
`page`.

Our guard checks each address before crawl4ai gets it, and again the final address. The requests in between are not
checked, so a machine with a private network to protect should not offer this kind.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from typing import Any, Final

import msgspec

from silkline.crawl.plan import PACES
from silkline.crawl.single_turn import wait_for_turn
from silkline.errors import Permanent, Temporary
from silkline.fetch.dns import SystemResolver
from silkline.fetch.guard import Guard, parse_exemption
from silkline.fetch.origin import locate
from silkline.model import fetched as reasons
from silkline.model.job import End
from silkline.model.kind import Context
from silkline.model.ledger import DONE, FAILED, SKIPPED, Checkpoint, NewResult, NewUrl, QueuedUrl, Settled
from silkline.model.page import Wanted
from silkline.model.spec import Crawl4aiSpec
from silkline.model.url import canonical, host_of, url_key
from silkline.parse.html import parse_page
from silkline.store import urls

RENDER_FAILED: Final = "render_failed"
_LOOK: Final = 0.25
_DELAY: Final = PACES["normal"].delay
_encode = msgspec.json.Encoder().encode


def run(context: Context[Crawl4aiSpec]) -> End | None:
    # By default it writes to the home directory, and an advertisement into the log of the job.
    os.environ.setdefault("CRAWL4_AI_BASE_DIRECTORY", context.settings.data)
    os.environ.setdefault("CRAWL4AI_NO_CLOUD_NOTICE", "1")
    try:
        import crawl4ai  # type: ignore[import-not-found]
    except ImportError as error:
        raise Permanent(
            "crawl4ai is not installed here: pip install crawl4ai && playwright install chromium, or use `page`"
        ) from error
    return asyncio.run(_work(context, crawl4ai))


async def _work(context: Context[Crawl4aiSpec], crawl4ai: Any) -> End | None:
    progress, spec = context.progress, context.spec
    if not urls.last_id(progress.database, progress.job.id):
        addresses = dict.fromkeys(canonical(url) or url for url in spec.all_urls())
        rows = [NewUrl(id, url_key(url), url, _host(url), 0) for id, url in enumerate(addresses, 1)]
        progress.record(Checkpoint(found=rows))
    there = context.settings.renderer_url
    browser = crawl4ai.BrowserConfig(headless=True, verbose=False, **({"cdp_url": there} if there else {}))
    async with AsyncExitStack() as stack:
        try:
            crawler = await stack.enter_async_context(crawl4ai.AsyncWebCrawler(config=browser))
        except Exception as error:  # any error of its browser library
            raise _no_browser(there, error) from error
        delegate = Delegate(context, crawler, crawl4ai.CrawlerRunConfig(check_robots_txt=True, verbose=False))
        try:
            while waiting := urls.queued(progress.database, progress.job.id, wanted=100):
                for row in waiting:
                    if not await delegate.fetch(row):
                        return context.control.order
        finally:
            delegate.close()
    return None


def _no_browser(there: str, error: Exception) -> Permanent | Temporary:
    said = (str(error).strip() or type(error).__name__).splitlines()[0][:300]
    if there:
        return Temporary(f"crawl4ai cannot use the browser at {there}: {said}")
    advice = "run `playwright install chromium`, or name a browser that runs already with the setting renderer_url"
    return Permanent(f"crawl4ai cannot start its browser ({said}): {advice}")


class Delegate:
    """Passes pages to crawl4ai, one after the other."""

    def __init__(self, context: Context[Crawl4aiSpec], crawler: Any, how: Any) -> None:
        self._context = context
        self._spec = context.spec
        self._crawler = crawler
        self._how = how
        self._guard = Guard(map(parse_exemption, self._spec.allow_private))
        self._resolver = SystemResolver()

    async def fetch(self, row: QueuedUrl) -> bool:
        """Fetch and settle one page. False: an order arrived first."""
        refused = await self._refusal(row.url)
        if refused is not None:
            self._fail(row, FAILED, refused, "")
            return True
        control = self._context.control
        if not await wait_for_turn(self._context.progress, _host(row.url), _DELAY, lambda: bool(control.order)):
            return False
        asking = asyncio.ensure_future(self._crawler.arun(row.url, config=self._how))
        while not (await asyncio.wait({asking}, timeout=_LOOK))[0]:
            self._context.progress.report()
            if self._context.control.order:
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)
                return False
        if asking.exception() is not None:
            self._fail(row, FAILED, RENDER_FAILED, f"crawl4ai: {asking.exception()}")
            return True
        await self._take(row, asking.result())
        return not self._context.control.order

    def close(self) -> None:
        self._resolver.close()

    async def _take(self, row: QueuedUrl, page: Any) -> None:
        landed = canonical(getattr(page, "redirected_url", None) or page.url or "") or row.url
        # `status_code` is that of the first answer. For a redirect it says nothing about the page.
        status = getattr(page, "redirected_status_code", None) or getattr(page, "status_code", None)
        words = str(page.error_message or "")
        if not page.success and "robots.txt" in words.lower():
            self._fail(row, SKIPPED, "robots", words)
        elif not page.success:
            reason = reasons.http_reason(status) if status and status >= 400 else RENDER_FAILED
            self._fail(row, FAILED, reason, words, status)
        elif status and status >= 400:
            self._fail(row, FAILED, reasons.http_reason(status), "", status)
        elif refused := await self._refusal(landed):
            self._fail(row, FAILED, refused, f"the browser landed on {landed}", status)
        else:
            metadata = {"http_status": status, "rendered": True, "content": self._spec.content}
            data = _encode(self._data(page, landed)).decode()
            keys = (url_key(row.url), url_key(landed))
            result = NewResult(row.id, row.url, keys[0], landed, keys[1], data, True, _encode(metadata).decode())
            self._record(Settled(row.id, DONE, None, None, row.attempts + 1, status), result)

    def _data(self, page: Any, landed: str) -> dict[str, Any]:
        """The same fields that `page` stores, with crawl4ai's own Markdown."""
        told = page.metadata or {}
        facts = parse_page((page.html or "").encode(), landed, Wanted(content="text" if self._wants_text else "none"))
        data: dict[str, Any] = {
            "title": told.get("title") or facts.title,
            "description": told.get("description") or "",
            "links": len(facts.links),
            "content_hash": facts.content_hash,
        }
        if self._wants_text:
            data["text"] = facts.text
        elif self._spec.content != "none":
            data["markdown"] = _markdown(page.markdown, full=self._spec.content == "full")
        return data

    @property
    def _wants_text(self) -> bool:
        return self._spec.content == "text"

    async def _refusal(self, url: str) -> str | None:
        """Why this address must not be requested. None: it may."""
        target = locate(url)
        if isinstance(target, str):
            return target
        origin = target.origin
        found = (origin.literal,) if origin.literal else await self._resolver.resolve(origin.host)
        if isinstance(found, str):
            return found
        return next(filter(None, (self._guard.check(address, origin.port) for address in found)), None)

    def _fail(self, row: QueuedUrl, state: str, reason: str, detail: str, status: int | None = None) -> None:
        metadata = {"error": reason, "detail": detail[:1000], "http_status": status}
        settled = Settled(row.id, state, reason, detail[:1000] or None, row.attempts + 1, status)
        key = url_key(row.url)
        self._record(settled, NewResult(row.id, row.url, key, row.url, key, "{}", False, _encode(metadata).decode()))

    def _record(self, settled: Settled, result: NewResult) -> None:
        self._context.progress.record(Checkpoint(settled=[settled], results=[result]))


def _markdown(markdown: Any, *, full: bool) -> str:
    """In old versions a string; in newer ones an object with the whole page and its most relevant part."""
    if isinstance(markdown, str) and not hasattr(markdown, "raw_markdown"):
        return markdown
    whole, fit = getattr(markdown, "raw_markdown", None), getattr(markdown, "fit_markdown", None)
    return str((whole if full else fit or whole) or "")


def _host(url: str) -> str:
    return host_of(url) if canonical(url) else ""

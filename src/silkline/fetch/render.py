"""Renders pages whose scripts must run, in a browser. Each page needs a slot.

The steps of a page: it waits for a slot (render_slots.py), gets a proxy (render_proxy.py) and a context in the browser
(render_page.py), its scripts run, its DOM is read, and the context is removed. The browser is a process of ours
(render_browser.py) or a browser that the operator runs (render_socket.py). It is started for the first page, replaced
after a few hundred pages or when it has died, and closed when it was idle for a while. A page whose browser died is
tried again alone, in a browser of its own: so a page fails only for what it did itself. No exception is raised: every
outcome is a `Fetched`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from silkline.fetch.client import HttpClient
from silkline.fetch.render_browser import BrowserProcess
from silkline.fetch.render_cdp import BrowserGone, CommandRefused, Conversation
from silkline.fetch.render_memory import memory_of, too_large
from silkline.fetch.render_page import PageInBrowser
from silkline.fetch.render_program import WHAT_TO_INSTALL, find_browser
from silkline.fetch.render_proxy import PageProxy, Upstream
from silkline.fetch.render_slots import Slots, SlotTurns, WaitingPage
from silkline.fetch.render_socket import SocketLine
from silkline.fetch.settings import Capture, RenderLimits
from silkline.metrics.instruments import (
    BROWSER_DEATHS,
    BROWSER_PAGES,
    BROWSER_STARTS,
    BROWSER_WAITING,
    RENDER_SECONDS,
)
from silkline.model.fetched import (
    RENDER_BUSY,
    RENDER_CRASHED,
    RENDER_FAILED,
    RENDER_TIMEOUT,
    RENDER_TOO_LARGE,
    RENDERER_MISSING,
    Fetched,
    Rendered,
)
from silkline.model.url import host_of

_START_SECONDS: Final = 60.0
_WATCH_SECONDS: Final = 0.5
_UNWANTED: Final = frozenset({"page", "service_worker", "shared_worker"})
_STALLED: Final = 3  # times that the watch got no answer
_LOOPBACK: Final = "127.0.0.1"
_SPARE_CONNECTIONS: Final = 100
"""For sockets, early connections and second tries, which are no requests of the page for the browser's protocol."""
_LONGEST_REASON: Final = 500
_SECOND_TRY: Final = 0.25
"""Part of the time of a page that did not answer at the end of it. Most of these never will."""
_log: Final = logging.getLogger(__name__)


class NoBrowser(Exception):
    """No browser was found, or it does not start."""


class _BrowserDied(Exception):
    """The browser ended, or did not answer for long. `reason` is for a page that was alone in it."""

    def __init__(self, detail: str, reason: str) -> None:
        super().__init__(detail)
        self.reason = reason


class Browser:
    """A browser and its open pages."""

    def __init__(
        self,
        conversation: Conversation,
        process: BrowserProcess | None,
        line: SocketLine | None,
        limits: RenderLimits,
    ) -> None:
        self.conversation = conversation
        self._limits = limits
        self._process = process
        self._line = line
        self.pages: dict[str, PageInBrowser] = {}
        self.under_way = 0
        self.shown = 0
        self.broken = False
        self.too_large = ""
        """Why the whole browser was killed, if it took too much memory."""
        self.unanswered = 0
        """How often the watch got no answer."""
        self._evicted = 0
        self._death_noted = False
        self._watching = asyncio.ensure_future(self._watch_memory())
        conversation.listen("", self._heard)

    @classmethod
    async def open(cls, url: str, user_agent: str, limits: RenderLimits, *, pictures: bool) -> Browser:
        """Connect to the browser at `url`, or start our own if it is empty. `pictures`: it loads images and fonts."""
        if url:
            conversation = Conversation()
            line = SocketLine(conversation)
            try:
                await line.open(url)
            except BrowserGone as error:
                raise NoBrowser(str(error)) from error
            browser = cls(conversation, None, line, limits)
        else:
            program = find_browser()
            if program is None:
                raise NoBrowser(WHAT_TO_INSTALL)
            process = await BrowserProcess.start(program, user_agent, pictures=pictures)
            BROWSER_STARTS.add()
            browser = cls(process.conversation, process, None, limits)
        try:
            await browser.conversation.ask("Target.setDiscoverTargets", discover=True, seconds=_START_SECONDS)
            # What a page opens waits for us before it sends a request, and is closed.
            await browser.conversation.ask(
                "Target.setAutoAttach",
                autoAttach=True,
                waitForDebuggerOnStart=True,
                flatten=True,
                filter=[{"type": kind} for kind in sorted(_UNWANTED)],
            )
        except (BrowserGone, TimeoutError, CommandRefused) as error:
            browser.close()
            raise NoBrowser(f"the browser does not start: {error!r}") from error
        except BaseException:
            browser.close()
            raise
        return browser

    @property
    def ends(self) -> tuple[str, str, int | None]:
        """The address where a proxy for this browser listens, the address from which the browser connects, and its
        user. None: it runs on another machine or in a container, so its user is not known."""
        if self._line is not None:
            return self._line.local, self._line.peer, self._line.user
        return _LOOPBACK, _LOOPBACK, os.geteuid()

    @property
    def usable(self) -> bool:
        return not self.broken and not self.conversation.gone.is_set()

    def note_death(self) -> None:
        """It can no longer be used, though nobody closed it. Counted once."""
        if not self._death_noted:
            self._death_noted = True
            BROWSER_DEATHS.add()

    def close(self) -> None:
        """Close the browser and all its pages at once."""
        self.broken = True
        self._watching.cancel()
        for page in self.pages.values():
            page.close()
        if self._process is not None:
            self._process.close()
        else:
            self.conversation.close()

    def _heard(self, method: str, params: dict[str, Any]) -> None:
        if method == "Target.targetCreated":
            target = params["targetInfo"]
            if target["type"] != "page" and self._is_unwanted(target):
                self.conversation.say("Target.closeTarget", targetId=target["targetId"])
        elif method == "Target.attachedToTarget":
            if params["waitingForDebugger"]:
                self._go_on(params["sessionId"], params["targetInfo"])
        elif method == "Target.targetCrashed":
            for page in self.pages.values():
                if page.target == params["targetId"]:
                    page.died(too_large=self._evicted > 0)
                    self._evicted = max(0, self._evicted - 1)

    def _go_on(self, session: str, target: dict[str, Any]) -> None:
        """End the wait of a new page. The page that opened it waits too, so one that is unwanted must also run, but all
        its requests are held."""
        say = self.conversation.say
        if self._is_unwanted(target):
            say("Fetch.enable", session, patterns=[{"urlPattern": "*"}])
            say("Runtime.runIfWaitingForDebugger", session)
            say("Target.closeTarget", targetId=target["targetId"])
        else:
            say("Runtime.runIfWaitingForDebugger", session)
            say("Target.detachFromTarget", sessionId=session)

    def _is_unwanted(self, target: dict[str, Any]) -> bool:
        """Whether one of our pages has opened this."""
        owner = self.pages.get(target.get("browserContextId", ""))
        return owner is not None and target["targetId"] != owner.target and target["type"] in _UNWANTED

    async def _watch_memory(self) -> None:
        """Kill page processes, or the browser, if they use too much memory, so that they do not make the job fail."""
        kinds: dict[int, str] = {}
        while self._process is not None and not self.conversation.gone.is_set():
            await asyncio.sleep(_WATCH_SECONDS)
            if not self.under_way:
                continue
            # A browser without memory or time may not answer. Then look at the processes that it had before.
            try:
                found = await self.conversation.ask("SystemInfo.getProcessInfo", seconds=_WATCH_SECONDS)
                kinds = {each["id"]: each["type"] for each in found["processInfo"]}
            except TimeoutError:
                self.unanswered += 1
            except (CommandRefused, BrowserGone, KeyError, TypeError):
                continue
            large = too_large(kinds, {pid: memory_of(pid) for pid in kinds}, self.under_way, self._limits)
            self._evicted += sum(map(self._process.end, large.pages))
            if large.browser and not self.conversation.gone.is_set():
                self.too_large = large.browser
                self._process.kill()


class Renderer:
    """Renders pages for one process. Must be created and used inside a running event loop.

    With `fallback`, a page that cannot be rendered is returned as it was fetched, with a note. Without it, the page has
    failed. Pages of the same `job` share their turns with other jobs; `turns` is the order of this process's pages.
    """

    def __init__(
        self,
        client: HttpClient,
        *,
        places: Path,
        count: int,
        turns: SlotTurns,
        url: str = "",
        job: str = "",
        fallback: bool,
        limits: RenderLimits,
        wanted: Capture | None = None,
    ) -> None:
        self._client = client
        self._wanted = wanted if wanted is not None and wanted.anything else None
        self._slots = Slots(places, count, turns, job)
        self._url = url
        self._fallback = fallback
        self._limits = limits
        self._upstream = Upstream(client.settings.proxy) if client.settings.proxy else None
        self._browser: Browser | None = None
        self._retired: set[Browser] = set()
        self._starting = asyncio.Lock()
        self._alone = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None
        self._closed = False

    async def render(self, fetched: Fetched, waiting: WaitingPage | None = None) -> Fetched:
        """The page after its scripts have run; or with `location` if they open another URL."""
        began = time.perf_counter()
        rendered = await self._render(fetched, waiting or WaitingPage(host_of(fetched.url)))
        RENDER_SECONDS.observe(time.perf_counter() - began)
        failed = rendered.rendered is not None and rendered.rendered.reason is not None
        BROWSER_PAGES.add(1, "failed" if failed else "rendered")
        return rendered

    async def _render(self, fetched: Fetched, waiting: WaitingPage) -> Fetched:
        try:
            async with self._waiting_for_slot(waiting):
                return await self._try(fetched)
        except TimeoutError:
            return self._failed(fetched, RENDER_BUSY, "no slot in a browser became free in time")
        except OSError as error:  # the disk is full, or no file descriptor is free
            return self._failed(fetched, RENDER_FAILED, str(error))
        except Exception as error:  # only this page fails, whatever it made of the browser's answers
            _log.exception("a page could not be rendered")
            return self._failed(fetched, RENDER_FAILED, repr(error)[:_LONGEST_REASON])

    @contextlib.asynccontextmanager
    async def _waiting_for_slot(self, waiting: WaitingPage) -> AsyncIterator[None]:
        """Hold a slot while the body runs, and show until then that a page waits."""
        BROWSER_WAITING.add(1)
        waits = True
        try:
            async with self._slots.one(waiting, self._limits.wait_seconds):
                waits = False
                BROWSER_WAITING.add(-1)
                yield
        finally:
            if waits:
                BROWSER_WAITING.add(-1)

    def close(self) -> None:
        """Close every browser with its pages."""
        self._closed = True
        if self._idle is not None:
            self._idle.cancel()
        for browser in (*self._retired, *((self._browser,) if self._browser is not None else ())):
            browser.close()
        self._browser = None
        self._retired.clear()

    async def _try(self, fetched: Fetched) -> Fetched:
        """Render the page. Try again alone if the browser died: another page may have caused that. Try again once if
        the process of the page died. Try again in real time, for a short time, if the page did not end: it may wait for
        its clock, which stands still while a script runs."""
        alone = crashed = real_time = False
        while True:
            try:
                show = self._show_alone if alone else self._show_beside_others
                rendered, page = await show(fetched, real_time=real_time)
            except NoBrowser as error:
                return self._failed(fetched, RENDERER_MISSING, str(error))
            except _BrowserDied as died:
                if alone:
                    return self._failed(fetched, died.reason, str(died))
                alone = True
                continue
            if page.location:
                return msgspec.structs.replace(fetched, location=page.location)
            if rendered.reason is None:
                return msgspec.structs.replace(fetched, rendered=rendered)
            if rendered.reason == RENDER_TIMEOUT and page.had_virtual_time and not real_time:
                real_time = True
            elif rendered.reason == RENDER_CRASHED and not crashed:
                crashed = True
            else:
                return self._failed(fetched, rendered.reason, rendered.detail, rendered)

    async def _show_beside_others(self, fetched: Fetched, *, real_time: bool) -> tuple[Rendered, PageInBrowser]:
        return await self._show(await self._get_browser(), fetched, real_time=real_time)

    async def _show_alone(self, fetched: Fetched, *, real_time: bool) -> tuple[Rendered, PageInBrowser]:
        """Show the page in a new browser that no other page uses. One at a time, because each needs much memory."""
        async with self._alone:
            browser = await self._open()
            self._retired.add(browser)
            return await self._show(browser, fetched, real_time=real_time)

    async def _show(self, browser: Browser, fetched: Fetched, *, real_time: bool) -> tuple[Rendered, PageInBrowser]:
        client, limits = self._client, self._limits
        if real_time:
            limits = replace(limits, seconds=limits.seconds * _SECOND_TRY)
        most = limits.max_requests + _SPARE_CONNECTIONS
        proxy = PageProxy(client.guard, client.resolver, self._upstream, limits.max_bytes, most)
        wanted = self._wanted
        page = PageInBrowser(browser.conversation, fetched, limits, proxy, wanted=wanted, real_time=real_time)
        browser.under_way += 1
        browser.shown += 1
        unanswered = browser.unanswered
        try:
            await proxy.open(*browser.ends)
            await page.open()
            browser.pages[page.context] = page
            rendered = await page.show(client.settings.user_agent, client.settings.accept_language.partition(",")[0])
            if rendered.reason == RENDER_TIMEOUT:
                if browser.unanswered - unanswered >= _STALLED:  # so the page may not be what took the time
                    raise _BrowserDied(rendered.detail, RENDER_TIMEOUT)
                browser.broken = browser.broken or not await self._end(page)
            return rendered, page
        except BrowserGone as error:
            reason = RENDER_TOO_LARGE if browser.too_large else RENDER_CRASHED
            raise _BrowserDied(browser.too_large or str(error) or "the browser ended", reason) from error
        except (TimeoutError, CommandRefused) as error:
            browser.broken = True
            raise _BrowserDied(f"the browser no longer answers: {error!r}", RENDER_CRASHED) from error
        finally:
            page.close()
            proxy.close()
            browser.pages.pop(page.context, None)
            browser.under_way -= 1
            self._let_go(browser)

    async def _end(self, page: PageInBrowser) -> bool:
        """Whether a page that hangs could be closed. If not, the browser is not used again."""
        try:
            await page.dispose()
        except (TimeoutError, CommandRefused):
            return False
        return True

    # Start and close browsers.

    async def _get_browser(self) -> Browser:
        async with self._starting:
            if self._idle is not None:
                self._idle.cancel()
                self._idle = None
            current = self._browser
            if current is not None and (not current.usable or current.shown >= self._limits.pages_per_browser):
                if not current.usable:
                    current.note_death()
                self._browser = None
                self._retired.add(current)
                self._let_go(current)
                current = None
            if current is None:
                current = self._browser = await self._open()
            return current

    async def _open(self) -> Browser:
        agent, pictures = self._client.settings.user_agent, self._wanted is not None
        browser = await Browser.open(self._url, agent, self._limits, pictures=pictures)
        if self._closed:
            browser.close()
            raise NoBrowser("the renderer is closed")
        return browser

    def _let_go(self, browser: Browser) -> None:
        """Close a browser without pages: now if it is not used again, else after the idle time."""
        if browser.under_way:
            return
        if browser in self._retired:
            self._retired.discard(browser)
            if not browser.usable:
                browser.note_death()
            browser.close()
        elif browser is self._browser and not browser.usable:
            self._browser = None
            browser.note_death()
            browser.close()
        elif browser is self._browser and not self._closed:
            if self._idle is not None:
                self._idle.cancel()
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(self._limits.idle_seconds, self._rest, browser)

    def _rest(self, browser: Browser) -> None:
        if browser is self._browser and not browser.under_way:
            self._browser = None
            browser.close()

    def _failed(self, fetched: Fetched, reason: str, detail: str, rendered: Rendered | None = None) -> Fetched:
        noted = rendered or Rendered(fetched.url, reason=reason, detail=detail)
        if self._fallback:
            return msgspec.structs.replace(fetched, rendered=noted)
        return msgspec.structs.replace(fetched, reason=reason, detail=detail, rendered=noted)

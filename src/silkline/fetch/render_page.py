"""One page in a browser: loads the fetched document, waits until its scripts are quiet, and reads the DOM.

The page gets its own context (cookies, storage, cache, process) and its own proxy; both are removed with it. The
document is not requested again: the browser gets the body that our client fetched. If a script opens another page, this
counts as a redirect, and the caller decides whether to follow it.
"""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from collections.abc import Mapping
from secrets import token_hex
from typing import Any, Final

from silkline.fetch.render_budget import MessageBudget
from silkline.fetch.render_capture import capture
from silkline.fetch.render_cdp import BrowserGone, CommandRefused, Conversation
from silkline.fetch.render_credentials import Credentials
from silkline.fetch.render_messages import SHORT
from silkline.fetch.render_proxy import PageProxy
from silkline.fetch.render_scripts import PREPARE, PROBE, SNAPSHOT
from silkline.fetch.render_settling import Settling
from silkline.fetch.render_world import IsolatedWorld
from silkline.fetch.settings import Capture, RenderLimits, is_header_name
from silkline.model.fetched import (
    RENDER_CRASHED,
    RENDER_FAILED,
    RENDER_REFUSED,
    RENDER_TIMEOUT,
    RENDER_TOO_LARGE,
    Fetched,
    PageFile,
    Rendered,
)
from silkline.model.url import canonical

_BLOCKED: Final = frozenset(
    {"Image", "Media", "Font", "TextTrack", "Ping", "CSPViolationReport", "Prefetch", "Manifest", "Other"}
)
# A screenshot or a PDF shows these.
_SHOWN: Final = frozenset({"Image", "Font"})
# These requests may never end, so the page does not wait for them.
_ENDLESS: Final = frozenset({"EventSource", "WebSocket", "Media", "Ping"})
# The body is already decoded, and the browser must show the page, not save it.
_NOT_HANDED_ON: Final = frozenset(
    {
        *("content-encoding", "content-length", "transfer-encoding", "content-disposition", "connection", "keep-alive"),
        *("strict-transport-security", "alt-svc", "refresh", "report-to", "nel", "reporting-endpoints"),
        "speculation-rules",
    }
)
# Splits cookies that were joined to one line: at a comma followed by a name and `=`. The comma of a date has no such
# text after it.
_COOKIES: Final = re.compile(r",\s*(?=[!#$%&'*+.^_`|~0-9A-Za-z-]+=)")
# Files that a browser saves to disk without leaving the page.
_FILE: Final = re.compile(
    r"\.(?:zip|gz|tgz|bz2|xz|7z|rar|dmg|exe|msi|deb|rpm|apk|iso|jar|csv|xlsx?|docx?|mp3|mp4)(?:\?|$)", re.I
)
_LONGEST_REASON: Final = 500
_BYTES_PER_CHARACTER: Final = 6  # at most, in JSON: `\\u4e00`
_VIEW: Final = {"width": 1280, "height": 2400}  # tall, so that content that loads on scrolling is loaded


class PageInBrowser:
    """Valid from `open` to `close`. `location` is the URL that a script wants to open."""

    def __init__(
        self,
        conversation: Conversation,
        fetched: Fetched,
        limits: RenderLimits,
        proxy: PageProxy,
        *,
        wanted: Capture | None = None,
        real_time: bool = False,
    ) -> None:
        self._talk = conversation
        self._page = fetched
        self._limits = limits
        self._proxy = proxy
        self._wanted = wanted
        self._blocked = _BLOCKED if wanted is None else _BLOCKED - _SHOWN
        self._name = token_hex(8)
        self._world = IsolatedWorld(conversation, self._name)
        probe = f"({PROBE})({self._name!r})"
        self._settling = Settling(conversation, limits, self._world, probe, real_time=real_time)
        self._budget = MessageBudget(limits.max_events, self._flooded)
        self._credentials = Credentials(fetched.url, limits.origin_headers)
        self._address = canonical(fetched.url) or fetched.url
        self._loop = asyncio.get_running_loop()
        self._handed = False
        self._handing: asyncio.Task[None] | None = None
        self._refused: str | None = None
        self._reloads = 0
        self._cut: set[str] = set()
        self._session = ""
        self.context = ""
        self.target = ""
        self.location = ""
        self.crashed = False
        self._too_large = ""
        self.requests = 0

    async def open(self) -> None:
        """Create a context with an empty page."""
        ask = self._talk.ask
        made = await ask(
            "Target.createBrowserContext",
            proxyServer=self._proxy.address,
            proxyBypassList="<-loopback>",
            disposeOnDetach=True,
        )
        self.context = made["browserContextId"]
        self._talk.charge(self.context, self._budget)
        self._talk.say("Browser.setDownloadBehavior", behavior="deny", browserContextId=self.context)
        made = await ask("Target.createTarget", url="about:blank", browserContextId=self.context, **_VIEW)
        self.target = self._world.frame = self._credentials.frame = made["targetId"]
        made = await ask("Target.attachToTarget", targetId=self.target, flatten=True)
        self._session = made["sessionId"]
        self._settling.session = self._world.session = self._session
        self._talk.charge(self._session, self._budget)
        self._talk.listen(self._session, self._heard)

    async def show(self, user_agent: str, language: str) -> Rendered:
        """Run the scripts of the page and read its DOM. Raises `BrowserGone` if the browser ends."""
        say, session = self._talk.say, self._session
        say("Page.enable", session)
        # Events without the bodies of requests; 0 would mean no limit. Those of Fetch have them always.
        say("Network.enable", session, maxTotalBufferSize=0, maxResourceBufferSize=0, maxPostDataSize=1)
        say("Network.setBypassServiceWorker", session, bypass=True)
        say("Page.setPrerenderingAllowed", session, isAllowed=False)
        say("Emulation.setUserAgentOverride", session, userAgent=user_agent, acceptLanguage=language)
        say("Fetch.enable", session, patterns=[{"urlPattern": "*"}])
        await self._talk.ask("Page.addScriptToEvaluateOnNewDocument", session, source=f"({PREPARE})({self._name!r})")
        started = self._loop.time()
        say("Page.navigate", session, url=self._page.url)
        if not await self._settling.wait(started + self._limits.seconds, self._is_over):
            self._cut.add("time")
        rendered = await self._outcome()
        files: tuple[PageFile, ...] = ()
        if self._wanted is not None and "html" in rendered:
            files = await capture(self._talk, session, self._wanted, _VIEW["width"])
        return Rendered(
            url=rendered.get("url") or self._page.url,
            body=rendered.get("html", "").encode("utf-8", "replace"),
            reason=rendered.get("reason"),
            detail=rendered.get("detail", ""),
            seconds=self._loop.time() - started,
            requests=self.requests,
            wire_bytes=self._proxy.bytes,
            cut=tuple(sorted(self._cut | self._proxy.cut)),
            files=files,
        )

    def close(self) -> None:
        """Remove the context with all its data."""
        self._talk.listen(self._session, None)
        for name in (self._session, self.context):
            self._talk.charge(name, None)
        if self._handing is not None:
            self._handing.cancel()
        if self.context:
            self._talk.say("Target.disposeBrowserContext", browserContextId=self.context)

    async def dispose(self) -> None:
        """Remove the context and wait until it is removed."""
        await self._talk.ask("Target.disposeBrowserContext", browserContextId=self.context)

    @property
    def had_virtual_time(self) -> bool:
        return self._settling.virtual

    def _is_over(self) -> bool:
        return bool(self.location) or self.crashed or self._refused is not None or self._budget.spent

    async def _outcome(self) -> dict[str, Any]:
        if self.location:
            return {}
        if self.crashed or self._budget.spent:
            return self._crash()
        if self._refused is not None:
            return {"reason": RENDER_REFUSED, "detail": self._refused}
        return await self._snapshot()

    async def _snapshot(self) -> dict[str, Any]:
        """The DOM, serialized by our script."""
        limits = self._limits
        script, longest = f"({SNAPSHOT})({limits.max_dom})", _BYTES_PER_CHARACTER * 2 * limits.max_dom + SHORT
        try:
            found = await self._world.run(script, limits.snapshot_seconds, longest)
        except TimeoutError:
            return {"reason": RENDER_TIMEOUT, "detail": "its scripts did not finish in time"}
        except CommandRefused as error:
            if self.crashed or self._budget.spent:
                return self._crash()
            return {"reason": RENDER_FAILED, "detail": str(error)}
        if not isinstance(found, dict):
            return {"reason": RENDER_FAILED, "detail": "the page could not be read"}
        if "html" not in found:
            return {"reason": RENDER_TOO_LARGE, "detail": f"more than {limits.max_dom:,} characters"}
        return {name: value for name, value in found.items() if isinstance(value, str)}

    def _crash(self) -> dict[str, Any]:
        if self._too_large:
            return {"reason": RENDER_TOO_LARGE, "detail": self._too_large}
        return {"reason": RENDER_CRASHED, "detail": "the page's process ended"}

    def _flooded(self, why: str) -> None:
        """The browser has told too much about the page. Its events are dropped from now on, so it cannot continue."""
        self._too_large = why
        self._settling.look_again()

    # Events of the page.

    def _heard(self, method: str, params: dict[str, Any]) -> None:
        try:
            self._handle(method, params)
        except Exception as error:
            self._give_up(f"{method}: {error!r}")

    def _handle(self, method: str, params: dict[str, Any]) -> None:
        if method.startswith("Page.frame"):
            self._credentials.heard(method, params)
        match method:
            case "Fetch.requestPaused":
                self._paused(params)
            case "Network.requestWillBeSent":
                if params["request"]["url"].startswith("http"):
                    self._settling.started(params["requestId"], endless=params.get("type") in _ENDLESS)
            case "Network.loadingFinished" | "Network.loadingFailed":
                self._settling.ended(params["requestId"])
            case "Page.loadEventFired":
                self._settling.loaded()
            case "Emulation.virtualTimeBudgetExpired":
                self._settling.time_is_over()
            case "Page.frameRequestedNavigation" if params.get("disposition") == "currentTab":
                if params["frameId"] == self._world.frame:
                    self._settling.leaving()
            case "Page.frameNavigated" if "parentId" not in params["frame"]:
                self._world.frame = self._credentials.frame = params["frame"]["id"]
                self._settling.shows(params["frame"]["loaderId"])
            case "Page.javascriptDialogOpening":
                leave = params.get("type") == "beforeunload"
                self._talk.say("Page.handleJavaScriptDialog", self._session, accept=leave)

    def died(self, *, too_large: bool = False) -> None:
        """The process of the page has ended. With `too_large`, it was killed because it used too much memory."""
        self.crashed = True
        if too_large and not self._too_large:
            self._too_large = f"more than {self._limits.max_memory // 1_000_000} MB of memory"
        self._settling.look_again()

    # Requests. Each is paused until it is allowed or refused.

    def _paused(self, params: dict[str, Any]) -> None:
        id, request, kind = params["requestId"], params["request"], params.get("resourceType", "")
        if kind == "Document" and params.get("frameId") == self._world.frame:
            self._navigation(params)
        elif kind in self._blocked or not request["url"].startswith(("http:", "https:", "data:", "blob:", "about:")):
            self._fail(id)
        elif self.requests >= self._limits.max_requests:
            self._cut.add("requests")
            self._fail(id)
        else:
            self.requests += 1
            self._go_on(params)

    def _navigation(self, params: Mapping[str, Any]) -> None:
        id, request, download = params["requestId"], params["request"], "networkId" not in params
        target = canonical(request["url"])
        self._settling.stays()
        if target == self._address and not self._handed:
            self._handed = True
            self._handing = self._loop.create_task(self._hand_over(id))
        elif download or request["method"] != "GET" or target is None or _FILE.search(target):
            self._stay(id)
        elif target != self._address:
            self.location = target
            self._fail(id, "Aborted")
            self._settling.look_again()
        elif self._reloads >= self._limits.max_reloads:
            self._cut.add("navigations")
            self._stay(id)
        else:
            self._reloads += 1
            self._settling.reloads()
            self.requests += 1
            self._go_on(params)

    def _stay(self, id: str) -> None:
        """Stay on the page, and count it as loaded: the navigation may have stopped its load event."""
        self._settling.loaded()
        self._fail(id, "Aborted")

    async def _hand_over(self, id: str) -> None:
        """Give the browser the fetched document, without invalid headers: it would refuse the whole document."""
        headers = [
            {"name": name, "value": value}
            for name, value in self._page.headers.items()
            if name not in _NOT_HANDED_ON and is_header_name(name) and "\0" not in value
            for value in (_COOKIES.split(value) if name == "set-cookie" else (value,))
        ]
        try:
            await self._talk.ask(
                "Fetch.fulfillRequest",
                self._session,
                seconds=self._limits.seconds,
                requestId=id,
                responseCode=self._page.status,
                responseHeaders=headers,
                body=b64encode(self._page.body).decode("ascii"),
            )
        except (TimeoutError, BrowserGone):
            return  # `_settle` detects this
        except Exception as error:
            self._give_up(str(error))

    def _give_up(self, why: str) -> None:
        """The page cannot be shown. What happened here must cost no other page."""
        self._refused = why[:_LONGEST_REASON]
        self._settling.look_again()

    def _go_on(self, params: Mapping[str, Any]) -> None:
        """Continue a request, with the headers of the job if they are for it."""
        headers = self._credentials.added(params)
        more = {} if headers is None else {"headers": headers}
        self._talk.say("Fetch.continueRequest", self._session, requestId=params["requestId"], **more)

    def _fail(self, id: str, why: str = "BlockedByClient") -> None:
        self._talk.say("Fetch.failRequest", self._session, requestId=id, errorReason=why)

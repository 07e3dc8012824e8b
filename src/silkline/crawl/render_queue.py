"""The pages of one fetcher that wait for a browser, or are in one. Fetching continues meanwhile.

The bytes that wait are limited. If only some pages need a browser, one that finds no room is put off, or the page that
would be rendered last: its answer is dropped, and it is fetched again later (put_offs.py). If all pages need one, the
queue stops the fetching (`stops`), so that pages are not fetched twice. Only slow senders are put off then, so that the
pages of others are fetched and come before theirs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from silkline.crawl.plan import Plan
from silkline.crawl.render_turns import RenderTurns
from silkline.crawl.url_queue import FrontierUrl
from silkline.fetch.client import HttpClient
from silkline.fetch.render import Renderer
from silkline.fetch.render_slots import WaitingPage
from silkline.fetch.settings import Capture, RenderLimits
from silkline.model.fetched import Fetched
from silkline.model.url import host_of
from silkline.page_files import PageFiles

OnShown = Callable[[Fetched], None]
OnPutOff = Callable[[int], None]
"""Gets the number of bytes for which there must be room."""
_SLOW: Final = 0.5
"""A sender is slow if it used this part of the time of one page more than others."""


class _Page(NamedTuple):
    task: asyncio.Task[Fetched]
    url: str
    size: int
    on_put_off: OnPutOff


def open_renderer(plan: Plan, client: HttpClient, turns: RenderTurns) -> Renderer:
    """The renderer for a plan."""
    rendering = plan.rendering
    if rendering is None:
        raise ValueError("the plan renders no pages")
    limits = RenderLimits(seconds=plan.tuning.render_seconds, origin_headers=plan.origin_headers)
    return Renderer(
        client,
        places=Path(rendering.places),
        count=rendering.count,
        turns=turns,
        url=rendering.url,
        job=rendering.job,
        fallback=rendering.auto,
        limits=replace(limits, max_dom=min(limits.max_dom, plan.tuning.max_body)),
        wanted=Capture(rendering.screenshot, rendering.pdf),
    )


def open_files(plan: Plan) -> PageFiles | None:
    """Stores the files of rendered pages, if the plan wants them."""
    place = plan.rendering.files if plan.rendering is not None else None
    return None if place is None else PageFiles(place)


class RenderQueue:
    """Must be created and used inside an event loop."""

    def __init__(self, plan: Plan, client: HttpClient) -> None:
        tuning = plan.tuning
        self._all_need_browser = plan.rendering is not None and not plan.rendering.auto
        self._most_bytes = tuning.most_rendering_bytes
        self._least = max(1, tuning.most_rendering_bytes // tuning.most_rendering)
        """What a page counts at least."""
        self._slow_after = _SLOW * tuning.render_seconds
        self._loop = asyncio.get_running_loop()
        self._turns = RenderTurns()
        self._renderer = open_renderer(plan, client, self._turns)
        self._pages: dict[int, _Page] = {}
        self._bytes = 0
        self.address_of: Callable[[str], str] = lambda host: ""
        """The address of a host, so that hosts with one address share its turn."""
        self.on_arrived: Callable[[int], None] = lambda id: None
        """Called with the id of each page that comes to be rendered."""

    def __len__(self) -> int:
        return len(self._pages)

    @property
    def room(self) -> int:
        """Bytes that may come in addition to those that wait."""
        return self._most_bytes - self._bytes

    @property
    def stops(self) -> bool:
        """Whether no more pages should be fetched: there is no room for any, and no slow sender to make room."""
        return self._all_need_browser and self.room <= 0 and self._turns.longest <= self._slow_after

    def place_of(self, host: str) -> float:
        """When a further page of this host would be rendered. Small is soon."""
        return self._turns.place(host, self.address_of(host))

    def urls(self, most: int) -> list[str]:
        return [page.url for page in islice(self._pages.values(), most)]

    def show(self, entry: FrontierUrl, fetched: Fetched, on_shown: OnShown, on_put_off: OnPutOff) -> None:
        """Render the page, and call `on_shown` with the outcome; or `on_put_off`, at once or later, if there is no room
        for it. Neither is called after `cut_off`."""
        self.on_arrived(entry.id)
        host, size = host_of(entry.url), max(len(fetched.body), self._least)
        if not self._make_room(host, size) and not self._all_need_browser:
            on_put_off(size)
            return
        waiting = WaitingPage(host, self.address_of(host), entry.id, size)
        task = self._loop.create_task(self._renderer.render(fetched, waiting))
        self._bytes += size
        self._pages[entry.id] = _Page(task, entry.url, size, on_put_off)
        task.add_done_callback(partial(self._shown, entry.id, on_shown))

    def cut_off(self) -> None:
        """Cancel everything that is under way."""
        for page in self._pages.values():
            page.task.cancel()
        self._pages.clear()
        self._bytes = 0

    def close(self) -> None:
        self.cut_off()
        self._renderer.close()

    def _make_room(self, host: str, size: int) -> bool:
        """Put off the pages that would be rendered last, and after one of this host. False: there is no room."""
        margin = self._slow_after if self._all_need_browser else 0.0
        while self._pages and self.room < size:
            last = self._turns.drop_last(self.place_of(host) + margin, size)
            if last is None:
                return False
            page = self._leave(last.id)
            if page is not None:
                page.task.cancel()
                page.on_put_off(page.size)
        return True

    def _leave(self, id: int) -> _Page | None:
        page = self._pages.pop(id, None)
        if page is not None:
            self._bytes -= page.size
        return page

    def _shown(self, id: int, on_shown: OnShown, task: asyncio.Task[Fetched]) -> None:
        page = self._pages.get(id)
        if page is None or page.task is not task:  # it was put off, or everything was cut off
            return
        self._leave(id)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            self._loop.call_exception_handler({"message": "a page could not be rendered", "exception": error})
        else:
            on_shown(task.result())

"""The pages of one fetcher that wait for a browser, or are in one. Fetching continues meanwhile, up to a limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

from silkline.crawl.plan import Plan
from silkline.crawl.url_queue import FrontierUrl
from silkline.fetch.client import HttpClient
from silkline.fetch.render import Renderer
from silkline.fetch.settings import Capture, RenderLimits
from silkline.model.fetched import Fetched
from silkline.page_files import PageFiles

OnShown = Callable[[Fetched], None]


def open_renderer(plan: Plan, client: HttpClient) -> Renderer:
    """The renderer for a plan."""
    rendering = plan.rendering
    if rendering is None:
        raise ValueError("the plan renders no pages")
    limits = RenderLimits(seconds=plan.tuning.render_seconds, origin_headers=plan.origin_headers)
    return Renderer(
        client,
        places=Path(rendering.places),
        count=rendering.count,
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
        self._plan = plan
        self._loop = asyncio.get_running_loop()
        self._renderer = open_renderer(plan, client)
        self._tasks: dict[int, tuple[asyncio.Task[Fetched], str, int]] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def full(self) -> bool:
        """More pages wait for a browser than memory should hold."""
        tuning = self._plan.tuning
        return len(self._tasks) >= tuning.most_rendering or self._bytes >= tuning.most_rendering_bytes

    def urls(self, most: int) -> list[str]:
        return [url for _, url, _ in islice(self._tasks.values(), most)]

    def show(self, entry: FrontierUrl, fetched: Fetched, on_shown: OnShown) -> None:
        """Render the page, and call `on_shown` with the outcome. It is not called after `cut_off`."""
        size = len(fetched.body)
        self._bytes += size
        task = self._loop.create_task(self._renderer.render(fetched))
        self._tasks[entry.id] = (task, entry.url, size)
        task.add_done_callback(partial(self._shown, entry.id, on_shown))

    def cut_off(self) -> None:
        """Cancel everything that is under way."""
        for task, _, _ in self._tasks.values():
            task.cancel()
        self._tasks.clear()
        self._bytes = 0

    def close(self) -> None:
        self.cut_off()
        self._renderer.close()

    def _shown(self, id: int, on_shown: OnShown, task: asyncio.Task[Fetched]) -> None:
        known = self._tasks.pop(id, None)
        if known is None or task.cancelled():
            return
        self._bytes -= known[2]
        error = task.exception()
        if error is not None:
            self._loop.call_exception_handler({"message": "a page could not be rendered", "exception": error})
        else:
            on_shown(task.result())

"""The pages of a fetcher that wait for a browser: which one is put off when there is no room."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from silkline.crawl import render_queue
from silkline.crawl.plan import Plan, Rendering
from silkline.crawl.plan_from_spec import plan_of
from silkline.crawl.render_queue import RenderQueue
from silkline.crawl.render_turns import RenderTurns
from silkline.crawl.url_queue import FrontierUrl
from silkline.fetch.render_slots import WaitingPage
from silkline.model.fetched import Fetched
from silkline.model.spec import SiteSpec

MIB = 1 << 20


class WaitingRenderer:
    """No slot ever becomes free."""

    def __init__(self, turns: RenderTurns) -> None:
        self.turns = turns

    async def render(self, fetched: Fetched, waiting: WaitingPage) -> Fetched:
        self.turns.add(waiting)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.turns.remove(waiting)
        return fetched

    def close(self) -> None: ...


@dataclass
class Scene:
    queue: RenderQueue
    turns: RenderTurns
    put_off: list[str] = field(default_factory=list)
    number: int = 0

    async def show(self, host: str, size: int = 100) -> None:
        self.number += 1
        url = f"http://{host}/{self.number}"
        fetched = Fetched(url, status=200, body=b"x" * size)
        self.queue.show(
            FrontierUrl(0, self.number, url, 0), fetched, lambda _: None, lambda _: self.put_off.append(url)
        )
        await asyncio.sleep(0)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def start(work: Callable[[Scene], Coroutine[Any, Any, None]], *, auto: bool) -> None:
        async def whole() -> None:
            plan: Plan = plan_of(SiteSpec(url="http://a.example/"), fetchers=1, concurrency=1, rendering=None)
            tuning = msgspec.structs.replace(plan.tuning, most_rendering=4, most_rendering_bytes=4 * MIB)
            rendering = Rendering(auto=auto, count=1, places="")
            nothing: Any = None
            queue = RenderQueue(msgspec.structs.replace(plan, tuning=tuning, rendering=rendering), nothing)
            try:
                await work(Scene(queue, renderers[0].turns))
            finally:
                queue.close()
            assert (len(queue), queue.room) == (0, 4 * MIB)

        renderers: list[WaitingRenderer] = []

        def opened(_plan: Plan, _client: object, turns: RenderTurns) -> WaitingRenderer:
            renderers.append(WaitingRenderer(turns))
            return renderers[0]

        monkeypatch.setattr(render_queue, "open_renderer", opened)
        asyncio.run(whole())

    return start


def test_a_full_queue_puts_off_the_page_that_would_come_last(run: Callable[..., None]) -> None:
    async def work(scene: Scene) -> None:
        for _ in range(4):
            await scene.show("many.com")
        await scene.show("many.com")
        assert scene.put_off == ["http://many.com/5"], "it would come last itself"
        await scene.show("good.org")
        assert scene.put_off == ["http://many.com/5", "http://many.com/4"]
        assert scene.queue.urls(9)[-1] == "http://good.org/6"
        await scene.show("large.org", 2 * MIB)
        assert scene.put_off[2:] == ["http://many.com/3", "http://many.com/2"], "a large page needs more room"
        assert (len(scene.queue), scene.queue.room, scene.queue.stops) == (3, 0, False)

    run(work, auto=True)


def test_hosts_of_one_address_are_one_sender_before_the_browsers(run: Callable[..., None]) -> None:
    async def work(scene: Scene) -> None:
        scene.queue.address_of = lambda host: "192.0.2.2" if "good" in host else "192.0.2.1"
        for number in range(5):
            await scene.show(f"bad{number}.com")
        scene.turns.used(WaitingPage("bad9.com", "192.0.2.1"), 40.0)
        await scene.show("good.org")
        assert scene.put_off == ["http://bad4.com/5", "http://bad0.com/1"]

    run(work, auto=True)


def test_if_all_pages_need_a_browser_fetching_stops_unless_a_slow_sender_can_make_room(
    run: Callable[..., None],
) -> None:
    async def work(scene: Scene) -> None:
        for host in ("a.com", "b.com", "c.com", "slow.com"):
            assert not scene.queue.stops
            await scene.show(host)
        assert scene.queue.stops
        await scene.show("d.com")
        assert scene.put_off == [], "a page that was on its way is not fetched twice"
        scene.turns.used(WaitingPage("slow.com"), 40.0)
        assert not scene.queue.stops
        await scene.show("good.org")
        assert scene.put_off == ["http://slow.com/4"]

    run(work, auto=False)

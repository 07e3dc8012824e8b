"""What is done with answers, with a reader and a browser that only count."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from silkline.crawl.answers import Answers
from silkline.crawl.endings import Endings
from silkline.crawl.fetcher_gauges import FetcherGauges
from silkline.crawl.frontier import Frontier
from silkline.crawl.messages import PageOutcome
from silkline.crawl.outbox import Outbox
from silkline.crawl.outcomes import body_of
from silkline.crawl.plan import Plan, Rendering
from silkline.crawl.plan_from_spec import plan_of
from silkline.crawl.purpose import MORE, Portions, onward
from silkline.crawl.reading import LONGEST_DETAIL, READ_LATER, Body, Reading
from silkline.crawl.url_queue import FrontierUrl
from silkline.model.fetched import Fetched, Rendered
from silkline.model.ledger import DONE, FAILED, NewResult, Settled
from silkline.model.spec import SiteSpec

URL = "https://a.example/"
HTML = Fetched(URL, 200, body=b"<!doctype html><p>words", content_type="text/html")
RESULT = NewResult(1, URL, 1, URL, 1, "{}", False, "{}")
AUTO = Rendering(auto=True, count=1, places="")
ALWAYS = Rendering(auto=False, count=1, places="")


class CountingReader:
    full = False

    def __init__(self, needs_scripts: bool) -> None:
        self.bodies: list[bytes] = []
        self._needs_scripts = needs_scripts

    def read(self, body: Body, on_done: Callable[[Reading], None], *, may_wait: bool = False) -> None:
        self.bodies.append(body.body)
        on_done(Reading(body.id, needs_scripts=self._needs_scripts))


class CountingRenderQueue:
    stops = False

    def __init__(self) -> None:
        self.shown = 0

    def __len__(self) -> int:
        return 0

    def show(
        self,
        entry: FrontierUrl,
        fetched: Fetched,
        on_shown: Callable[[Fetched], None],
        on_put_off: Callable[[int], None],
    ) -> None:
        self.shown += 1
        on_shown(msgspec.structs.replace(fetched, rendered=Rendered(fetched.url, b"<p>more words")))


class OneResultEach:
    """Redirects stay in their row, and every end has a result: what a `page` job wants."""

    full = False

    def body(self, host: str, entry: FrontierUrl, fetched: Fetched) -> Body:
        return body_of(entry, fetched, simhash=False, sitemap=False)

    def follow(self, entry: FrontierUrl, fetched: Fetched, target: str) -> FrontierUrl:
        return onward(entry, target)

    def read(self, host: str, entry: FrontierUrl, fetched: Fetched, reading: Reading) -> PageOutcome:
        return PageOutcome(Settled(entry.id, DONE), RESULT, 0)

    def ended(self, entry: FrontierUrl, settled: Settled, fetched: Fetched | None) -> PageOutcome:
        return PageOutcome(settled, RESULT, 0)


class Scene:
    """The parts around `Answers`, and one URL whose answer comes."""

    def __init__(
        self,
        fetched: Fetched,
        rendering: Rendering | None = None,
        *,
        needs_scripts: bool = False,
        purpose: OneResultEach | None = None,
    ) -> None:
        self.reader, self.render_queue, self.outbox = CountingReader(needs_scripts), CountingRenderQueue(), Outbox()
        asyncio.run(self._take(fetched, rendering, purpose or OneResultEach()))

    async def _take(self, fetched: Fetched, rendering: Rendering | None, purpose: Any) -> None:
        plan: Plan = plan_of(SiteSpec(url=URL), fetchers=1, concurrency=1, rendering=rendering)
        self.frontier = Frontier(plan.pace, window=10, per_host=10)
        self.endings = Endings(plan.tuning, self.frontier, self.outbox, purpose, lambda: None)
        reader: Any = self.reader
        render_queue: Any = self.render_queue if rendering is not None else None
        parts = (self.frontier, self.outbox, self.endings, purpose)
        answers = Answers(plan, reader, render_queue, *parts, FetcherGauges(0.0), lambda: None)
        host, entry = self.frontier.host("a.example"), FrontierUrl(0, 1, URL, 0)
        answers.take(host, entry, fetched, 0.0, 1.0)
        assert answers.under_way == 0


def test_a_page_without_room_before_the_browsers_is_put_off_and_stops_nobody() -> None:
    told: list[object] = []

    class FullRenderQueue(CountingRenderQueue):
        def show(
            self,
            entry: FrontierUrl,
            fetched: Fetched,
            on_shown: Callable[[Fetched], None],
            on_put_off: Callable[[int], None],
        ) -> None:
            on_put_off(1 << 20)

    async def work() -> None:
        plan: Plan = plan_of(SiteSpec(url=URL), fetchers=1, concurrency=1, rendering=AUTO)
        frontier, outbox, purpose = Frontier(plan.pace, window=10, per_host=10), Outbox(), OneResultEach()
        reader: Any = CountingReader(needs_scripts=True)
        queue: Any = FullRenderQueue()
        parts: Any = (frontier, outbox, Endings(plan.tuning, frontier, outbox, purpose, lambda: None), purpose)
        answers = Answers(plan, reader, queue, *parts, FetcherGauges(0.0), lambda: None)
        answers.on_shows = lambda host, size: told.append(("shows", size))
        answers.on_shown = lambda host, size: told.append(("shown", size))
        answers.on_not_shown = lambda host, entry, size: told.append((entry.url, size))
        answers.take(frontier.host("a.example"), FrontierUrl(0, 1, URL, 0), HTML, 0.0, 1.0)
        assert (answers.under_way, answers.full, bool(outbox)) == (0, False, False)

    asyncio.run(work())
    size = len(HTML.body)
    assert told == [("shows", size), ("shown", size), (URL, 1 << 20)]


@pytest.mark.parametrize(
    ("rendering", "needs_scripts", "shown", "read"),
    [
        pytest.param(None, True, 0, [HTML.body], id="never"),
        pytest.param(AUTO, False, 0, [HTML.body], id="auto, without scripts"),
        pytest.param(AUTO, True, 1, [HTML.body, b"<p>more words"], id="auto, with scripts"),
        pytest.param(ALWAYS, True, 1, [b"<p>more words"], id="always"),
    ],
)
def test_a_body_is_read_once_and_rendered_once_at_most(
    rendering: Rendering | None, needs_scripts: bool, shown: int, read: list[bytes]
) -> None:
    scene = Scene(HTML, rendering, needs_scripts=needs_scripts)
    assert (scene.render_queue.shown, scene.reader.bodies) == (shown, read)
    assert [page.settled.state for page in scene.outbox.pages] == ["done"]


@pytest.mark.parametrize("step", ["body", "follow", "read"])
def test_an_answer_that_our_code_fails_on_fails_alone(step: str) -> None:
    """One byte in the name of a header ended the attempt, and the next one too."""
    purpose = OneResultEach()

    def fail(*_: Any) -> None:
        raise UnicodeEncodeError("ascii", "x-\xe4", 2, 3, "ordinal not in range")

    setattr(purpose, step, fail)
    scene = Scene(Fetched(URL, 302, location="https://b.example/x") if step == "follow" else HTML, purpose=purpose)
    (page,) = scene.outbox.pages
    assert (page.settled.state, page.settled.reason) == ("failed", "parse_failed")
    assert "UnicodeEncodeError" in (page.settled.detail or "")


def test_the_text_of_such_a_failure_is_cut() -> None:
    purpose = OneResultEach()

    def fail(*_: Any) -> None:
        raise KeyError("x" * 1_000_000)  # a page may choose what an error says

    purpose.read = fail  # type: ignore[assignment, method-assign]
    (page,) = Scene(HTML, purpose=purpose).outbox.pages
    assert len(page.settled.detail or "") <= LONGEST_DETAIL


@pytest.mark.parametrize("error", [OSError("the disk is full"), MemoryError()])
def test_what_is_not_the_fault_of_a_page_is_not_blamed_on_it(error: Exception) -> None:
    purpose = OneResultEach()

    def fail(*_: Any) -> None:
        raise error

    setattr(purpose, "read", fail)  # noqa: B010
    with pytest.raises(type(error)):
        Scene(HTML, purpose=purpose)


def test_a_redirect_within_a_row_waits_for_the_clock_of_its_own_host() -> None:
    scene = Scene(Fetched(URL, 302, location="https://b.example/x"))
    (entry,) = scene.frontier.host("b.example").queue
    assert (entry.id, entry.url, entry.chain) == (1, "https://b.example/x", URL)
    assert not scene.outbox


def test_a_failure_that_has_a_result_is_handed_in_with_it() -> None:
    scene = Scene(Fetched(URL, 404, reason="http_404"))
    (page,) = scene.outbox.pages
    assert (page.settled.reason, page.settled.http_status, page.result) == ("http_404", 404, RESULT)
    assert scene.outbox.settled == []


def test_a_failure_that_may_pass_is_no_end() -> None:
    scene = Scene(Fetched(URL, 500, reason="http_500"))
    ((settled, _),) = scene.outbox.settled
    assert (settled.state, settled.reason, settled.detail, settled.attempts) == ("queued", "http_500", None, 1)
    assert scene.frontier.size == 1
    assert scene.outbox.pages == []


def test_only_a_body_that_another_process_reads_counts_as_waiting() -> None:
    """The gate of the hosts gets its size, and again when it was read."""
    told: list[tuple[str, int]] = []

    async def work() -> None:
        plan: Plan = plan_of(SiteSpec(url=URL), fetchers=1, concurrency=1, rendering=None)
        frontier, outbox, purpose = Frontier(plan.pace, window=10, per_host=10), Outbox(), OneResultEach()
        waiting: list[Any] = []

        class LaterReader(CountingReader):
            def read(self, body: Body, on_done: Callable[[Reading], None], *, may_wait: bool = False) -> None:
                waiting.append(lambda: on_done(Reading(body.id)))

        parts: Any = (frontier, outbox, Endings(plan.tuning, frontier, outbox, purpose, lambda: None), purpose)
        for reader in (CountingReader(False), LaterReader(False)):
            answers = Answers(plan, reader, None, *parts, FetcherGauges(0.0), lambda: None)
            answers.on_waits = lambda host, size: told.append(("waits", size))
            answers.on_read = lambda host, size: told.append(("read", size))
            answers.take(frontier.host("a.example"), FrontierUrl(0, 1, URL, 0), HTML, 0.0, 1.0)
        waiting[0]()

    asyncio.run(work())
    assert told == [("waits", len(HTML.body)), ("read", len(HTML.body))]


class InPortions(OneResultEach):
    """A reading of three portions; there is room for one at a time."""

    fails = False

    def __init__(self) -> None:
        self.full = False
        self.made = 0

    def read(self, host: str, entry: FrontierUrl, fetched: Fetched, reading: Reading) -> Portions:  # type: ignore[override]
        for _ in range(3):
            self.full, self.made = True, self.made + 1
            yield MORE
            if self.fails:
                raise KeyError("x")
        yield PageOutcome(Settled(entry.id, DONE), RESULT, 0)


async def answers_in_portions(purpose: InPortions) -> tuple[Answers, Outbox]:
    plan: Plan = plan_of(SiteSpec(url=URL), fetchers=1, concurrency=1, rendering=None)
    frontier, outbox = Frontier(plan.pace, window=10, per_host=10), Outbox()
    parts: Any = (frontier, outbox, Endings(plan.tuning, frontier, outbox, purpose, lambda: None), purpose)
    reader: Any = CountingReader(False)
    answers = Answers(plan, reader, None, *parts, FetcherGauges(0.0), lambda: None)
    answers.take(frontier.host("a.example"), FrontierUrl(0, 1, URL, 0), HTML, 0.0, 1.0)
    return answers, outbox


def test_a_portion_is_made_when_there_is_room() -> None:
    purpose = InPortions()
    answers, outbox = asyncio.run(answers_in_portions(purpose))
    for made in (1, 2, 3):
        answers.go_on()
        assert (purpose.made, answers.under_way, answers.full, outbox.pages) == (made, 1, True, [])
        purpose.full = False
        assert answers.full, "no request starts while a reading waits"
        answers.go_on()
    assert (answers.under_way, answers.full) == (0, False)
    assert [page.settled.state for page in outbox.pages] == [DONE]


def test_a_portion_that_our_code_fails_on_ends_only_its_url() -> None:
    purpose = InPortions()
    purpose.fails = True
    answers, outbox = asyncio.run(answers_in_portions(purpose))
    purpose.full = False
    answers.go_on()
    assert (purpose.made, answers.under_way) == (1, 0)
    assert [(page.settled.state, page.settled.reason) for page in outbox.pages] == [(FAILED, "parse_failed")]


def test_portions_that_are_left_are_dropped_when_the_time_is_over() -> None:
    purpose = InPortions()
    answers, outbox = asyncio.run(answers_in_portions(purpose))
    answers.cut_off()
    purpose.full = False
    answers.go_on()
    assert (purpose.made, answers.under_way, outbox.pages) == (1, 0, [])


def test_an_answer_without_room_before_the_reader_is_dropped_and_its_url_put_off() -> None:
    """At once, or later, when an input with an earlier turn needs the room."""
    told: list[tuple[str, Any]] = []

    async def work() -> Outbox:
        plan: Plan = plan_of(SiteSpec(url=URL), fetchers=1, concurrency=1, rendering=None)
        frontier, outbox, purpose = Frontier(plan.pace, window=10, per_host=10), Outbox(), OneResultEach()
        waiting: list[Any] = []

        class FullReader(CountingReader):
            def read(self, body: Body, on_done: Callable[[Reading], None], *, may_wait: bool = False) -> None:
                assert may_wait
                on_done(Reading(body.id, READ_LATER))

        class LaterFullReader(CountingReader):
            def read(self, body: Body, on_done: Callable[[Reading], None], *, may_wait: bool = False) -> None:
                waiting.append(lambda: on_done(Reading(body.id, READ_LATER)))

        parts: Any = (frontier, outbox, Endings(plan.tuning, frontier, outbox, purpose, lambda: None), purpose)
        for reader in (FullReader(False), LaterFullReader(False)):
            answers = Answers(plan, reader, None, *parts, FetcherGauges(0.0), lambda: None)
            answers.on_waits = lambda host, size: told.append(("waits", size))
            answers.on_read = lambda host, size: told.append(("read", size))
            answers.on_put_off = lambda host, entry, size: told.append((entry.url, size))
            answers.take(frontier.host("a.example"), FrontierUrl(0, 1, URL, 0), HTML, 0.0, 1.0)
        waiting[0]()
        assert answers.under_way == 0
        return outbox

    assert not asyncio.run(work())
    size = len(HTML.body)
    assert told == [(URL, size), ("waits", size), ("read", size), (URL, size)]

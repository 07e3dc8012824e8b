"""Few requests read at the same time, callers take turns, and the request gate does not wait for any of them."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import anyio.to_thread
import pytest
from starlette.types import Message, Receive, Scope, Send

from silkline.api.answer_limit import AnswerRoom
from silkline.api.auth import Caller
from silkline.api.caller_turns import WAITING_EACH, CallerTurns
from silkline.api.downloads import PORTION, next_portion
from silkline.api.lists import CHUNK, LOOKING, PAGE_BYTES, Read, chosen_from, chosen_lines, page_of
from silkline.api.long_answers import LongAnswers
from silkline.api.read_turns import ReadLimit
from silkline.api.request_gate import AllowedHosts, RequestGate
from silkline.api.routes import jobs as job_routes
from silkline.api.routes.jobs import AT_ONCE, FIRST, JobListQuery, JobRoutes, WaitQuery, listed
from silkline.api.web import field_table
from silkline.api.web.field_table import MOST_OF_PAGE, _rows
from silkline.export.field_columns import FieldColumns
from silkline.model.field_filter import read_condition
from silkline.model.ledger import Counts
from silkline.store.jobs import LAST_ID
from silkline.store.results import Result
from silkline.store.url_view import ResultView

NOW = datetime(2030, 1, 1, tzinfo=UTC)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_caller_with_many_reads_leaves_turns_to_others() -> None:
    async def main() -> None:
        turns = CallerTurns(most=3, most_each=2)
        order: list[str] = []
        ends = asyncio.Event()

        async def read(caller: str) -> None:
            async with turns.turn(caller):
                order.append(caller)
                await ends.wait()

        async with asyncio.TaskGroup() as group:
            for caller in "aaaaa":
                group.create_task(read(caller))
            await settle()
            assert (order, turns.waiting("a")) == (["a", "a"], 3)
            for caller in "bbc":
                group.create_task(read(caller))
            await settle()
            assert order == ["a", "a", "b"], "all turns are held"
            ends.set()
        assert sorted(order[3:]) == ["a", "a", "a", "b", "c"]
        assert set(order[3:6]) == {"a", "b", "c"}, "the others did not wait for all reads of the first"
        assert turns.waiting("a") == 0

    asyncio.run(main())


def test_a_read_that_is_given_up_leaves_its_turn() -> None:
    async def main() -> None:
        turns = CallerTurns(most=1, most_each=1)
        await turns.take("a")
        waiting, next_one = (asyncio.create_task(turns.take(caller)) for caller in "bc")
        await settle()
        waiting.cancel()
        turns.give_back("a")  # at the same moment as the end of the one who is next
        await settle()
        assert waiting.cancelled()
        assert next_one.done()

    asyncio.run(main())


def asked(path: str, caller: str = "reader", method: str = "GET") -> Scope:
    return {"type": "http", "method": method, "path": path, "caller": Caller(caller, "read"), "headers": []}


async def nothing() -> Message:
    """The client stays, and sends nothing more."""
    await asyncio.Event().wait()
    raise AssertionError("nothing comes")


def statuses(sent: list[Message]) -> list[int]:
    return [message["status"] for message in sent if message["type"] == "http.response.start"]


@pytest.mark.parametrize(
    ("path", "reads"),
    [
        ("/v1/jobs/1/results", True),
        ("/v1/jobs", True),
        ("/jobs/1/fields", True),
        ("/", True),
        ("/v1/jobs/1", False),
        ("/v1/jobs/1/events", False),
        ("/v1/events", False),
        ("/readyz", False),
        ("/static/silkline.css", False),
    ],
)
def test_what_reads_waits_for_its_turn_until_the_answer_before_begins(path: str, reads: bool) -> None:
    async def main() -> None:
        begin, sent = asyncio.Event(), []

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await begin.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            began.append(scope["path"])
            await asyncio.Event().wait()  # a client that takes its time

        async def send(message: Message) -> None:
            sent.append(message)

        began: list[str] = []
        turns = CallerTurns(most=1, most_each=1)
        limit = ReadLimit(app, turns)
        tasks = [asyncio.create_task(limit(asked(each), nothing, send)) for each in ("/v1/jobs/9/urls", path)]
        await settle()
        assert turns.waiting("reader") == reads
        begin.set()
        await settle()
        assert began == ["/v1/jobs/9/urls", path]
        for task in tasks:
            task.cancel()

    asyncio.run(main())


@pytest.mark.parametrize("wait", [0, 60])
def test_a_job_is_read_in_a_turn(wait: float) -> None:
    async def main() -> None:
        turns = CallerTurns(most=1, most_each=1)
        routes: Any = JobRoutes(None, None, None, turns, LongAnswers(AnswerRoom()))  # type: ignore[arg-type]
        await turns.take("other")
        request: Any = SimpleNamespace(scope=asked("/v1/jobs/1"), receive=nothing)
        task = asyncio.create_task(routes.get(request, "1", WaitQuery(wait=wait)))
        await settle()
        assert turns.waiting("reader") == 1
        task.cancel()

    asyncio.run(main())


def test_reads_that_wait_are_limited() -> None:
    async def main() -> None:
        sent: list[Message] = []

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await asyncio.Event().wait()

        async def send(message: Message) -> None:
            sent.append(message)

        limit = ReadLimit(app, CallerTurns(most=2, most_each=1))
        scopes = [asked("/v1/jobs", "greedy") for _ in range(WAITING_EACH + 2)]
        tasks = [asyncio.create_task(limit(scope, nothing, send)) for scope in scopes]
        await settle()
        assert statuses(sent) == [429]
        tasks.append(asyncio.create_task(limit(asked("/v1/jobs", "other"), nothing, send)))
        await settle()
        assert statuses(sent) == [429]
        for task in tasks:
            task.cancel()

    asyncio.run(main())


class Knows:
    """A doorkeeper that knows every caller with a token."""

    def caller(self, headers: Any, address: str) -> Caller | None:
        return Caller("reader", "read") if "authorization" in headers else None

    def still_valid(self, caller: Caller | None, headers: Any) -> bool:
        return True


@pytest.mark.parametrize(("path", "token"), [("/healthz", False), ("/healthz", True), ("/v1/jobs", True)])
def test_the_gate_needs_none_of_the_threads_of_the_routes(path: str, token: bool) -> None:
    async def main() -> None:
        sent: list[Message] = []

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})

        async def send(message: Message) -> None:
            sent.append(message)

        gate = RequestGate(app, AllowedHosts("127.0.0.1", 80), Knows())  # type: ignore[arg-type]
        headers = [(b"host", b"127.0.0.1:80"), *([(b"authorization", b"Bearer x")] if token else [])]
        scope = {**asked(path), "headers": headers, "query_string": b"", "client": ("127.0.0.1", 1)}
        threads = anyio.to_thread.current_default_thread_limiter()
        async with AsyncExitStack() as stack:
            for place in range(int(threads.total_tokens)):  # slow requests hold every thread
                await threads.acquire_on_behalf_of(place)
                stack.callback(threads.release_on_behalf_of, place)
            async with asyncio.timeout(60):
                await gate(scope, nothing, send)
        assert statuses(sent) == [200]

    asyncio.run(main())


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def view(id: int, **fields: Any) -> ResultView:
    return ResultView(id, "job", id, None, "https://example.com/", {"fields": fields}, True, {}, NOW)


def reading(clock: Clock, seconds: float, number: int) -> tuple[Read[ResultView], list[int]]:
    """A slow database with so many results, and the cursors that it was asked for."""
    cursors: list[int] = []

    def read(after: int, wanted: int) -> list[tuple[int, ResultView]]:
        cursors.append(after)
        clock.now += seconds
        return [(id, view(id, place=id)) for id in range(after + 1, min(number, after + wanted) + 1)]

    return read, cursors


PAGES: dict[str, Callable[..., tuple[list[ResultView], str | None]]] = {
    "found": lambda read, after, clock: chosen_from(read, after, 100, [read_condition("place>0")], clock),
    "not found": lambda read, after, clock: chosen_from(read, after, 100, [read_condition("nothing")], clock),
    "all": lambda read, after, clock: page_of(read, after, 100, clock=clock),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_ends_when_looking_took_long_and_the_next_one_goes_on(name: str) -> None:
    clock = Clock()
    read, cursors = reading(clock, LOOKING, 30)
    items, cursor, pages = [], "0", 0
    while cursor is not None:
        before = len(cursors)
        some, cursor = PAGES[name](read, int(cursor), clock)
        assert len(cursors) == before + 1, "one read took the whole time"
        assert cursor is None or int(cursor) > cursors[-1], "each page goes on"
        items += some
        pages += 1
    assert [item.id for item in items] == ([] if name == "not found" else list(range(1, 31)))
    assert pages > 2


def test_a_search_as_lines_yields_after_each_result() -> None:
    """So that no step looks through a whole job in which nothing is found."""
    read, cursors = reading(Clock(), 0, 60)
    pieces = chosen_lines(read, 0, [read_condition("nothing")])
    assert next(pieces) == b""
    assert cursors == [0]
    rest = list(pieces)
    assert set(rest) == {b""}
    assert len(rest) >= 59
    found = b"".join(chosen_lines(read, 0, [read_condition("place>2")], limit=1))
    assert found.count(b"\n") == 58
    assert len(cursors) > CHUNK


def test_a_portion_ends_after_a_while_without_anything_to_send() -> None:
    clock = Clock()

    def pieces() -> Iterator[bytes]:
        for _ in range(10):
            clock.now += PORTION / 2
            yield b""
        yield b"found"

    made = pieces()
    portions = [next_portion(made, clock) for _ in range(7)]  # type: ignore[arg-type]
    assert portions == [b""] * 5 + [b"found", None]


def test_the_table_of_fields_is_looked_for_during_a_limited_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, cursors = Clock(), []

    def page(_database: Any, _job: str, *, after: int, wanted: int) -> list[Result]:
        cursors.append(after)
        clock.now += LOOKING
        return [Result(after + 1, "job", after + 1, None, "https://example.com/", {"fields": {}}, True, {}, NOW)]

    monkeypatch.setattr(field_table, "columns_of", lambda *_: FieldColumns({"a": {}}, rows=False))
    monkeypatch.setattr(field_table.results, "page_by_discovery", page)
    monkeypatch.setattr(field_table.urls, "counts", lambda *_: Counts())
    job: Any = SimpleNamespace(id="job")
    shown = field_table.field_table(None, job, 5, "a=1", clock)  # type: ignore[arg-type]
    assert (shown["rows"], shown["next"], cursors) == ([], 6, [5])


def test_the_table_of_fields_shows_some_rows_of_a_page() -> None:
    columns = FieldColumns({"a": {}}, rows=True)
    data = {"rows": [{"a": f"{number % 2}"} for number in range(5_000)]}
    result = Result(1, "job", 1, None, "https://example.com/", data, True, {}, NOW)
    rows = _rows(result, columns, [read_condition("a=1")])
    assert [row["values"] for row in rows] == [["1"]] * MOST_OF_PAGE


def test_a_list_of_jobs_ends_when_looking_took_long_and_the_next_page_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [f"00000000-0000-7000-8000-{number:012}" for number in range(4 * AT_ONCE, 0, -1)]
    clock, asked = Clock(), []
    pace = LOOKING / 2

    def find(database: Any, query: JobListQuery, before: str, wanted: int) -> list[Any]:
        asked.append(wanted)
        clock.now += pace
        return [SimpleNamespace(id=id) for id in ids if id < before][:wanted]

    monkeypatch.setattr(job_routes, "find", find)
    monkeypatch.setattr(job_routes, "views", lambda database, found, stale_after: found)
    monkeypatch.setattr(job_routes, "to_json", lambda job: b"{}")

    def page(limit: int, cursor: str = LAST_ID) -> tuple[list[str], str | None]:
        shown, cursor_of_next = listed(None, JobListQuery(limit=limit, cursor=cursor), 60, clock)  # type: ignore[arg-type]
        return [job.id for job in shown], cursor_of_next

    first = 3 * FIRST  # two statements, of which the second reads twice as many
    assert page(500) == (ids[:first], ids[first - 1])
    assert page(FIRST + 1, ids[first - 1]) == (ids[first : first + FIRST + 1], ids[first + FIRST])
    pace = 0.0
    assert page(500, ids[first + FIRST]) == (ids[first + FIRST + 1 :], None)
    assert max(asked) == AT_ONCE + 1


def test_a_list_of_jobs_ends_when_it_gets_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a job contains decides how many are on a page. One that is larger than a page is alone on it."""
    sizes = {5: PAGE_BYTES // 2, 4: PAGE_BYTES // 2, 3: 1, 2: PAGE_BYTES * 2, 1: 1}
    ids = {f"00000000-0000-7000-8000-{number:012}": size for number, size in sizes.items()}

    def find(database: Any, query: JobListQuery, before: str, wanted: int) -> list[Any]:
        return [SimpleNamespace(id=id) for id in ids if id < before][:wanted]

    monkeypatch.setattr(job_routes, "find", find)
    monkeypatch.setattr(job_routes, "views", lambda database, found, stale_after: found)
    monkeypatch.setattr(job_routes, "to_json", lambda job: b"x" * ids[job.id])
    pages: list[list[int]] = []
    cursor: str | None = LAST_ID
    while cursor:
        shown, cursor = listed(None, JobListQuery(limit=500, cursor=cursor), 60)  # type: ignore[arg-type]
        pages.append([int(job.id[-1]) for job in shown])
    assert pages == [[5, 4], [3], [2], [1]]

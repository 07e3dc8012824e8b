"""Events: every log line once, whoever asks and however often they come back; one look at the database for all."""

import asyncio
import itertools
import json
import threading
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from silkline.api import event_sources
from silkline.api.caller_turns import CallerTurns
from silkline.api.event_sources import Cursor, JobSource, StreamEvent, read_cursor
from silkline.api.events import BACKLOG, BACKLOG_BYTES, EAGER, Feed, Hub, Listener, PollTurns
from silkline.api.read_turns import read_turns
from silkline.errors import Unavailable
from silkline.model.database import Database
from silkline.model.job import End, NewJob, Status
from silkline.model.ledger import Checkpoint, NewUrl
from silkline.store import jobs, logs, urls
from silkline.store.opening import open_database
from tests.store.given import finished, running
from tests.support.served import STATES, Client, Served
from tests.support.supervisors import PATIENCE

QUEUED_JOB = {"kind": "page", "url": "https://example.com/", "paused": True}


def test_a_job_is_followed_to_its_end(client: Client) -> None:
    id = client.job(do="work", steps=40, seconds=0.05)
    events = list(client.events(f"/v1/jobs/{id}/events"))
    names = [name for _, name, _ in events]
    assert names[0] == "status"
    assert names[-1] == "end"
    states = [data["status"] for _, name, data in events if name == "status"]
    assert states[-1] == "completed"
    for _, name, data in events:
        progress = data["progress"] if name == "status" else data
        if name in ("status", "progress"):
            assert progress["discovered"] == sum(progress[state] for state in STATES)
    last = events[-1][0]
    while (answer := client.get(f"/v1/jobs/{id}/events", Last_Event_ID=last)).status != 204:  # a line came late
        assert answer.status == 200, answer
        events += client.events(f"/v1/jobs/{id}/events", Last_Event_ID=last)
        last = events[-1][0]
    lines = [line for _, name, data in events if name == "logs" for line in data["lines"]]
    assert [line["id"] for line in lines] == [line["id"] for line in client.get(f"/v1/jobs/{id}/logs").json["items"]]


def test_no_line_is_lost_or_told_twice_whoever_is_asked(
    client: Client, database: Database, shared_url: str, tmp_path: Path
) -> None:
    """The reader leaves after every few events and comes back with the last id, to one server or to another."""
    id = client.post("/v1/jobs", QUEUED_JOB).json["id"]
    total = 300

    def write() -> None:
        for number in range(total):
            logs.append(database, [logs.NewLine(id, 1, "info", f"line {number}", database.now())])

    with closing(Served(shared_url, tmp_path, slots=0)) as other:
        clients = itertools.cycle([client, other.ready()])
        (cursor, _, _) = next(client.events(f"/v1/jobs/{id}/events"))  # whoever comes later gets the last lines only
        headers = {"Last_Event_ID": cursor}
        writer = threading.Thread(target=write)
        writer.start()
        told: list[str] = []
        while len(told) < total:
            for cursor, name, data in itertools.islice(next(clients).events(f"/v1/jobs/{id}/events", **headers), 3):
                headers = {"Last_Event_ID": cursor}
                if name == "logs":
                    told += [line["message"] for line in data["lines"]]
                    break
        writer.join()
    assert told == [f"line {number}" for number in range(total)]


def test_who_comes_late_is_told_the_last_lines(client: Client, database: Database) -> None:
    id = client.post("/v1/jobs", QUEUED_JOB).json["id"]
    logs.append(database, [logs.NewLine(id, 1, "info", f"{number}", database.now()) for number in range(250)])
    stream = client.events(f"/v1/jobs/{id}/events")
    (_, first, _), (_, second, data) = itertools.islice(stream, 2)
    assert (first, second) == ("status", "logs")
    assert [line["message"] for line in data["lines"]] == [str(number) for number in range(150, 250)]


def test_a_change_is_told_to_everybody(client: Client) -> None:
    id = client.post("/v1/jobs", QUEUED_JOB).json["id"]
    streams = [client.events(f"/v1/jobs/{id}/events") for _ in range(10)]
    assert {next(stream)[2]["status"] for stream in streams} == {"paused"}
    client.post(f"/v1/jobs/{id}/cancel")
    assert {next(stream)[2]["status"] for stream in streams} == {"cancelled"}
    for stream in streams:
        stream.close()  # type: ignore[attr-defined]


def test_a_job_that_is_removed_ends_its_streams(client: Client) -> None:
    id = client.post("/v1/jobs", QUEUED_JOB).json["id"]
    stream = client.events(f"/v1/jobs/{id}/events")
    next(stream)
    client.post(f"/v1/jobs/{id}/cancel")
    client.ask("DELETE", f"/v1/jobs/{id}")
    assert [name for _, name, _ in stream][-1] in ("gone", "end")


def test_the_overview_tells_that_something_changed(client: Client) -> None:
    stream = client.events("/v1/events")
    _, name, before = next(stream)
    assert name == "jobs"
    client.post("/v1/jobs", QUEUED_JOB)
    assert any(data["paused"] > before["paused"] for _, _, data in stream)


@pytest.mark.parametrize("text", ["", "1", "1.2", "1.2.3.4", "a.b.c", "-1.2.3", "1.2.²", "9" * 60 + ".1.1", "1..2"])
def test_an_id_that_is_none_of_ours_is_taken_as_none(client: Client, text: str) -> None:
    assert read_cursor(text) is None
    id = client.post("/v1/jobs", QUEUED_JOB).json["id"]
    if text.isascii():
        stream = client.events(f"/v1/jobs/{id}/events", Last_Event_ID=text)
        assert next(stream)[1] == "status"
    assert read_cursor("17.4.99") == Cursor(17, 4, 99)


@pytest.fixture
def embedded(tmp_path: Path) -> Any:
    with closing(open_database(f"sqlite:///{tmp_path / 'silkline.db'}")) as database:
        yield database


def test_progress_is_told_at_most_once_a_second(embedded: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(event_sources.time, "monotonic", lambda: clock[0])
    jobs.enqueue(embedded, NewJob("site", {"url": "https://example.com/"}))
    (job,) = jobs.claim(embedded, "w", "h", ["site"], 1)
    source = JobSource(embedded, job.id)
    assert [event.name for event in source.poll()] == ["status"]
    told = 0
    for id in range(1, 31):
        urls.record(embedded, job, Checkpoint(found=[NewUrl(id, id, f"https://example.com/{id}", "example.com", 0)]))
        clock[0] += 0.1
        told += sum(event.name == "progress" for event in source.poll())
    assert told in (2, 3)


def test_the_end_is_told_when_the_last_lines_had_time_to_come(
    embedded: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_sources, "LAST_LINES", timedelta(hours=1))
    job = running(embedded)
    source = JobSource(embedded, job.id)
    finished(embedded, job, End.COMPLETED)
    assert [event.name for _ in range(3) for event in source.poll()] == ["status"]
    logs.append(embedded, [logs.NewLine(job.id, 1, "info", "it has ended", embedded.now())])
    assert [event.name for _ in range(3) for event in source.poll()] == ["logs"]
    monkeypatch.setattr(event_sources, "LAST_LINES", timedelta(0))
    assert [event.name for _ in range(2) for event in source.poll()] == ["end"]


class Counted:
    """A source that counts its looks."""

    def __init__(self, events: int = 0) -> None:
        self.cursor = Cursor()
        self.looks = 0
        self._events = events

    def poll(self) -> list[StreamEvent]:
        self.looks += 1
        return [StreamEvent("logs", "1.0.0", b"{}") for _ in range(self._events)]


def test_many_listeners_share_one_look() -> None:
    async def run() -> None:
        source = Counted(events=1)
        feed = Feed(source, PollTurns(read_turns()))
        queues = [feed.listen("reader") for _ in range(200)]
        for queue in queues:
            await queue.get()
        looks = source.looks
        assert all(queue.qsize() <= looks for queue in queues)
        assert looks < 50, "they do not look each for themselves"
        feed.close()

    asyncio.run(run())


def test_an_unexpected_error_of_the_source_ends_its_streams(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        class Broken(Counted):
            def poll(self) -> list[StreamEvent]:
                raise RuntimeError("a row that nobody expected")

        feed = Feed(Broken(), PollTurns(read_turns()))
        queue = feed.listen("reader")
        async with asyncio.timeout(PATIENCE):
            await feed.first_look()
            assert await queue.get() is None

    asyncio.run(run())
    assert "a row that nobody expected" in caplog.text


def test_streams_of_one_caller_share_a_turn() -> None:
    """Several jobs, each with a stream of one caller: one poll runs after the other, and those of others beside it."""

    async def run() -> None:
        gates = {name: threading.Event() for name in ("first", "second", "other")}
        polled: asyncio.Queue[str] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        class Slow(Counted):
            def __init__(self, name: str) -> None:
                super().__init__()
                self._name = name

            def poll(self) -> list[StreamEvent]:
                loop.call_soon_threadsafe(polled.put_nowait, self._name)
                gates[self._name].wait(PATIENCE)
                return []

        reads = read_turns()
        turns = PollTurns(reads)
        feeds = {name: Feed(Slow(name), turns) for name in gates}
        for name, feed in feeds.items():
            feed.listen("other" if name == "other" else "greedy")
        assert {await polled.get(), await polled.get()} == {"first", "other"}
        assert (reads.waiting("greedy"), polled.qsize()) == (0, 0), "the second poll waits for the first"
        gates["first"].set()
        assert await polled.get() == "second"
        for name, feed in feeds.items():
            gates[name].set()
            feed.close()

    asyncio.run(run())


def test_a_poll_for_several_callers_is_in_the_turn_of_the_one_who_waits_least() -> None:
    async def run() -> None:
        reads = CallerTurns(most=2, most_each=1)
        turns = PollTurns(reads)
        async with turns.turn(["greedy"]), asyncio.timeout(PATIENCE):
            waiting = asyncio.create_task(reads.take("greedy"))
            await asyncio.sleep(0)
            async with turns.turn(["greedy", "other"]):
                assert reads.waiting("greedy") == 1
            waiting.cancel()

    asyncio.run(run())


def test_a_listener_that_cannot_keep_up_is_let_go() -> None:
    async def run() -> None:
        feed = Feed(Counted(events=BACKLOG // 2 + 1), PollTurns(read_turns()))
        slow = feed.listen("reader")
        told: StreamEvent | None = StreamEvent("", "", b"")
        while told is not None:  # whoever takes one event between two looks cannot keep up
            told = await slow.get()
            await asyncio.sleep(EAGER)
        assert feed.leave(slow), "nobody is listening any more"
        feed.close()

    asyncio.run(run())


def test_large_events_wait_in_small_numbers() -> None:
    """A listener that reads nothing holds about a megabyte; one that reads gets events of any size."""
    listener, large = Listener(), StreamEvent("status", "1", b"x" * (BACKLOG_BYTES // 2 + 1))
    listener.put_nowait(large)
    listener.put_nowait(large)
    with pytest.raises(asyncio.QueueFull):
        listener.put_nowait(StreamEvent("progress", "2", b"{}"))
    for _ in range(2 * BACKLOG):
        assert listener.get_nowait() is large
        listener.put_nowait(large)


def test_an_outage_is_logged_once_and_not_at_every_look(caplog: pytest.LogCaptureFixture) -> None:
    class Away(Counted):
        def poll(self) -> list[StreamEvent]:
            if len(super().poll()) and self.looks < 4:
                raise Unavailable("the database is away")
            return [StreamEvent("logs", "1.0.0", b"{}")]

    async def run() -> None:
        source = Away(events=1)
        feed = Feed(source, PollTurns(read_turns()))
        await feed.listen("reader").get()
        assert source.looks == 4
        feed.close()

    asyncio.run(run())
    said = [record.getMessage() for record in caplog.records if record.name.startswith("silkline")]
    assert said == ["no events for now: the database is away"]


def test_events_with_many_or_long_lines_are_cut(embedded: Database) -> None:
    """A returning listener gets every line once, in events of limited size that are read one by one."""
    job, _ = jobs.enqueue(embedded, NewJob("page", {"url": "https://example.com/"}, paused=True))
    lines = [logs.NewLine(job.id, 1, "info", f"{number} {'x' * 4_000}", embedded.now()) for number in range(700)]
    logs.append(embedded, lines)
    events = event_sources.catch_up(embedded, job.id, Cursor(0, 0, 1), Cursor(10**9))
    assert next(events).name == "status"
    told = []
    for event in events:
        assert len(event.data) < 400_000
        told += [line["message"] for line in json.loads(event.data)["lines"]]
    assert told == [line.message for line in lines]


def test_nobody_listening_means_nobody_looking(embedded: Database) -> None:
    job, _ = jobs.enqueue(embedded, NewJob("page", {"url": "https://example.com/"}, paused=True))

    async def run() -> None:
        hub = Hub(embedded)
        stream = hub.follow(job.id, None, lambda: True, "reader")
        await anext(stream)
        await anext(stream)
        assert list(hub._feeds) == [job.id]
        await stream.aclose()  # type: ignore[attr-defined]
        assert hub._feeds == {}
        await asyncio.wait_for(hub.settled(job.id, 30, "reader"), 30)
        assert jobs.get(embedded, job.id).status is Status.PAUSED

    asyncio.run(run())

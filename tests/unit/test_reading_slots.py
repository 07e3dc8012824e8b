"""Answers that wait to be read in isolation take no request slot and never stop the fetching of others."""

import asyncio
from typing import Any

import msgspec

from silkline.crawl.answers import Answers
from silkline.crawl.endings import Endings
from silkline.crawl.fetcher_gauges import FetcherGauges
from silkline.crawl.frontier import Frontier
from silkline.crawl.guarded_reader import GuardedReader
from silkline.crawl.outbox import Outbox
from silkline.crawl.plan_from_spec import plan_of
from silkline.crawl.pump import Pump
from silkline.crawl.purpose import Purpose
from silkline.crawl.reading import NOT_TEXT, Body, PageReader
from silkline.crawl.url_queue import FrontierUrl
from silkline.model.fetched import Fetched
from silkline.model.spec import SiteSpec
from silkline.parse.pdf import PdfText
from silkline.reading_marks import ReadingMarks
from tests.unit.test_answers import OneResultEach

PLAN = plan_of(SiteSpec(url="http://a.example/"), fetchers=1, concurrency=8)
PDF = Fetched("http://a.example/", 200, body=b"%PDF-1.4" + bytes(19 << 20), content_type="application/pdf")


async def rooms(*, everything: bool) -> tuple[list[int], list[bool], int]:
    """How many requests may start after each of 20 PDFs from as many hosts, whether all must stop, and how many URLs
    are to be fetched again. Nothing is read meanwhile."""
    reader = GuardedReader(PLAN, ReadingMarks.open(""))
    reader.suspects.everything = everything
    frontier, outbox = Frontier(PLAN.pace, window=100, per_host=10), Outbox()
    purpose: Purpose = OneResultEach()  # type: ignore[assignment]
    nothing: Any = None
    parts = (frontier, outbox, Endings(PLAN.tuning, frontier, outbox, purpose, lambda: None))
    answers = Answers(PLAN, reader, None, *parts, purpose, FetcherGauges(0.0), lambda: None)
    pump = Pump(PLAN, nothing, reader, *parts, answers, purpose, nothing, nothing, nothing, nothing)
    found, full = [], []
    for id in range(20):
        host = frontier.host(f"host{id}.com")
        answers.take(host, FrontierUrl(0, id, f"http://{host.name}/", 0), PDF, 0.0, 1.0)
        found.append(pump._room(1.0))
        full.append(answers.full)
    reader.close()
    return found, full, len(pump.gate.put_offs)


def test_inputs_in_isolation_stop_no_request_and_what_has_no_room_is_fetched_again() -> None:
    found, full, put_off = asyncio.run(rooms(everything=False))
    assert found == [8] * 20
    assert not any(full)
    assert put_off == 17


def test_where_everything_is_read_in_isolation_inputs_use_slots() -> None:
    """Fetching more would help nobody: every page waits for the same reader."""
    found, full, put_off = asyncio.run(rooms(everything=True))
    assert found == [7, 6, *[5] * 18]
    assert not any(full)
    assert put_off == 17


def test_a_pdf_is_cut_before_its_reader_is_killed(monkeypatch: Any) -> None:
    """Otherwise the text that was read until then would be lost."""
    limits: list[float] = []

    def parse(body: bytes, *, max_content: int, max_seconds: float) -> PdfText:
        limits.append(max_seconds)
        return PdfText(problem="empty")

    monkeypatch.setattr("silkline.crawl.reading.parse_pdf", parse)
    for by_name, seconds in ((False, 8.0), (True, 8.0), (False, 1.0), (True, 100.0)):
        tuning = msgspec.structs.replace(PLAN.tuning, read_seconds=seconds)
        plan = msgspec.structs.replace(PLAN, tuning=tuning, by_name=by_name)
        reading = PageReader(plan).reading_of(Body(1, "http://a.example/", b"%PDF-1.4", "application/pdf", "", ""))
        assert (reading.reason == NOT_TEXT) == by_name
    assert limits == [3.0, 6.0, 0.75, 20.0]

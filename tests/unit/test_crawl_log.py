"""The log of a crawl: what it tells, and how often."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from silkline.crawl.crawl_log import CrawlLog, settings_in_words
from silkline.crawl.messages import FoundUrl, PageOutcome
from silkline.crawl.plan import Plan, Tuning
from silkline.crawl.plan_from_spec import plan_of
from silkline.crawl.recorder import Recorder
from silkline.crawl.robots_notes import MOST_HOSTS, RobotsNotes, in_words
from silkline.fetch.robots import ALLOW_ALL, DISALLOW_ALL, Robots
from silkline.model.host_wait import CRAWL_DELAY, TURN, Wait
from silkline.model.ledger import Counts, Settled
from silkline.model.spec import SiteSpec

EAGER = Tuning(log_seconds=0.0)
SLOW = Wait("slow.example", 100, 0, CRAWL_DELAY, "", 5.0, None, 500.0)
READY = Wait("quick.example", 100, 0, TURN, "", 0.0, None, 500.0)


def plan(**spec: Any) -> Plan:
    return plan_of(SiteSpec(url="https://example.com/", **spec), fetchers=1, concurrency=4, tuning=EAGER)


def found(depth: int, url: str = "https://example.com/") -> FoundUrl:
    return FoundUrl(1, url, "example.com", depth, "queued", None, None, None, "link")


def told(act: Callable[[CrawlLog, Recorder], Any], caplog: pytest.LogCaptureFixture, **spec: Any) -> list[str]:
    """The lines of a crawl that does this."""
    caplog.set_level(logging.INFO)

    async def crawl() -> None:
        wanted = plan(**spec)
        recorder = Recorder(None, wanted, logging.getLogger("test"))  # type: ignore[arg-type]
        done = act(CrawlLog(logging.getLogger("test"), wanted, recorder), recorder)
        if done is not None:
            await done
        recorder.close()

    asyncio.run(crawl())
    return caplog.messages


def test_the_settings_in_force_contain_no_secret() -> None:
    secrets = {"headers": {"Authorization": "Bearer abcdefgh"}, "cookies": {"session": "ijklmnop"}}
    words = ", ".join(settings_in_words(plan(**secrets, proxy="http://me:qrstuvwx@proxy.example:3128", depth=3)))
    assert "depth 3" in words
    assert "headers Authorization, Cookie for the seeds" in words
    assert "through a proxy" in words
    for secret in ("abcdefgh", "ijklmnop", "qrstuvwx", "proxy.example"):
        assert secret not in words


def test_one_fetcher_has_its_requests_alone() -> None:
    assert settings_in_words(plan())[0] == "1 fetcher with 4 concurrent requests"
    two = msgspec.structs.replace(plan(), fetchers=2, concurrency=1)
    assert settings_in_words(two)[0] == "2 fetchers with 1 concurrent request each"


def test_a_depth_is_finished_once(caplog: pytest.LogCaptureFixture) -> None:
    def act(story: CrawlLog, recorder: Recorder) -> None:
        recorder.append([found(0)])
        story.look()
        recorder.append([found(1), found(1)])
        recorder.deliver((None, 0), [PageOutcome(Settled(1, "done"), None, 0)])
        story.look()
        story.look()
        recorder.deliver(
            (None, 0), [PageOutcome(Settled(2, "done"), None, 1), PageOutcome(Settled(3, "done"), None, 1)]
        )
        story.look()

    assert told(act, caplog) == ["depth 0 finished, 2 URLs found", "depth 1 finished, no more URLs found"]


def test_progress_tells_pages_errors_processes_and_slow_hosts(caplog: pytest.LogCaptureFixture) -> None:
    async def act(story: CrawlLog, recorder: Recorder) -> None:
        recorder.append([found(0) for _ in range(5)])
        recorder.deliver((None, 0), [PageOutcome(Settled(1, "done"), None, 0)])
        recorder.settle([(Settled(2, "failed", "http_404"), 0), (Settled(3, "skipped", "robots"), 0)])
        assert story.look()
        await story.progress([READY, SLOW], in_flight=1)
        await story.progress([READY, SLOW], in_flight=1)

    first, slow, second = told(act, caplog)
    assert first.startswith("1 pages (")
    assert "2 queued" not in first
    assert "1 queued, 1 in flight, 1 failed (1 http_404), 1 skipped (1 robots); " in first
    assert "1 leader " in first
    assert "open files" in first
    assert slow == ("slow hosts: slow.example (100 queued, about 8 min left): robots.txt asks for 5 s between pages"), (
        "a host is named once, and not if it only waits for its turn"
    )
    assert second.startswith("1 pages (0.0 a second)")
    data = [record.data for record in caplog.records if getattr(record, "event", "") == "progress"]
    assert data[0]["failed"] == {"http_404": 1}
    assert data[0]["processes"][0]["memory"] > 1_000_000


def test_the_summary_adds_up(caplog: pytest.LogCaptureFixture) -> None:
    counts = Counts(discovered=9, done=6, failed=1, skipped=2, bytes=2_000_000, seconds=3.0)
    reasons = [("failed", "timeout", 1), ("skipped", "robots", 2)]
    lines = told(lambda story, _: story.end(counts, reasons, None), caplog)
    assert lines == [
        "finished: 9 URLs = 6 done + 1 failed (1 timeout) + 2 skipped (2 robots); "
        "2.0 MB in 3.0 s of crawling, 2.0 pages a second"
    ]


@pytest.mark.parametrize(
    ("number", "size"), [(2_300, "2.3 kB in"), (999_949, "999.9 kB in"), (999_950, "1.0 MB in"), (10**9, "1.0 GB in")]
)
def test_the_summary_of_a_small_crawl_has_a_small_unit(
    caplog: pytest.LogCaptureFixture, number: int, size: str
) -> None:
    (line,) = told(lambda story, _: story.end(Counts(discovered=1, done=1, bytes=number), [], None), caplog)
    assert f"; {size} " in line


def test_many_seeds_are_not_all_named(caplog: pytest.LogCaptureFixture) -> None:
    lines = told(lambda story, _: story.begin([f"https://{n}.example/" for n in range(1_000)]), caplog)
    assert lines[1].startswith("1,000 seeds: https://0.example/, ")
    assert lines[1].endswith(" and 995 more")


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (Robots("-/a\n+/b", 0.0, 5.0, ("https://x/s.xml",)), "2 rules for us, Crawl-delay 5 s, 1 sitemap"),
        (Robots(ALLOW_ALL, 0.0), "0 rules for us"),
        (Robots(DISALLOW_ALL, 0.0), "everything is forbidden"),
        (Robots(ALLOW_ALL, 0.0, reason="http_404"), "not available (http_404), so everything may be fetched"),
        (
            Robots(DISALLOW_ALL, 0.0, reason="timeout"),
            "could not be fetched (timeout), so nothing else may be fetched for now",
        ),
    ],
)
def test_rules_in_words(rules: Robots, words: str) -> None:
    assert in_words(rules) == words


def test_only_the_first_hosts_are_noted() -> None:
    notes = RobotsNotes()
    for number in (0, *range(1_000)):
        notes.add(f"{number}.example", Robots(ALLOW_ALL, 0.0))
    assert len(notes.take()) == MOST_HOSTS
    assert notes.take() == []

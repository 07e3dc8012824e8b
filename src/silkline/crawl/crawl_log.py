"""The log of a crawl: tells at a human pace what the crawl does, from counters that its leader has anyway.

Nothing here runs for each page. The leader calls `look` about 20 times a second, and `progress` at intervals.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from silkline import process_usage
from silkline.crawl.plan import Plan
from silkline.crawl.recorder import Recorder
from silkline.crawl.robots_notes import MOST_HOSTS
from silkline.model.host_wait import LEVEL, TURN, Wait, why
from silkline.model.job import End
from silkline.model.ledger import FAILED, SKIPPED, Counts
from silkline.process_usage import LEADER, by_role, children_by_parent, usage_of

_LOOK: Final = 1.0
_DAY: Final = 86_400.0
_SLOWER: Final = 10  # after a day, lines are this many times less frequent
_SEEDS_SHOWN: Final = 5
_REASONS_SHOWN: Final = 5
_HOSTS_SHOWN: Final = 3
_SLOW: Final = 30.0  # seconds that a host still needs
_DEPTHS_SHOWN: Final = 10
_SAY_SLOW_AGAIN: Final = 600.0


class CrawlLog:
    """One attempt of a job. Must be created inside an event loop. `depths`: whether the job follows links."""

    def __init__(self, log: logging.Logger, plan: Plan, recorder: Recorder, *, depths: bool = True) -> None:
        self._log = log
        self._depths = depths
        self._plan = plan
        self._recorder = recorder
        self._loop = asyncio.get_running_loop()
        self._started_at = self._looked_at = self._said_at = self._loop.time()
        self._stored = 0
        self._depth = -1
        self._robots = 0
        self._slow: set[tuple[str, str]] = set()
        self._said_slow_at = 0.0

    def begin(self, seeds: Sequence[str]) -> None:
        """The settings in force, the seeds, and what is left from earlier attempts."""
        self._log.info("settings: %s", ", ".join(settings_in_words(self._plan)))
        shown = ", ".join(seeds[:_SEEDS_SHOWN])
        if seeds:
            more = len(seeds) - _SEEDS_SHOWN
            others = f" and {more:,} more" if more > 0 else ""
            self._log.info("%s: %s%s", _several(len(seeds), "seed"), shown, others)
        else:
            self._log.info("the seeds are in the ledger")

    def started(self) -> None:
        recorder = self._recorder
        self._stored, self._said_at = recorder.stored, self._loop.time()
        self._log.info(
            "crawling with %s and %s; known: %s, to do: %d",
            *(_several(self._plan.fetchers, "fetcher"), _several(self._plan.parsers, "parser")),
            *(_several(recorder.known, "URL"), recorder.pending),
        )

    def robots(self, words: Sequence[str]) -> None:
        """What the robots.txt of some hosts says; only the first hosts of the crawl are logged."""
        for line in words[: MOST_HOSTS - self._robots]:
            self._robots += 1
            self._log.info("robots.txt of %s", line)

    def look(self) -> bool:
        """Log which depths are finished. Returns whether it is time for `progress`."""
        now = self._loop.time()
        if now - self._looked_at < min(_LOOK, self._plan.tuning.log_seconds):
            return False
        self._looked_at = now
        self._say_depth()
        every = self._plan.tuning.log_seconds * (1 if now - self._started_at < _DAY else _SLOWER)
        return now - self._said_at >= every

    async def progress(self, waits: Sequence[Wait], in_flight: int) -> None:
        """Pages, rate, queue, errors by reason, processes, and the slow hosts."""
        recorder, now = self._recorder, self._loop.time()
        rate = (recorder.stored - self._stored) / max(now - self._said_at, 0.001)
        self._stored, self._said_at = recorder.stored, now
        usage = by_role(await self._loop.run_in_executor(None, _own_processes))
        failed, skipped = recorder.failures, recorder.reasons - recorder.failures
        parts = [
            f"{recorder.stored:,} pages ({rate:,.1f} a second)",
            f"{max(recorder.pending - in_flight, 0):,} queued",
            f"{in_flight:,} in flight",
            f"{failed.total():,} failed{_in_brackets(failed)}",
            f"{skipped.total():,} skipped{_in_brackets(skipped)}",
        ]
        data = {
            "pages": recorder.stored,
            "rate": round(rate, 2),
            "queued": max(recorder.pending - in_flight, 0),
            "in_flight": in_flight,
            "failed": dict(failed.most_common(20)),
            "skipped": dict(skipped.most_common(20)),
            "processes": [role._asdict() for role in usage],
        }
        text = f"{', '.join(parts)}; {_processes_in_words(usage)}"
        self._log.info("%s", text, extra={"event": "progress", "data": data})
        self._say_slow(waits, now)

    def end(self, counts: Counts, reasons: Sequence[tuple[str, str, int]], order: End | None) -> None:
        """The summary of all attempts, after the last checkpoint."""
        self._say_depth()
        states = {"done": counts.done, "unchanged": counts.unchanged, "failed": counts.failed}
        states |= {"skipped": counts.skipped, "queued": counts.queued + counts.in_flight}
        by_state = {
            state: Counter({reason: urls for of, reason, urls in reasons if of == state}) for state in (FAILED, SKIPPED)
        }
        told = [
            f"{number:,} {state}{_in_brackets(by_state.get(state, Counter()))}"
            for state, number in states.items()
            if number
        ]
        rate = (counts.done + counts.unchanged) / max(counts.seconds, 0.001)
        text = (
            f"{order.value if order else 'finished'}: {counts.discovered:,} URLs"
            + (f" = {' + '.join(told)}" if told else "")
            + f"; {_size(counts.bytes)} in {counts.seconds:,.1f} s of crawling, {rate:,.1f} pages a second"
        )
        data: dict[str, Any] = {"discovered": counts.discovered, **states, "bytes": counts.bytes}
        data |= {"seconds": round(counts.seconds, 3), "rate": round(rate, 2)}
        data["reasons"] = {state: dict(found.most_common(20)) for state, found in by_state.items()}
        self._log.info("%s", text, extra={"event": "summary", "data": data})

    def _say_depth(self) -> None:
        levels = self._recorder.levels
        depth = levels.finished()
        if not self._depths or depth <= self._depth or self._depth >= _DEPTHS_SHOWN:
            return
        self._depth = depth
        found = levels.found(depth + 1)
        data = {"depth": depth, "found": found}
        number = f"{found:,} URLs" if found else "no more URLs"
        self._log.info("depth %d finished, %s found", depth, number, extra={"event": "depth", "data": data})

    def _say_slow(self, waits: Sequence[Wait], now: float) -> None:
        slow = [wait for wait in waits if wait.reason not in (TURN, LEVEL) and wait.seconds_left >= _SLOW]
        slow = slow[:_HOSTS_SHOWN]
        known = {(wait.host, wait.reason) for wait in slow}
        if not slow or (known <= self._slow and now - self._said_slow_at < _SAY_SLOW_AGAIN):
            return
        self._slow, self._said_slow_at = known, now
        told = [f"{w.host} ({w.queued:,} queued, about {_minutes(w.seconds_left)} left): {why(w)}" for w in slow]
        data = {"hosts": [wait._asdict() for wait in slow]}
        self._log.info("slow hosts: %s", "; ".join(told), extra={"event": "slow_hosts", "data": data})


def settings_in_words(plan: Plan) -> list[str]:
    """The settings in force. Contains the names of headers, but no value that may be secret."""
    pace = plan.pace
    headers = sorted({name for pairs in plan.origin_headers.values() for name, _ in pairs})
    return [
        each
        for each in (
            f"{_several(plan.fetchers, 'fetcher')} with {_several(plan.concurrency, 'concurrent request')}"
            + (" each" if plan.fetchers > 1 else ""),
            _several(plan.parsers, "parser") if plan.parsers else "pages are parsed by the fetchers",
            f"scope {plan.scope}",
            f"depth {plan.depth}" if plan.depth is not None else "",
            f"at most {plan.limit:,} pages" if plan.limit is not None else "",
            f"at most {plan.max_duration:g} s" if plan.max_duration is not None else "",
            f"{pace.delay:g} s between the pages of a host",
            f"{pace.per_host} concurrent requests to a host",
            f"content {plan.content}",
            _rendering_in_words(plan),
            f"{len(plan.include)} include patterns" if plan.include else "",
            f"{len(plan.exclude)} exclude patterns" if plan.exclude else "",
            f"{len(plan.exclude_hosts):,} excluded hosts" if plan.exclude_hosts else "",
            "only hosts of seeds" if plan.seeded_hosts_only else "",
            "robots.txt is ignored" if plan.ignore_robots else "robots.txt is obeyed",
            "through a proxy" if plan.proxy else "",
            f"headers {', '.join(headers)} for the seeds" if headers else "",
            f"private addresses {', '.join(plan.allow_private[:5])}" if plan.allow_private else "",
            "responses are archived (WARC)" if plan.archive else "",
            f"user agent {plan.user_agent}",
        )
        if each
    ]


def _rendering_in_words(plan: Plan) -> str:
    if plan.rendering is None:
        return ""
    which = "pages that need scripts" if plan.rendering.auto else "all pages"
    rendering = plan.rendering
    files = [f"a screenshot ({rendering.screenshot})"] if rendering.screenshot else []
    kept = " and ".join([*files, "a PDF"] if rendering.pdf else files)
    return f"{which} are rendered, {rendering.count} at the same time" + (f", with {kept} of each" if kept else "")


def _own_processes() -> list[process_usage.ProcessUsage]:
    own = os.getpid()
    return usage_of(process_usage.below(own, children_by_parent()), own, LEADER)


def _processes_in_words(usage: Sequence[process_usage.RoleUsage]) -> str:
    number, memory = sum(one.processes for one in usage), sum(one.memory for one in usage)
    files = sum(one.open_files for one in usage)
    each = (f"{_several(one.processes, one.role)} {_size(one.memory)}" for one in usage)
    return f"{_several(number, 'process', 'es')} with {_size(memory)} and {files:,} open files ({', '.join(each)})"


def _several(number: int, word: str, ending: str = "s") -> str:
    return f"{number:,} {word}{'' if number == 1 else ending}"


def _in_brackets(reasons: Mapping[str, int]) -> str:
    most = Counter(reasons).most_common(_REASONS_SHOWN)
    return f" ({', '.join(f'{number:,} {reason}' for reason, number in most)})" if most else ""


def _size(number: int) -> str:
    for unit, bytes_each in (("kB", 1_000), ("MB", 1_000_000)):
        if number < 999.95 * bytes_each:
            return f"{number / bytes_each:,.1f} {unit}"
    return f"{number / 1_000_000_000:,.1f} GB"


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:,.0f} min"

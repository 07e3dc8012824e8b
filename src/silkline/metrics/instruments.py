"""The instruments of all families that processes count in their meters. Each call takes well below a microsecond."""

from __future__ import annotations

from typing import Final

from silkline.metrics.families import BY_NAME
from silkline.metrics.process import Counter, Gauge, Histogram, name, new_cpu_seconds, role
from silkline.model.reasons import MEANINGS

REQUESTS: Final = Counter(BY_NAME["silkline_requests_total"])
REQUEST_FAILURES: Final = Counter(BY_NAME["silkline_request_failures_total"])
RECEIVED_BYTES: Final = Counter(BY_NAME["silkline_received_bytes_total"])
FETCH_SECONDS: Final = Histogram(BY_NAME["silkline_fetch_seconds"])
PARSE_SECONDS: Final = Histogram(BY_NAME["silkline_parse_seconds"])
RENDER_SECONDS: Final = Histogram(BY_NAME["silkline_render_seconds"])
CHECKPOINT_SECONDS: Final = Histogram(BY_NAME["silkline_checkpoint_seconds"])
FETCHER_PAGES: Final = Counter(BY_NAME["silkline_fetcher_pages_total"])
PAGES_PER_SECOND: Final = Gauge(BY_NAME["silkline_pages_per_second"])
IN_FLIGHT: Final = Gauge(BY_NAME["silkline_in_flight"])
FRONTIER_URLS: Final = Gauge(BY_NAME["silkline_frontier_urls"])
UNSAVED_PAGES: Final = Gauge(BY_NAME["silkline_unsaved_pages"])
UNSAVED_BYTES: Final = Gauge(BY_NAME["silkline_unsaved_bytes"])
PARSER_QUEUE: Final = Gauge(BY_NAME["silkline_parser_queue_pages"])
BACKPRESSURE: Final = Counter(BY_NAME["silkline_backpressure_total"])
BACKPRESSURE_SECONDS: Final = Counter(BY_NAME["silkline_backpressure_seconds_total"])
RETRIES: Final = Counter(BY_NAME["silkline_retries_total"])
ROBOTS_REFUSALS: Final = Counter(BY_NAME["silkline_robots_refusals_total"])
TRAP_URLS: Final = Counter(BY_NAME["silkline_trap_urls_total"])
LINK_BATCHES: Final = Gauge(BY_NAME["silkline_link_batches_waiting"])
CACHE_LOOKUPS: Final = Counter(BY_NAME["silkline_cache_lookups_total"])
BROWSER_STARTS: Final = Counter(BY_NAME["silkline_browser_starts_total"])
BROWSER_DEATHS: Final = Counter(BY_NAME["silkline_browser_deaths_total"])
BROWSER_PAGES: Final = Counter(BY_NAME["silkline_browser_pages_total"])
BROWSER_WAITING: Final = Gauge(BY_NAME["silkline_browser_waiting"])
CLAIM_SECONDS: Final = Histogram(BY_NAME["silkline_claim_seconds"])
ATTEMPTS: Final = Counter(BY_NAME["silkline_attempts_total"])
RESCUES: Final = Counter(BY_NAME["silkline_rescues_total"])
CRASHES: Final = Counter(BY_NAME["silkline_crashes_total"])
PROCESS_DEATHS: Final = Counter(BY_NAME["silkline_process_deaths_total"])
DATABASE_SECONDS: Final = Counter(BY_NAME["silkline_database_seconds_total"])
DATABASE_STATEMENTS: Final = Counter(BY_NAME["silkline_database_statements_total"])
HTTP_SECONDS: Final = Histogram(BY_NAME["silkline_http_seconds"])
HTTP_ANSWERS: Final = Counter(BY_NAME["silkline_http_answers_total"])
PROCESS_CPU: Final = Counter(BY_NAME["silkline_process_cpu_seconds_total"])

_CRASHES: Final = frozenset(
    {"memory", "oom_kill", "timeout", "stalled", "read_timeout", "fenced", "unknown", "supervisor lost", "owner lost"}
)


def reason_label(reason: str | None) -> str:
    """A reason as a label: one of a limited number, whatever a server or a plug-in says."""
    if reason in MEANINGS:
        return reason
    if reason and reason.startswith("http_") and len(reason) == 8:
        return f"http_{reason[5]}xx" if reason[5] in "12345" else "other"
    return "other"


def crash_label(reason: str) -> str:
    """The exit reason of a crashed attempt as a label."""
    if reason in _CRASHES:
        return reason.replace(" ", "_")
    if reason.startswith("crashed (signal "):
        return f"signal_{reason[16:-1]}"
    return "exit" if reason.startswith("crashed (exit ") else "exception" if reason.startswith("crashed (") else "other"


def tell_cpu() -> None:
    """Add the CPU time that this process used since the last call."""
    PROCESS_CPU.add(new_cpu_seconds(), role())


def meter_name() -> str:
    """The label `fetcher` of this process."""
    return name() or role()

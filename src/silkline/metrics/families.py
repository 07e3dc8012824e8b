"""Every family of metrics. docs/reference/metrics.md is generated from this table.

Names begin with `silkline_` and use base units: seconds, bytes. No label has a URL, a host or the id of a job, so the
number of series is bounded.
"""

from __future__ import annotations

from typing import Final

from silkline.metrics.family import FAST, NETWORK, QUEUE, Family, Source, Type

_COUNTER, _GAUGE, _HISTOGRAM = Type.COUNTER, Type.GAUGE, Type.HISTOGRAM
_PROCESSES, _CHECKPOINTS, _DATABASE = Source.PROCESSES, Source.CHECKPOINTS, Source.DATABASE
_MACHINE = Source.MACHINE

_ROLE = (
    "role",
    "`supervisor`, `fork_server`, `runner`, `fetcher`, `parser`, `api`, `command`, `browser`, `other`",
)
_FETCHER = ("fetcher", "the meter of the fetcher: `runner-0` (fetcher 0 of a crawl), `fetcher-0`, `fetcher-1`, …")
_REASON = ("reason", "a reason of the ledger, with `http_4xx` and `http_5xx` for statuses; `other` for unknown ones")
_STATE = ("state", "`done`, `unchanged`, `failed`, `skipped`")
_LEVEL = ("level", "`soft` (fewer requests start), `hard` (none start)")
_LEVELS = (("soft",), ("hard",))
_KIND = ("kind", "a kind of job")
_STATEMENT = ("statement", "the name of a statement in `store/sql`")

CRAWL: Final = (
    Family("silkline_urls_discovered_total", _COUNTER, _CHECKPOINTS, "URLs that checkpoints added to ledgers."),
    Family(
        *("silkline_urls_settled_total", _COUNTER, _CHECKPOINTS),
        "URLs that checkpoints moved to a final state; `done` are the stored pages. Equals the counts of the ledgers.",
        (_STATE,),
    ),
    Family(
        *("silkline_urls_requeued_total", _COUNTER, _CHECKPOINTS),
        "Failed URLs that were queued again, and settle again later. `failed` minus these is the count of the ledgers.",
    ),
    Family("silkline_page_bytes_total", _COUNTER, _CHECKPOINTS, "Bytes received for the URLs of checkpoints."),
    Family("silkline_results_total", _COUNTER, _CHECKPOINTS, "Results that were stored, of jobs of all kinds."),
    Family("silkline_checkpoints_total", _COUNTER, _CHECKPOINTS, "Checkpoints that were committed."),
    Family(
        *("silkline_requests_total", _COUNTER, _PROCESSES),
        "HTTP requests that ended, also those for pages that a crash made us fetch again.",
        (
            ("purpose", "`page`, `robots`, `sitemap`, `other`"),
            ("status", "`1xx`, `2xx`, `3xx`, `4xx`, `5xx`, or `none` without an answer"),
        ),
        tuple(("page", status) for status in ("2xx", "3xx", "4xx", "5xx", "none")),
    ),
    Family(
        *("silkline_request_failures_total", _COUNTER, _PROCESSES, "HTTP requests that failed or got 4xx or 5xx."),
        (_REASON,),
    ),
    Family("silkline_received_bytes_total", _COUNTER, _PROCESSES, "Bytes received from the web by our HTTP client."),
    Family(
        *(
            "silkline_fetch_seconds",
            _HISTOGRAM,
            _PROCESSES,
            "Time of a request for a page, until its body is complete.",
        ),
        buckets=NETWORK,
    ),
    Family(
        *("silkline_parse_seconds", _HISTOGRAM, _PROCESSES, "Time to parse a page."),
        (("role", "where it was parsed: `runner`, `fetcher`, `parser`; `reader`: in isolation, waiting included"),),
        buckets=FAST,
    ),
    Family(
        *("silkline_render_seconds", _HISTOGRAM, _PROCESSES, "Time to render a page in a browser, waiting included."),
        buckets=NETWORK,
    ),
    Family("silkline_checkpoint_seconds", _HISTOGRAM, _PROCESSES, "Time to write a checkpoint.", buckets=NETWORK),
    Family(
        *("silkline_fetcher_pages_total", _COUNTER, _PROCESSES),
        "Pages that a fetcher finished; `rate()` is pages a second by fetcher, the sum of it pages a second in all.",
        (_FETCHER,),
    ),
    Family(
        *("silkline_pages_per_second", _GAUGE, _PROCESSES, "Pages a second of a fetcher over the last seconds."),
        (_FETCHER,),
    ),
    Family("silkline_in_flight", _GAUGE, _PROCESSES, "URLs that are being fetched, parsed or rendered."),
    Family("silkline_frontier_urls", _GAUGE, _PROCESSES, "URLs in the frontiers, in memory."),
    Family("silkline_urls_pending", _GAUGE, _DATABASE, "Queued URLs of running crawls."),
    Family("silkline_unsaved_pages", _GAUGE, _PROCESSES, "Finished URLs that no checkpoint has stored yet."),
    Family("silkline_unsaved_bytes", _GAUGE, _PROCESSES, "The size of these URLs' results in memory."),
    Family("silkline_parser_queue_pages", _GAUGE, _PROCESSES, "Pages that wait for a parser or are in one."),
    Family(
        "silkline_backpressure_total", _COUNTER, _PROCESSES, "How often a fetcher reached a limit.", (_LEVEL,), _LEVELS
    ),
    Family(
        *("silkline_backpressure_seconds_total", _COUNTER, _PROCESSES, "Time that fetchers spent above a limit."),
        (_LEVEL,),
        _LEVELS,
    ),
    Family("silkline_retries_total", _COUNTER, _PROCESSES, "Requests that will be repeated later.", (_REASON,)),
    Family("silkline_robots_refusals_total", _COUNTER, _PROCESSES, "URLs not fetched because of robots.txt."),
    Family("silkline_trap_urls_total", _COUNTER, _PROCESSES, "URLs not fetched because they look like a trap."),
    Family(
        *("silkline_link_batches_waiting", _GAUGE, _PROCESSES),
        "Batches of links on their way to the part of a crawl that owns their hosts.",
        (("between", "`fetchers`; links that other shards sent count too"),),
        (("fetchers",),),
    ),
    Family(
        *("silkline_cache_lookups_total", _COUNTER, _PROCESSES, "Lookups in caches."),
        (("cache", "`page`, `robots`, `dns`"), ("answer", "`hit`, `miss`")),
        tuple((cache, answer) for cache in ("page", "robots", "dns") for answer in ("hit", "miss")),
    ),
    Family("silkline_browser_starts_total", _COUNTER, _PROCESSES, "Browsers that were started."),
    Family("silkline_browser_deaths_total", _COUNTER, _PROCESSES, "Browsers that died unexpectedly."),
    Family(
        *("silkline_browser_pages_total", _COUNTER, _PROCESSES, "Pages that a browser rendered, or failed to render."),
        (("outcome", "`rendered`, `failed`"),),
        (("rendered",), ("failed",)),
    ),
    Family("silkline_browser_waiting", _GAUGE, _PROCESSES, "Pages that wait for a free browser."),
)

SERVICE: Final = (
    Family("silkline_jobs", _GAUGE, _DATABASE, "Jobs by status.", (("status", "a status of jobs"),)),
    Family(
        *("silkline_jobs_by_kind", _GAUGE, _DATABASE, "Jobs by kind and status."),
        (_KIND, ("status", "a status of jobs")),
    ),
    Family(
        *("silkline_queue_jobs", _GAUGE, _DATABASE, "Queued jobs that may run now."),
        (_KIND, ("tenant", "a tenant, empty without one; `other` beyond the 50 with the most jobs")),
    ),
    Family("silkline_queue_oldest_seconds", _GAUGE, _DATABASE, "The longest wait of a job in the queue.", (_KIND,)),
    Family(
        *("silkline_heartbeat_age_seconds", _GAUGE, _DATABASE),
        "The oldest heartbeat of a running job; 0 if no job runs.",
    ),
    Family("silkline_workers_alive", _GAUGE, _DATABASE, "Workers with a recent heartbeat."),
    Family("silkline_worker_slots", _GAUGE, _DATABASE, "Jobs that all live workers can run at once."),
    Family(
        *("silkline_claim_seconds", _HISTOGRAM, _PROCESSES, "From the time when a job may run to its claim."),
        buckets=QUEUE,
    ),
    Family(
        *("silkline_attempts_total", _COUNTER, _PROCESSES, "Attempts that ended."),
        (_KIND, ("outcome", "the status of the job after it: `completed`, `failed`, `queued`, `paused`, …")),
    ),
    Family("silkline_rescues_total", _COUNTER, _PROCESSES, "Jobs taken back from a worker that seemed dead."),
    Family(
        *("silkline_crashes_total", _COUNTER, _PROCESSES, "Attempts that crashed."),
        (
            (
                "reason",
                "`signal_9`, …, `exit`, `exception`, `memory`, `oom_kill`, `timeout`, `stalled`, …, `other`",
            ),
        ),
    ),
    Family(
        *("silkline_process_deaths_total", _COUNTER, _PROCESSES, "Fetchers and parsers that died and were replaced."),
        (("role", "`fetcher`, `parser`"),),
        (("fetcher",), ("parser",)),
    ),
    Family(
        *(
            "silkline_database_seconds_total",
            _COUNTER,
            _PROCESSES,
            "Time of database statements, fetching rows included.",
        ),
        (_STATEMENT,),
    ),
    Family(
        *("silkline_database_statements_total", _COUNTER, _PROCESSES, "Database statements that were executed."),
        (_STATEMENT,),
    ),
    Family(
        *("silkline_http_seconds", _HISTOGRAM, _PROCESSES, "Time to answer, until the first byte."),
        (("method", "`GET`, `HEAD`, `POST`, `DELETE`, `other`"), ("route", "the pattern of a route")),
        buckets=NETWORK,
    ),
    Family(
        *("silkline_http_answers_total", _COUNTER, _PROCESSES, "Answers by status."),
        (("method", "as above"), ("route", "as above"), ("status", "the HTTP status")),
    ),
)

MACHINE: Final = (
    Family("silkline_processes", _GAUGE, _MACHINE, "Processes of Silkline on this machine.", (_ROLE,)),
    Family("silkline_process_resident_bytes", _GAUGE, _MACHINE, "Resident memory, shared pages included.", (_ROLE,)),
    Family("silkline_process_open_files", _GAUGE, _MACHINE, "Open file descriptors.", (_ROLE,)),
    Family(
        *("silkline_process_cpu_seconds_total", _COUNTER, _PROCESSES),
        "CPU time, of dead processes too, as far as they told it (decision 0030). Not for `browser` and `other`.",
        (_ROLE,),
    ),
    Family("silkline_disk_free_bytes", _GAUGE, _MACHINE, "Free space on the disk of the data directory."),
    Family("silkline_disk_watermark_bytes", _GAUGE, _MACHINE, "Below this much free space, no job is claimed."),
    Family("silkline_build_info", _GAUGE, _MACHINE, "Always 1.", (("version", "the version of Silkline"),)),
)

ALL: Final = CRAWL + SERVICE + MACHINE
BY_NAME: Final = {family.name: family for family in ALL}

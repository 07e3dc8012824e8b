-- Jobs, their logs, and the supervisors that run them.
-- Times are ISO 8601 text in UTC with microseconds, so that they sort and people can read them.

CREATE TABLE crawl_jobs (
    id TEXT PRIMARY KEY,
    worker TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('queued', 'running', 'paused', 'stopped', 'cancelled', 'completed', 'failed')),
    desired TEXT NOT NULL CHECK (desired IN ('run', 'pause', 'stop', 'cancel')),
    request_url TEXT,
    priority INTEGER NOT NULL DEFAULT 0,
    tenant TEXT NOT NULL DEFAULT '',
    run_at TEXT NOT NULL,
    dedupe_key TEXT,
    parent_id TEXT,
    attempt INTEGER NOT NULL DEFAULT 0,
    retry_count INTEGER NOT NULL DEFAULT 0,
    crash_count INTEGER NOT NULL DEFAULT 0,
    max_retries INTEGER NOT NULL DEFAULT 3,
    run_lease INTEGER NOT NULL DEFAULT 0,
    worker_id TEXT,
    host TEXT,
    pid INTEGER,
    last_heartbeat TEXT,
    heartbeat_seq INTEGER NOT NULL DEFAULT 0,
    deadline_at TEXT,
    exit_reason TEXT,
    error_message TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    started_at TEXT,
    finished_at TEXT,
    metadata TEXT NOT NULL DEFAULT '{}',
    payload TEXT NOT NULL,  -- last: it may be large, and the columns behind it would be read through it
    CHECK ((status = 'running') = (worker_id IS NOT NULL))
);

-- Claiming: one seek per kind, tenant and priority, then the jobs that are due, in order.
CREATE INDEX crawl_jobs_claim ON crawl_jobs (worker, tenant, priority, run_at, id) WHERE status = 'queued';
-- Whose turn it is: when each tenant was last served.
CREATE INDEX crawl_jobs_turn ON crawl_jobs (tenant, started_at) WHERE started_at IS NOT NULL;
-- When the next scheduled job may start.
CREATE INDEX crawl_jobs_due ON crawl_jobs (run_at) WHERE status = 'queued';
-- Heartbeats, wishes, the watchdog: only what is running.
CREATE INDEX crawl_jobs_live ON crawl_jobs (worker_id) WHERE status = 'running';
-- One live job for each dedupe key.
CREATE UNIQUE INDEX crawl_jobs_dedupe ON crawl_jobs (dedupe_key)
    WHERE dedupe_key IS NOT NULL AND status IN ('queued', 'running', 'paused');
-- Lists filtered by status, newest first.
CREATE INDEX crawl_jobs_status ON crawl_jobs (status, id);
CREATE INDEX crawl_jobs_parent ON crawl_jobs (parent_id) WHERE parent_id IS NOT NULL;
-- Retention: the oldest finished first.
CREATE INDEX crawl_jobs_finished ON crawl_jobs (finished_at) WHERE finished_at IS NOT NULL;

CREATE TABLE job_logs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    level TEXT NOT NULL,
    message TEXT NOT NULL,
    at TEXT NOT NULL
);
CREATE INDEX job_logs_job ON job_logs (job_id, id);

CREATE TABLE workers (
    id TEXT PRIMARY KEY,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    boot_id TEXT NOT NULL,
    slots INTEGER NOT NULL,
    jobs_held INTEGER NOT NULL DEFAULT 0,
    idle INTEGER NOT NULL DEFAULT 0,
    state TEXT NOT NULL DEFAULT 'running',
    version TEXT NOT NULL,
    started_at TEXT NOT NULL,
    last_seen TEXT NOT NULL
) WITHOUT ROWID;

-- Jobs that are gone but whose data is still being removed.
CREATE TABLE deleted_jobs (id TEXT PRIMARY KEY) WITHOUT ROWID;

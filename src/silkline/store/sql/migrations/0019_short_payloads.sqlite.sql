-- The short form of a long payload, for lists and events (store/short_payload.py). Null: the payload is short.
-- The table is made anew, so that the payload is its last column again: SQLite reads through a payload of 16 MB to get at
-- the columns behind it.
CREATE TABLE crawl_jobs_new (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
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
    shard INTEGER,
    metadata TEXT NOT NULL DEFAULT '{}',
    short_payload TEXT,
    payload TEXT NOT NULL,  -- last, with no column behind it
    CHECK ((status = 'running') = (worker_id IS NOT NULL))
);
INSERT INTO crawl_jobs_new
SELECT id, kind, status, desired, request_url, priority, tenant, run_at, dedupe_key, parent_id, attempt, retry_count, crash_count,
       max_retries, run_lease, worker_id, host, pid, last_heartbeat, heartbeat_seq, deadline_at, exit_reason, error_message,
       created_at, updated_at, started_at, finished_at, shard, metadata,
       CASE WHEN length(payload) > 32768 THEN (
           SELECT json_group_object(each.key, CASE
               WHEN each.type IN ('true', 'false') THEN json(each.type)
               WHEN length(each.value) > 8192 AND each.key NOT IN ('headers', 'cookies', 'proxy', 'fields') THEN NULL
               WHEN each.type IN ('array', 'object') THEN json(each.value)
               ELSE each.value END)
           FROM json_each(payload) AS each) END,
       payload
FROM crawl_jobs ORDER BY rowid;
DROP TABLE crawl_jobs;
ALTER TABLE crawl_jobs_new RENAME TO crawl_jobs;

CREATE INDEX crawl_jobs_claim ON crawl_jobs (kind, tenant, priority, run_at, id) WHERE status = 'queued';
CREATE INDEX crawl_jobs_turn ON crawl_jobs (tenant, started_at) WHERE started_at IS NOT NULL;
CREATE INDEX crawl_jobs_due ON crawl_jobs (run_at) WHERE status = 'queued';
CREATE INDEX crawl_jobs_live ON crawl_jobs (worker_id) WHERE status = 'running';
CREATE INDEX crawl_jobs_status ON crawl_jobs (status, id);
CREATE INDEX crawl_jobs_parent ON crawl_jobs (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX crawl_jobs_finished ON crawl_jobs (finished_at) WHERE finished_at IS NOT NULL;
CREATE UNIQUE INDEX crawl_jobs_dedupe ON crawl_jobs (tenant, dedupe_key)
    WHERE dedupe_key IS NOT NULL AND status IN ('queued', 'running', 'paused');

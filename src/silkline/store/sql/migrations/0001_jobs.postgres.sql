-- Jobs, their logs, and the supervisors that run them.

CREATE TABLE crawl_jobs (
    id uuid PRIMARY KEY,
    worker text NOT NULL,
    status text NOT NULL CHECK (status IN ('queued', 'running', 'paused', 'stopped', 'cancelled', 'completed', 'failed')),
    desired text NOT NULL CHECK (desired IN ('run', 'pause', 'stop', 'cancel')),
    request_url text,
    payload jsonb NOT NULL,
    metadata jsonb NOT NULL DEFAULT '{}',
    priority integer NOT NULL DEFAULT 0,
    tenant text NOT NULL DEFAULT '',
    run_at timestamptz NOT NULL,
    dedupe_key text,
    parent_id uuid,
    attempt integer NOT NULL DEFAULT 0,
    retry_count integer NOT NULL DEFAULT 0,
    crash_count integer NOT NULL DEFAULT 0,
    max_retries integer NOT NULL DEFAULT 3,
    run_lease bigint NOT NULL DEFAULT 0,
    worker_id text,
    host text,
    pid integer,
    last_heartbeat timestamptz,
    heartbeat_seq bigint NOT NULL DEFAULT 0,
    deadline_at timestamptz,
    exit_reason text,
    error_message text,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    started_at timestamptz,
    finished_at timestamptz,
    CHECK ((status = 'running') = (worker_id IS NOT NULL))
)
-- Room on each page, so that a heartbeat, which touches no indexed column, stays a heap-only update.
WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

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
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id uuid NOT NULL,
    attempt integer NOT NULL,
    level text NOT NULL,
    message text NOT NULL,
    at timestamptz NOT NULL
);
CREATE INDEX job_logs_job ON job_logs (job_id, id);

CREATE TABLE workers (
    id text PRIMARY KEY,
    host text NOT NULL,
    pid integer NOT NULL,
    boot_id text NOT NULL,
    slots integer NOT NULL,
    jobs_held integer NOT NULL DEFAULT 0,
    idle boolean NOT NULL DEFAULT false,
    state text NOT NULL DEFAULT 'running',
    version text NOT NULL,
    started_at timestamptz NOT NULL,
    last_seen timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Jobs that are gone but whose data is still being removed.
CREATE TABLE deleted_jobs (id uuid PRIMARY KEY);

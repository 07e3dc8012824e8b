-- All statements that read or change crawl_jobs. Every write of an attempt is a compare-and-set on status, lease and
-- owner.

-- name: enqueue [sqlite]
-- Store new jobs, except jobs whose dedupe key belongs to a live job.
INSERT INTO crawl_jobs (id, kind, status, desired, request_url, payload, short_payload, metadata, priority, tenant,
                        run_at, dedupe_key, parent_id, max_retries, created_at, updated_at)
VALUES (:id, :kind, :status, :desired, :request_url, :payload, :short_payload, :metadata, :priority, :tenant,
        :run_at, :dedupe_key, :parent_id, :max_retries, :created_at, :created_at)
ON CONFLICT (tenant, dedupe_key) WHERE dedupe_key IS NOT NULL AND status IN ('queued', 'running', 'paused') DO NOTHING;

-- name: enqueue [postgres]
-- The same, as one statement over columns: a row costs a tenth of a statement per row.
INSERT INTO crawl_jobs (id, kind, status, desired, request_url, payload, short_payload, metadata, priority, tenant,
                        run_at, dedupe_key, parent_id, max_retries, created_at, updated_at)
SELECT id, kind, status, desired, request_url, payload, short_payload, metadata, priority, tenant,
       run_at, dedupe_key, parent_id, max_retries, created_at, created_at
FROM unnest(:id::uuid[], :kind::text[], :status::text[], :desired::text[], :request_url::text[], :payload::jsonb[],
            :short_payload::jsonb[], :metadata::jsonb[], :priority::int[], :tenant::text[], :run_at::timestamptz[],
            :dedupe_key::text[], :parent_id::uuid[], :max_retries::int[], :created_at::timestamptz[])
    AS new (id, kind, status, desired, request_url, payload, short_payload, metadata, priority, tenant, run_at,
            dedupe_key, parent_id, max_retries, created_at)
ON CONFLICT (tenant, dedupe_key) WHERE dedupe_key IS NOT NULL AND status IN ('queued', 'running', 'paused') DO NOTHING;

-- name: live_with_key
-- The live job with a dedupe key.
SELECT id FROM crawl_jobs WHERE tenant = :tenant AND dedupe_key = :dedupe_key AND status IN ('queued', 'running', 'paused');

-- name: wake_supervisors [postgres]
-- (SQLite has no NOTIFY; store/wakeup.py uses named pipes.)
-- Wake idle supervisors only: NOTIFY takes a lock on the whole server at commit.
SELECT pg_notify('silkline', '') WHERE EXISTS (SELECT 1 FROM workers WHERE idle);

-- name: claim [sqlite]
-- Take up to :wanted due jobs: highest priority first, then tenants in turn (those with fewer running jobs first, then
-- those served longest ago), then by time and id. A lane is one kind, tenant and priority. The recursion goes from each
-- lane to the next and finds its earliest job. Each step needs one or two index seeks, for any number of queued jobs.
-- The best jobs are in the lanes with the best earliest jobs, so only these lanes are read further. INDEXED BY is
-- necessary: without statistics the planner sorts every queued job at each step. Returns outlines, like `outlines` below:
-- a supervisor must not hold 16 MB for each of its runners.
WITH RECURSIVE
lanes (kind, tenant, priority, run_at, job) AS (
    SELECT first.kind, first.tenant, first.priority, first.run_at, first.rowid
    FROM json_each(:kinds) AS asked CROSS JOIN crawl_jobs AS first ON first.rowid = (
        SELECT j.rowid FROM crawl_jobs AS j INDEXED BY crawl_jobs_claim WHERE j.status = 'queued' AND j.kind = asked.value
        ORDER BY j.tenant, j.priority, j.run_at, j.id LIMIT 1)
    UNION ALL
    SELECT next.kind, next.tenant, next.priority, next.run_at, next.rowid
    FROM lanes CROSS JOIN crawl_jobs AS next ON next.rowid = coalesce(
        (SELECT j.rowid FROM crawl_jobs AS j INDEXED BY crawl_jobs_claim
         WHERE j.status = 'queued' AND j.kind = lanes.kind AND j.tenant = lanes.tenant AND j.priority > lanes.priority
         ORDER BY j.priority, j.run_at, j.id LIMIT 1),
        (SELECT j.rowid FROM crawl_jobs AS j INDEXED BY crawl_jobs_claim
         WHERE j.status = 'queued' AND j.kind = lanes.kind AND j.tenant > lanes.tenant
         ORDER BY j.tenant, j.priority, j.run_at, j.id LIMIT 1))
),
held (tenant, jobs) AS MATERIALIZED (
    SELECT tenant, count(*) FROM crawl_jobs INDEXED BY crawl_jobs_live WHERE status = 'running' GROUP BY tenant),
best AS MATERIALIZED (
    SELECT lanes.kind, lanes.tenant, lanes.priority, coalesce(held.jobs, 0) AS held,
           (SELECT max(j.started_at) FROM crawl_jobs AS j WHERE j.tenant = lanes.tenant AND j.started_at IS NOT NULL) AS served
    FROM lanes LEFT JOIN held ON held.tenant = lanes.tenant
    WHERE lanes.run_at <= :now
    ORDER BY lanes.priority DESC, held, served NULLS FIRST, lanes.run_at, lanes.job
    LIMIT :wanted * json_array_length(:kinds)
),
due AS (
    SELECT waiting.rowid AS job, waiting.id, waiting.priority, waiting.run_at, served,
           row_number() OVER (PARTITION BY best.priority, best.tenant ORDER BY waiting.run_at, waiting.id) + held AS turn
    FROM best CROSS JOIN crawl_jobs AS waiting ON waiting.rowid IN (
        SELECT j.rowid FROM crawl_jobs AS j INDEXED BY crawl_jobs_claim
        WHERE j.status = 'queued' AND j.kind = best.kind AND j.tenant = best.tenant AND j.priority = best.priority
          AND j.run_at <= :now
        ORDER BY j.run_at, j.id LIMIT :wanted)
)
UPDATE crawl_jobs
SET status = 'running', run_lease = run_lease + 1, attempt = attempt + 1, worker_id = :worker_id, host = :host, pid = NULL,
    last_heartbeat = :now, heartbeat_seq = heartbeat_seq + 1, started_at = coalesce(started_at, :now), finished_at = NULL,
    exit_reason = NULL, deadline_at = NULL, updated_at = :now
WHERE +status = 'queued' AND rowid IN (SELECT job FROM due ORDER BY priority DESC, turn, served NULLS FIRST, run_at, id LIMIT :wanted)
RETURNING id, kind, status, desired, request_url, metadata, priority, tenant, run_at, dedupe_key, parent_id, attempt, retry_count,
    crash_count, max_retries, run_lease, worker_id, host, pid, last_heartbeat, heartbeat_seq, deadline_at, exit_reason,
    error_message, created_at, updated_at, started_at, finished_at, shard, coalesce(short_payload, payload) AS payload;

-- name: claim [postgres]
-- The same. The chosen jobs are locked, best first, and each claim skips the jobs that another claim has locked. So
-- about 50 jobs more than :wanted are read. A lock during the read of the lanes would hide one job of each tenant from
-- all other claims.
WITH RECURSIVE
lanes AS (
    SELECT first.* FROM jsonb_array_elements_text(:kinds::jsonb) AS asked (kind) CROSS JOIN LATERAL (
        SELECT j.kind, j.tenant, j.priority, j.run_at, j.id FROM crawl_jobs AS j
        WHERE j.status = 'queued' AND j.kind = asked.kind ORDER BY j.kind, j.tenant, j.priority, j.run_at, j.id LIMIT 1) AS first
    UNION ALL
    SELECT next.* FROM lanes CROSS JOIN LATERAL (
        SELECT j.kind, j.tenant, j.priority, j.run_at, j.id FROM crawl_jobs AS j
        WHERE j.status = 'queued' AND j.kind = lanes.kind AND (j.tenant, j.priority) > (lanes.tenant, lanes.priority)
        ORDER BY j.kind, j.tenant, j.priority, j.run_at, j.id LIMIT 1) AS next
),
held (tenant, jobs) AS MATERIALIZED (SELECT tenant, count(*) FROM crawl_jobs WHERE status = 'running' GROUP BY tenant),
best AS MATERIALIZED (
    SELECT lanes.kind, lanes.tenant, lanes.priority, coalesce(held.jobs, 0) AS held,
           (SELECT max(j.started_at) FROM crawl_jobs AS j WHERE j.tenant = lanes.tenant AND j.started_at IS NOT NULL) AS served
    FROM lanes LEFT JOIN held ON held.tenant = lanes.tenant
    WHERE lanes.run_at <= :now
    ORDER BY lanes.priority DESC, held, served NULLS FIRST, lanes.run_at, lanes.id
    LIMIT :wanted * jsonb_array_length(:kinds::jsonb) + 50
),
due AS MATERIALIZED (
    SELECT waiting.*, served,
           row_number() OVER (PARTITION BY best.priority, best.tenant ORDER BY waiting.run_at, waiting.id) + held AS turn
    FROM best CROSS JOIN LATERAL (
        SELECT j.id, j.priority, j.run_at FROM crawl_jobs AS j
        WHERE j.status = 'queued' AND j.kind = best.kind AND j.tenant = best.tenant AND j.priority = best.priority
          AND j.run_at <= :now
        ORDER BY j.run_at, j.id LIMIT :wanted + 50 / (SELECT greatest(count(*), 1) FROM best)) AS waiting
),
locked AS (
    -- Lock one job after the other by id until there are enough. A plain join reads the whole queue when statistics are
    -- old.
    SELECT taken.id FROM (
        SELECT id FROM due ORDER BY priority DESC, turn, served NULLS FIRST, run_at, id
    ) AS best_first CROSS JOIN LATERAL (
        SELECT j.id FROM crawl_jobs AS j WHERE j.id = best_first.id AND j.status = 'queued' FOR UPDATE SKIP LOCKED) AS taken
    LIMIT :wanted
)
UPDATE crawl_jobs
SET status = 'running', run_lease = run_lease + 1, attempt = attempt + 1, worker_id = :worker_id, host = :host, pid = NULL,
    last_heartbeat = :now, heartbeat_seq = heartbeat_seq + 1, started_at = coalesce(started_at, :now), finished_at = NULL,
    exit_reason = NULL, deadline_at = NULL, updated_at = :now
WHERE id = ANY(ARRAY(SELECT id FROM locked))
RETURNING id, kind, status, desired, request_url, metadata, priority, tenant, run_at, dedupe_key, parent_id, attempt, retry_count,
    crash_count, max_retries, run_lease, worker_id, host, pid, last_heartbeat, heartbeat_seq, deadline_at, exit_reason,
    error_message, created_at, updated_at, started_at, finished_at, shard, coalesce(short_payload, payload) AS payload;

-- name: claim_one
-- Claim one queued job by its id, even before its time: `silkline crawl` and `resume` run their own job.
UPDATE crawl_jobs
SET status = 'running', run_lease = run_lease + 1, attempt = attempt + 1, worker_id = :worker_id, host = :host, pid = NULL,
    last_heartbeat = :now, heartbeat_seq = heartbeat_seq + 1, started_at = coalesce(started_at, :now), finished_at = NULL,
    exit_reason = NULL, deadline_at = NULL, updated_at = :now
WHERE id = :id AND status = 'queued'
RETURNING *;

-- name: next_due [sqlite]
-- When the next queued job may start, so that an idle supervisor wakes in time.
SELECT min(run_at) AS run_at FROM crawl_jobs INDEXED BY crawl_jobs_due WHERE status = 'queued' AND run_at > :now;

-- name: next_due [postgres]
SELECT min(run_at) AS run_at FROM crawl_jobs WHERE status = 'queued' AND run_at > :now;

-- name: started
-- Store the process of an attempt, and its deadline.
UPDATE crawl_jobs SET pid = :pid, deadline_at = :deadline_at, updated_at = :now
WHERE id = :id AND status = 'running' AND run_lease = :run_lease AND worker_id = :worker_id
RETURNING id;

-- name: heartbeat
-- Renew all leases of this worker and read the wishes. Changes no indexed column. The worker has lost each job that is
-- not returned.
UPDATE crawl_jobs SET last_heartbeat = :now, heartbeat_seq = heartbeat_seq + 1
WHERE worker_id = :worker_id AND status = 'running'
RETURNING id, run_lease, desired;

-- name: renew
-- Renew one lease: an external worker keeps its job alive over HTTP.
UPDATE crawl_jobs SET last_heartbeat = :now, heartbeat_seq = heartbeat_seq + 1
WHERE id = :id AND status = 'running' AND run_lease = :run_lease AND worker_id = :worker_id
RETURNING desired;

-- name: wishes
-- The wishes of the users for the jobs of this worker.
SELECT id, run_lease, desired FROM crawl_jobs WHERE worker_id = :worker_id AND status = 'running';

-- name: finish [sqlite]
-- End an attempt. The decision depends on the wish, so the wish must not have changed since it was read. A job with
-- queued URLs is not completed: the database may have lost the last checkpoint.
UPDATE crawl_jobs
SET status = :status, desired = :desired, run_at = :run_at, retry_count = :retry_count, crash_count = :crash_count,
    exit_reason = :exit_reason, error_message = :error_message, worker_id = NULL, pid = NULL, deadline_at = NULL,
    finished_at = :finished_at, updated_at = :now
WHERE id = :id AND status = 'running' AND run_lease = :run_lease AND worker_id = :worker_id AND desired = :seen
  AND (:status <> 'completed' OR NOT EXISTS (
    SELECT 1 FROM crawl_states WHERE crawl_states.job_id = crawl_jobs.id AND crawl_states.total_pending > 0));

-- name: finish [postgres]
-- The same for many at once, as columns.
UPDATE crawl_jobs
SET status = new.status, desired = new.desired, run_at = new.run_at, retry_count = new.retry_count,
    crash_count = new.crash_count, exit_reason = new.exit_reason, error_message = new.error_message, worker_id = NULL,
    pid = NULL, deadline_at = NULL, finished_at = new.finished_at, updated_at = :now
FROM unnest(:status::text[], :desired::text[], :run_at::timestamptz[], :retry_count::int[], :crash_count::int[],
            :exit_reason::text[], :error_message::text[], :finished_at::timestamptz[], :id::uuid[], :run_lease::bigint[],
            :seen::text[])
    AS new (status, desired, run_at, retry_count, crash_count, exit_reason, error_message, finished_at, id, run_lease, seen)
WHERE crawl_jobs.id = new.id AND crawl_jobs.status = 'running' AND crawl_jobs.run_lease = new.run_lease
  AND crawl_jobs.worker_id = :worker_id AND crawl_jobs.desired = new.seen
  AND (new.status <> 'completed' OR NOT EXISTS (
    SELECT 1 FROM crawl_states WHERE crawl_states.job_id = crawl_jobs.id AND crawl_states.total_pending > 0));

-- name: rescue
-- Give a running job whose owner is dead the status that `decide` returned. The lease is raised, so that the old owner
-- cannot write any more. If the owner has sent a heartbeat since the job was read, heartbeat_seq has changed and no row
-- is updated.
UPDATE crawl_jobs
SET status = :status, desired = :desired, run_at = :run_at, retry_count = :retry_count, crash_count = :crash_count,
    exit_reason = :exit_reason, error_message = :error_message, run_lease = run_lease + 1, worker_id = NULL, pid = NULL,
    deadline_at = NULL, finished_at = :finished_at, updated_at = :now
WHERE id = :id AND status = 'running' AND run_lease = :run_lease AND heartbeat_seq = :heartbeat_seq AND desired = :seen
RETURNING id;

-- name: change
-- Apply a verb: change the status of a job that does not run, or the wish of a running job. Only if the job has not
-- changed. Returns its outline.
UPDATE crawl_jobs
SET status = :status, desired = :desired, run_at = :run_at,
    retry_count = CASE WHEN :fresh_retries = 1 THEN 0 ELSE retry_count END,
    crash_count = CASE WHEN :fresh_retries = 1 THEN 0 ELSE crash_count END,
    finished_at = :finished_at, updated_at = :now
WHERE id = :id AND status = :seen_status AND desired = :seen_desired AND run_lease = :run_lease
RETURNING id, kind, status, desired, request_url, metadata, priority, tenant, run_at, dedupe_key, parent_id, attempt, retry_count,
    crash_count, max_retries, run_lease, worker_id, host, pid, last_heartbeat, heartbeat_seq, deadline_at, exit_reason,
    error_message, created_at, updated_at, started_at, finished_at, shard, coalesce(short_payload, payload) AS payload;

-- name: running
-- The outlines of the running jobs that a worker holds, for the watchdog. The parents of shards have no worker.
SELECT id, kind, status, desired, request_url, metadata, priority, tenant, run_at, dedupe_key, parent_id, attempt, retry_count,
    crash_count, max_retries, run_lease, worker_id, host, pid, last_heartbeat, heartbeat_seq, deadline_at, exit_reason,
    error_message, created_at, updated_at, started_at, finished_at, shard, coalesce(short_payload, payload) AS payload
FROM crawl_jobs WHERE status = 'running' AND worker_id <> 'shards';

-- name: running_states
-- The same without their payloads, for whoever only waits for a change.
SELECT id, run_lease, desired FROM crawl_jobs WHERE status = 'running';

-- name: owned
-- A job for the attempt that holds its lease.
SELECT * FROM crawl_jobs
WHERE id = :id AND status = 'running' AND run_lease = :run_lease AND worker_id = :worker_id;

-- name: lease
-- Who else holds it.
SELECT status, run_lease FROM crawl_jobs WHERE id = :id;

-- name: get
SELECT * FROM crawl_jobs WHERE id = :id;

-- name: newest
SELECT * FROM crawl_jobs WHERE shard IS NULL ORDER BY id DESC LIMIT 1;

-- name: with_prefix [sqlite]
-- The jobs whose id begins with these characters.
SELECT id FROM crawl_jobs WHERE id >= :prefix AND id < :prefix || 'g' LIMIT 2;

-- name: with_prefix [postgres]
SELECT id FROM crawl_jobs WHERE id >= :low::uuid AND id <= :high::uuid AND id::text LIKE :prefix || '%' LIMIT 2;

-- name: outlines [sqlite]
-- Jobs for lists and events. A payload that has a short form is not read.
SELECT id, kind, status, desired, request_url, metadata, priority, tenant, run_at, dedupe_key, parent_id, attempt,
       retry_count, crash_count, max_retries, run_lease, worker_id, host, pid, last_heartbeat, heartbeat_seq, deadline_at,
       exit_reason, error_message, created_at, updated_at, started_at, finished_at, shard,
       coalesce(short_payload, payload) AS payload
FROM crawl_jobs WHERE id IN (SELECT value FROM json_each(:ids));

-- name: outlines [postgres]
SELECT id, kind, status, desired, request_url, metadata, priority, tenant, run_at, dedupe_key, parent_id, attempt,
       retry_count, crash_count, max_retries, run_lease, worker_id, host, pid, last_heartbeat, heartbeat_seq, deadline_at,
       exit_reason, error_message, created_at, updated_at, started_at, finished_at, shard,
       coalesce(short_payload, payload) AS payload
FROM crawl_jobs WHERE id = ANY(ARRAY(SELECT jsonb_array_elements_text(:ids::jsonb)::uuid));

-- name: shortened
-- Whether the payload of a job has a short form.
SELECT id FROM crawl_jobs WHERE id = :id AND short_payload IS NOT NULL;

-- name: long_size [sqlite]
-- The size of a payload that has a short form.
SELECT length(payload) AS size FROM crawl_jobs WHERE id = :id AND short_payload IS NOT NULL;

-- name: long_size [postgres]
SELECT octet_length(payload::text) AS size FROM crawl_jobs WHERE id = :id AND short_payload IS NOT NULL;

-- name: page
-- A list of jobs, newest first, below a cursor. Lists have the parents of shards, not the shards. `outlines` reads them.
SELECT id FROM crawl_jobs WHERE id < :before AND CASE WHEN shard IS NULL THEN true ELSE false END ORDER BY id DESC LIMIT :wanted;

-- name: page_by_status
-- The same for one status and, unless :kind is null, one kind. It reads a range of crawl_jobs_status. For
-- `status = :status` PostgreSQL uses its statistics, which may be old or missing, and may then read and sort every job.
SELECT id FROM crawl_jobs
WHERE (status, id) < (:status, :before) AND status >= :status AND CASE
    WHEN shard IS NOT NULL THEN false
    WHEN CAST(:kind AS text) <> kind THEN false
    ELSE true END
ORDER BY status DESC, id DESC LIMIT :wanted;

-- name: page_by_kind
-- CASE as in `search`.
SELECT id FROM crawl_jobs WHERE id < :before AND CASE WHEN kind = :kind AND shard IS NULL THEN true ELSE false END
ORDER BY id DESC LIMIT :wanted;

-- name: search [sqlite]
-- The same for jobs whose URL contains a text. Not LIKE: for a long URL of one letter, and a text of this letter that is not
-- in it, LIKE compares the text at every place, letter by letter: 30 s for a thousand jobs.
SELECT id FROM crawl_jobs
WHERE id < :before AND CASE
    WHEN shard IS NOT NULL THEN false
    WHEN CAST(:status AS text) <> status THEN false
    WHEN CAST(:kind AS text) <> kind THEN false
    ELSE instr(lower(request_url), :text) > 0 END
ORDER BY id DESC LIMIT :wanted;

-- name: search [postgres]
-- With CASE, PostgreSQL reads from the newest job back until there are enough. Without it, it expects very few matches, and
-- may read all jobs and sort the matches.
SELECT id FROM crawl_jobs
WHERE id < :before AND CASE
    WHEN shard IS NOT NULL THEN false
    WHEN CAST(:status AS text) <> status THEN false
    WHEN CAST(:kind AS text) <> kind THEN false
    ELSE strpos(lower(request_url), :text) > 0 END
ORDER BY id DESC LIMIT :wanted;

-- name: counts
-- How many jobs are in each state. Shards are parts of a job; they are subtracted, so that an index suffices.
SELECT status, CAST(sum(jobs) AS bigint) AS jobs FROM (
    SELECT status, count(*) AS jobs FROM crawl_jobs GROUP BY status
    UNION ALL SELECT status, -count(*) FROM crawl_jobs WHERE shard IS NOT NULL GROUP BY status) AS counted
GROUP BY status HAVING sum(jobs) > 0;

-- name: counts_by_kind
-- How many jobs of each kind are in each state. Shards are parts of a job.
SELECT kind, status, count(*) AS jobs FROM crawl_jobs WHERE shard IS NULL GROUP BY kind, status;

-- name: waiting
-- The queued jobs that may run now, by kind and tenant, with the time since which the first of them waits.
SELECT kind, tenant, count(*) AS jobs, min(run_at) AS run_at FROM crawl_jobs
WHERE status = 'queued' AND run_at <= :now GROUP BY kind, tenant;

-- name: oldest_heartbeat
-- Of a job that a worker holds. The parents of shards have none.
SELECT min(last_heartbeat) AS last_heartbeat FROM crawl_jobs WHERE status = 'running' AND worker_id <> 'shards';

-- name: pending_total
-- The number of queued URLs of running crawls, without a read of the ledger.
SELECT coalesce(sum(s.total_pending), 0) AS urls
FROM crawl_jobs j JOIN crawl_states s ON s.job_id = j.id WHERE j.status = 'running';

-- name: note
-- Store the error details and the JSON of the caller.
UPDATE crawl_jobs SET metadata = :metadata, updated_at = :now WHERE id = :id RETURNING id;

-- name: amend
-- Change the payload for the next attempt.
UPDATE crawl_jobs SET payload = :payload, short_payload = :short_payload, updated_at = :now
WHERE id = :id AND run_lease = :run_lease AND status <> 'running'
RETURNING id;

-- name: finished_before
-- The jobs that retention by age may delete.
SELECT id FROM crawl_jobs WHERE finished_at < :before AND shard IS NULL ORDER BY finished_at LIMIT :wanted;

-- name: finished_beyond
-- The jobs that retention by count may delete: all but the newest :keep finished jobs.
SELECT id FROM crawl_jobs WHERE finished_at IS NOT NULL AND shard IS NULL ORDER BY finished_at DESC LIMIT :wanted OFFSET :keep;

-- name: forget
-- Delete the job itself, if it has ended.
DELETE FROM crawl_jobs WHERE id = :id AND shard IS NULL AND status NOT IN ('queued', 'running', 'paused') RETURNING id;

-- name: mark_deleted
-- Mark a job as deleted. Its data is removed later.
INSERT INTO deleted_jobs (id) VALUES (:id);

-- name: deleted
SELECT id FROM deleted_jobs;

-- name: unmark_deleted
DELETE FROM deleted_jobs WHERE id = :id;

-- Crawls that span machines: parents, shards and the links between shards. PostgreSQL only.

-- name: open [postgres]
-- Write down a parent, once. When it starts again, its end is decided anew if it was finished (URLs may be queued again
-- since) or broken.
INSERT INTO sharded_crawls (job_id, shards, remaining, settled_at) VALUES (:id, :shards, :remaining, :now)
ON CONFLICT (job_id) DO UPDATE SET settled_at = :now, message = NULL,
    ending = CASE WHEN sharded_crawls.ending IN ('finished', 'broken') THEN NULL ELSE sharded_crawls.ending END;

-- name: make [postgres]
-- The shards of a parent, each once, however often the parent starts.
INSERT INTO crawl_jobs (id, kind, status, desired, request_url, payload, short_payload, priority, tenant, run_at,
                        parent_id, shard, max_retries, created_at, updated_at)
SELECT new.id, p.kind, 'queued', 'run', p.request_url, p.payload, p.short_payload, p.priority, p.tenant, :now,
       p.id, new.shard, p.max_retries, :now, :now
FROM unnest(:id::uuid[], :shard::int[]) AS new (id, shard) JOIN crawl_jobs p ON p.id = :parent_id
ON CONFLICT (parent_id, shard) WHERE shard IS NOT NULL DO NOTHING;

-- name: describe [postgres]
INSERT INTO crawl_shards (job_id, parent_id, shard)
SELECT id, parent_id, shard FROM crawl_jobs WHERE parent_id = :parent_id AND shard IS NOT NULL
ON CONFLICT (job_id) DO NOTHING;

-- name: go_on [postgres]
-- Queue the shards of a parent that continues after a pause, a stop or a failure, with its current spec. A shard that
-- has completed starts again if the end is not decided any more: other shards may send it links.
UPDATE crawl_jobs SET status = 'queued', desired = 'run', run_at = :now, retry_count = 0, crash_count = 0,
    finished_at = NULL, exit_reason = NULL, error_message = NULL, updated_at = :now,
    payload = (SELECT p.payload FROM crawl_jobs p WHERE p.id = :parent_id),
    short_payload = (SELECT p.short_payload FROM crawl_jobs p WHERE p.id = :parent_id)
WHERE parent_id = :parent_id AND shard IS NOT NULL AND (status IN ('paused', 'stopped', 'failed') OR (
    status = 'completed' AND EXISTS (SELECT 1 FROM sharded_crawls c WHERE c.job_id = :parent_id AND c.ending IS NULL)));

-- name: hand_over [postgres]
-- From now on the parent belongs to its shards: the worker that claimed it needs no slot for it.
UPDATE crawl_jobs SET worker_id = :owner, host = NULL, pid = NULL, updated_at = :now
WHERE id = :id AND status = 'running' AND run_lease = :run_lease AND worker_id = :worker_id AND desired = 'run'
RETURNING id;

-- name: spread [postgres]
-- The wish for a parent becomes the wish for its shards, in one transaction.
UPDATE crawl_jobs
SET desired = :desired, status = CASE WHEN status = 'running' THEN 'running' ELSE :status END, run_at = :now,
    finished_at = CASE WHEN status <> 'running' AND :status IN ('stopped', 'cancelled') THEN :now::timestamptz END,
    updated_at = :now
WHERE parent_id = :parent_id AND shard IS NOT NULL AND (
    (status = 'running' AND desired <> :desired AND (desired <> 'cancel')) OR
    (:desired = 'run' AND status = 'paused') OR
    (:desired = 'pause' AND status = 'queued') OR
    (:desired = 'stop' AND status IN ('queued', 'paused')) OR
    (:desired = 'cancel' AND status IN ('queued', 'paused')));

-- name: parents [postgres]
-- The parents whose shards are at work, and that nobody has decided about since a time.
SELECT j.id FROM crawl_jobs j JOIN sharded_crawls c ON c.job_id = j.id
WHERE j.status = 'running' AND j.worker_id = :owner AND c.settled_at <= :since ORDER BY j.id;

-- name: lock [postgres]
-- One process at a time decides about a parent. The others have nothing to do. Like a command of a user, it locks the
-- parent before its shards. The short form of its spec has every number of it.
SELECT j.desired, coalesce(j.short_payload, j.payload) AS payload, j.run_lease, c.remaining, c.ending, c.message, c.level, c.seconds, c.settled_at
FROM sharded_crawls c JOIN crawl_jobs j ON j.id = c.job_id
WHERE c.job_id = :id AND j.status = 'running' AND j.worker_id = :owner
FOR UPDATE SKIP LOCKED;

-- name: snapshot [postgres]
-- All shards of a parent with what is left to do, in one snapshot: one statement, so that no link is missed on its way
-- from one shard to another.
SELECT j.id, j.shard, j.status, j.exit_reason, j.error_message, j.run_at, j.worker_id, j.host, s.allowed, s.lowest,
       coalesce(t.total_pending, 0) AS pending, coalesce(t.done + t.unchanged, 0) AS stored,
       coalesce(t.discovered - t.total_pending, 0) AS settled, t.job_id IS NOT NULL AS seeded,
       (SELECT min(l.depth) FROM generate_series(-1, (SELECT c.shards - 1 FROM sharded_crawls c WHERE c.job_id = :id)) AS who (sender)
        LEFT JOIN shard_cursors k ON k.parent_id = :id AND k.receiver = j.shard AND k.sender = who.sender
        CROSS JOIN LATERAL (
            SELECT r.depth FROM shard_links r WHERE r.parent_id = :id AND r.receiver = j.shard AND r.sender = who.sender
              AND r.number > coalesce(k.taken, 0)) AS l) AS inbox
FROM crawl_jobs j JOIN crawl_shards s ON s.job_id = j.id LEFT JOIN crawl_states t ON t.job_id = j.id
WHERE j.parent_id = :id AND j.shard IS NOT NULL ORDER BY j.shard;

-- name: settle [postgres]
UPDATE sharded_crawls SET ending = :ending, message = :message, level = :level, settled = :settled, seconds = :seconds,
    settled_at = :now
WHERE job_id = :id;

-- name: move_horizon [postgres]
-- Results and lines get their ids before their commit, and several shards write at the same time. So one may appear below
-- another that a reader has seen. What was the last id at the mark is safe when all transactions of that time have ended.
UPDATE sharded_crawls SET horizon = mark, mark = (SELECT last_value FROM crawl_results_id_seq),
    log_horizon = log_mark, log_mark = (SELECT last_value FROM job_logs_id_seq),
    mark_xid = pg_snapshot_xmax(pg_current_snapshot())::text::bigint
WHERE job_id = :id AND pg_snapshot_xmin(pg_current_snapshot())::text::bigint >= mark_xid;

-- name: horizon [postgres]
-- Up to which ids the results and the log of a crawl may be read while its shards are at work. No row: everything may be
-- read, because it does not run, or no worker has looked after it for a while.
SELECT c.horizon, c.log_horizon FROM sharded_crawls c JOIN crawl_jobs j ON j.id = c.job_id
WHERE c.job_id = :id AND j.status = 'running' AND j.worker_id = 'shards' AND c.settled_at > :since;

-- name: wake [postgres]
-- Start shards that had nothing to do, or that a verb left behind.
UPDATE crawl_jobs SET status = 'queued', desired = 'run', run_at = :now, finished_at = NULL, updated_at = :now
WHERE id = ANY(:ids::uuid[]) AND (status IN ('paused', 'stopped') OR (status = 'queued' AND run_at > :now))
RETURNING id;

-- name: end [postgres]
-- The status of the parent follows from its shards.
UPDATE crawl_jobs SET status = :status, desired = :desired, exit_reason = :reason, error_message = :message, worker_id = NULL,
    finished_at = :finished_at, updated_at = :now
WHERE id = :id AND status = 'running' AND run_lease = :run_lease AND worker_id = :owner AND desired = :seen
RETURNING id;

-- name: claim [postgres]
-- Due shards of one parent as outlines, for a command that runs this crawl only.
UPDATE crawl_jobs
SET status = 'running', run_lease = run_lease + 1, attempt = attempt + 1, worker_id = :worker_id, host = :host, pid = NULL,
    last_heartbeat = :now, heartbeat_seq = heartbeat_seq + 1, started_at = coalesce(started_at, :now), finished_at = NULL,
    exit_reason = NULL, deadline_at = NULL, updated_at = :now
WHERE status = 'queued' AND id = ANY(ARRAY(
    SELECT id FROM crawl_jobs
    WHERE parent_id = :parent_id AND shard IS NOT NULL AND status = 'queued' AND run_at <= :now
    ORDER BY run_at, id LIMIT :wanted FOR UPDATE SKIP LOCKED))
RETURNING id, kind, status, desired, request_url, metadata, priority, tenant, run_at, dedupe_key, parent_id, attempt, retry_count,
    crash_count, max_retries, run_lease, worker_id, host, pid, last_heartbeat, heartbeat_seq, deadline_at, exit_reason,
    error_message, created_at, updated_at, started_at, finished_at, shard, coalesce(short_payload, payload) AS payload;

-- name: loads [postgres]
-- The workers that are alive and take crawls, each with its free slots and the shards that it holds. `waiting`: shards that
-- wait for a worker, so that a free slot will be used anyway.
SELECT w.id, w.slots, count(j.id) AS held, count(j.id) FILTER (WHERE j.shard IS NOT NULL) AS shards,
       (SELECT count(*) FROM crawl_jobs q WHERE q.status = 'queued' AND q.shard IS NOT NULL AND q.run_at <= :now) AS waiting
FROM workers w LEFT JOIN crawl_jobs j ON j.worker_id = w.id AND j.status = 'running'
WHERE w.last_seen > :since AND w.state = 'running' AND (w.kinds IS NULL OR w.kinds LIKE '%"site"%')
GROUP BY w.id, w.slots ORDER BY w.id;

-- name: ids [postgres]
-- The shards of a parent, in order.
SELECT id FROM crawl_jobs WHERE parent_id = :parent_id AND shard IS NOT NULL ORDER BY shard;

-- name: family [postgres]
-- The shards of a parent, or of the parent of a shard, in order.
SELECT id FROM crawl_jobs
WHERE parent_id = coalesce((SELECT j.parent_id FROM crawl_jobs j WHERE j.id = :job_id AND j.shard IS NOT NULL), :job_id)
  AND shard IS NOT NULL ORDER BY shard;

-- name: forget [postgres]
-- Delete the shards of a parent that is deleted.
DELETE FROM crawl_jobs WHERE parent_id = :parent_id AND shard IS NOT NULL RETURNING id;

-- name: forget_crawl [postgres]
DELETE FROM sharded_crawls WHERE job_id = :job_id;

-- name: forget_shards [postgres]
DELETE FROM crawl_shards WHERE parent_id = :job_id;

-- name: forget_cursors [postgres]
DELETE FROM shard_cursors WHERE parent_id = :job_id;

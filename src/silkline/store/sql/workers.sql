-- The workers.

-- name: register
INSERT INTO workers (id, host, pid, boot_id, slots, kinds, version, started_at, last_seen)
VALUES (:id, :host, :pid, :boot_id, :slots, :kinds, :version, :now, :now);

-- name: seen
-- The heartbeat of a worker, in the same transaction as the heartbeats of its jobs.
UPDATE workers SET last_seen = :now, slots = :slots, state = :state, usage = :usage WHERE id = :id RETURNING id;

-- name: usage
-- What each worker uses, as its last heartbeat told.
SELECT id, usage FROM workers WHERE usage IS NOT NULL;

-- name: usage_of
-- What one worker uses.
SELECT usage FROM workers WHERE id = :id;

-- name: idle
-- Store whether the supervisor must be woken when a job arrives.
UPDATE workers SET idle = :idle WHERE id = :id;

-- name: all
-- All workers. The jobs of each worker are counted in the table of jobs.
SELECT id, host, pid, boot_id, slots, idle, state, kinds, version, started_at, last_seen,
       (SELECT count(*) FROM crawl_jobs WHERE status = 'running' AND worker_id = workers.id) AS jobs_held
FROM workers ORDER BY host, started_at;

-- name: retire
DELETE FROM workers WHERE id = :id;

-- name: delete_dead
-- Remove workers without a recent heartbeat that hold no job.
DELETE FROM workers WHERE last_seen < :before
    AND NOT EXISTS (SELECT 1 FROM crawl_jobs WHERE status = 'running' AND worker_id = workers.id);

-- The supervisors.

-- name: register
INSERT INTO workers (id, host, pid, boot_id, slots, kinds, version, started_at, last_seen)
VALUES (:id, :host, :pid, :boot_id, :slots, :kinds, :version, :now, :now);

-- name: seen
-- A sign of life, in the same transaction as the heartbeat of its jobs.
UPDATE workers SET last_seen = :now, slots = :slots, state = :state WHERE id = :id RETURNING id;

-- name: idle
-- Whether the supervisor wants to be woken when a job comes.
UPDATE workers SET idle = :idle WHERE id = :id;

-- name: all
-- How many jobs each holds is what the jobs say.
SELECT id, host, pid, boot_id, slots, idle, state, kinds, version, started_at, last_seen,
       (SELECT count(*) FROM crawl_jobs WHERE status = 'running' AND worker_id = workers.id) AS jobs_held
FROM workers ORDER BY host, started_at;

-- name: retire
DELETE FROM workers WHERE id = :id;

-- name: bury
-- Workers not seen for long that hold nothing.
DELETE FROM workers WHERE last_seen < :before
    AND NOT EXISTS (SELECT 1 FROM crawl_jobs WHERE status = 'running' AND worker_id = workers.id);

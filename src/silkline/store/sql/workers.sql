-- The supervisors.

-- name: register
INSERT INTO workers (id, host, pid, boot_id, slots, version, started_at, last_seen)
VALUES (:id, :host, :pid, :boot_id, :slots, :version, :now, :now);

-- name: seen
-- A sign of life, in the same transaction as the heartbeat of its jobs.
UPDATE workers SET last_seen = :now, slots = :slots, jobs_held = :jobs_held, state = :state WHERE id = :id RETURNING id;

-- name: idle
-- Whether the supervisor wants to be woken when a job comes.
UPDATE workers SET idle = :idle WHERE id = :id;

-- name: all
SELECT * FROM workers ORDER BY host, started_at;

-- name: retire
DELETE FROM workers WHERE id = :id;

-- name: bury
-- Workers not seen for long that hold nothing.
DELETE FROM workers WHERE last_seen < :before
    AND NOT EXISTS (SELECT 1 FROM crawl_jobs WHERE status = 'running' AND worker_id = workers.id);

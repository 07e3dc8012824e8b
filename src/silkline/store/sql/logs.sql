-- The log lines of jobs.

-- name: append [sqlite]
-- Lines of attempts. The last line of a job may come after the job was deleted: it is not stored.
INSERT INTO job_logs (job_id, attempt, level, message, at, worker, event, data)
SELECT :job_id, :attempt, :level, :message, :at, :worker, :event, :data
WHERE EXISTS (SELECT 1 FROM crawl_jobs WHERE id = :job_id);

-- name: append [postgres]
INSERT INTO job_logs (job_id, attempt, level, message, at, worker, event, data)
SELECT job_id, attempt, level, message, at, worker, event, data
FROM unnest(:job_id::uuid[], :attempt::int[], :level::text[], :message::text[], :at::timestamptz[],
    :worker::text[], :event::text[], :data::text[])
    WITH ORDINALITY AS line (job_id, attempt, level, message, at, worker, event, data, place)
WHERE EXISTS (SELECT 1 FROM crawl_jobs j WHERE j.id = line.job_id) ORDER BY place;

-- name: page [sqlite]
-- Lines of a job after a cursor, oldest first.
SELECT id, job_id, attempt, level, message, at, worker, event, data FROM job_logs
WHERE job_id = :job_id AND id > :after ORDER BY id LIMIT :wanted;

-- name: page [postgres]
-- It reads a range of job_logs_job. For `job_id = :job_id`, if one job has written most of the lines, PostgreSQL would
-- read all lines to find the lines of another job. (SQLite would read a range from the first line of the job.)
SELECT id, job_id, attempt, level, message, at, worker, event, data FROM job_logs
WHERE (job_id, id) > (:job_id, :after) AND job_id <= :job_id ORDER BY job_id, id LIMIT :wanted;

-- name: search [sqlite]
-- The same for lines of some levels that contain a text. Not LIKE, as in `jobs.search`.
SELECT id, job_id, attempt, level, message, at, worker, event, data FROM job_logs
WHERE job_id = :job_id AND id > :after AND (:levels = '' OR :levels LIKE '%,' || level || ',%')
  AND instr(lower(message), :text) > 0
ORDER BY id LIMIT :wanted;

-- name: search [postgres]
-- CASE as in `jobs.search`.
SELECT id, job_id, attempt, level, message, at, worker, event, data FROM job_logs
WHERE (job_id, id) > (:job_id, :after) AND job_id <= :job_id AND CASE
    WHEN :levels <> '' AND :levels NOT LIKE '%,' || level || ',%' THEN false
    ELSE strpos(lower(message), :text) > 0 END
ORDER BY job_id, id LIMIT :wanted;

-- name: tail
-- The newest lines of a job, newest first.
SELECT id, job_id, attempt, level, message, at, worker, event, data FROM job_logs
WHERE (job_id, id) <= (:job_id, 9223372036854775807) AND job_id >= :job_id ORDER BY job_id DESC, id DESC LIMIT :wanted;

-- name: trim
-- Keep only the newest lines of an attempt.
DELETE FROM job_logs WHERE job_id = :job_id AND id <= (
    SELECT id FROM job_logs WHERE (job_id, id) <= (:job_id, 9223372036854775807) AND job_id >= :job_id
    ORDER BY job_id DESC, id DESC LIMIT 1 OFFSET :keep);

-- name: expire
-- Remove lines of ended jobs that are older than the retention, a bounded number at a time.
DELETE FROM job_logs WHERE id IN (
    SELECT l.id FROM job_logs l JOIN crawl_jobs j ON j.id = l.job_id
    WHERE j.finished_at < :before ORDER BY l.id LIMIT :wanted)
RETURNING id;

-- name: forget
DELETE FROM job_logs WHERE id IN (SELECT id FROM job_logs WHERE job_id = :job_id LIMIT :wanted) RETURNING id;

-- The history of a crawl's counters.

-- name: take
-- Store the current counters as a sample, unless the last sample is too new.
INSERT INTO crawl_samples (job_id, at, discovered, done, unchanged, failed, skipped, bytes, seconds)
SELECT job_id, updated_at, discovered, done, unchanged, failed, skipped, bytes, seconds FROM crawl_states
WHERE job_id = :job_id
  AND NOT EXISTS (SELECT 1 FROM crawl_samples WHERE crawl_samples.job_id = crawl_states.job_id AND at > :after)
ON CONFLICT (job_id, at) DO NOTHING;

-- name: all
SELECT at, discovered, done, unchanged, failed, skipped, bytes, seconds FROM crawl_samples
WHERE job_id = :job_id ORDER BY at LIMIT :wanted;

-- name: forget
DELETE FROM crawl_samples WHERE (job_id, at) IN (
    SELECT job_id, at FROM crawl_samples WHERE job_id = :job_id LIMIT :wanted) RETURNING job_id;

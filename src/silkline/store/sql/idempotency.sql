-- Idempotency keys of earlier POST requests, with their answers.

-- name: claim
-- Take the key. Returns no row if the key is in use. A second caller waits here until the first has committed.
INSERT INTO idempotency_keys (key, fingerprint, created_at)
VALUES (:key, :fingerprint, :now) ON CONFLICT (key) DO NOTHING RETURNING key;

-- name: answer
UPDATE idempotency_keys SET job_id = :job_id, answer = :answer WHERE key = :key;

-- name: get
SELECT * FROM idempotency_keys WHERE key = :key;

-- name: expire
-- Remove expired keys, a bounded number at a time.
DELETE FROM idempotency_keys WHERE key IN (
    SELECT key FROM idempotency_keys WHERE created_at < :before ORDER BY created_at LIMIT :wanted);

-- name: forget
-- Remove the answers for one job, a bounded number at a time.
DELETE FROM idempotency_keys WHERE key IN (
    SELECT key FROM idempotency_keys WHERE job_id = :job_id LIMIT :wanted) RETURNING key;

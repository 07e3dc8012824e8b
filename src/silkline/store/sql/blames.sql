-- Inputs that crashed the process that parsed them, for each job.

-- name: listed
SELECT input, times, attempt FROM blamed_inputs WHERE job_id = :job_id ORDER BY input LIMIT :wanted;

-- name: add
-- Add an input, or raise its number. The number never falls.
INSERT INTO blamed_inputs (job_id, input, times, attempt) VALUES (:job_id, :input, :times, :attempt)
ON CONFLICT (job_id, input) DO UPDATE SET times = excluded.times, attempt = excluded.attempt
WHERE blamed_inputs.times < excluded.times;

-- name: forget
DELETE FROM blamed_inputs WHERE (job_id, input) IN (
    SELECT job_id, input FROM blamed_inputs WHERE job_id = :job_id LIMIT :wanted) RETURNING job_id;

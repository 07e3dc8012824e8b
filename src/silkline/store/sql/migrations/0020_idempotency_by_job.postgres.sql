-- The stored answers for a job are removed with it.
CREATE INDEX idempotency_keys_job ON idempotency_keys (job_id);

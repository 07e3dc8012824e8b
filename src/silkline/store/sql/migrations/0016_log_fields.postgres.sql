-- The fields of a log line that the message alone does not have (docs/reference/log.md); `data` is JSON.
ALTER TABLE job_logs ADD COLUMN worker TEXT;
ALTER TABLE job_logs ADD COLUMN event TEXT;
ALTER TABLE job_logs ADD COLUMN data TEXT;

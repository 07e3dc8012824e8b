-- Only PostgreSQL has crawls that span machines. SQLite has the column, so that a job has the same fields everywhere.
ALTER TABLE crawl_jobs ADD COLUMN shard integer;

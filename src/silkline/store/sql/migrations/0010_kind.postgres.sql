-- What a job is (page, site, …) is its kind; a worker is a process that takes jobs.
ALTER TABLE crawl_jobs RENAME COLUMN worker TO kind;

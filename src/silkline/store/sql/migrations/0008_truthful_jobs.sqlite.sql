-- Which kinds of job a supervisor runs, as a JSON list. NULL: it is of a version that does not say so.
ALTER TABLE workers ADD COLUMN kinds TEXT;

-- URLs of crawls that redirected elsewhere, so that the cache finds a page under both names. The ledger has them too, but
-- an index on its rows would make every settled URL more expensive.
CREATE TABLE crawl_redirects (
    job_id TEXT NOT NULL,
    url_id INTEGER NOT NULL,
    url_key INTEGER NOT NULL,
    target_key INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (job_id, url_id)
) WITHOUT ROWID;
CREATE INDEX crawl_redirects_key ON crawl_redirects (url_key, created_at);

-- Which kinds of job a supervisor runs, as a JSON list. NULL: it is of a version that does not say so.
ALTER TABLE workers ADD COLUMN kinds text;

-- URLs of crawls that redirected elsewhere, so that the cache finds a page under both names. The ledger has them too, but
-- an index on its rows would make every settled URL more expensive.
CREATE TABLE crawl_redirects (
    job_id uuid NOT NULL,
    url_id bigint NOT NULL,
    url_key bigint NOT NULL,
    target_key bigint NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (job_id, url_id)
);
CREATE INDEX crawl_redirects_key ON crawl_redirects (url_key, created_at);

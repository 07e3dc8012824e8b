-- Each row of the ledger has a small number for its job, `crawl_states.key`, and not the 36 characters of its id.
-- URLs that are left over when a crawl ends before them are not rewritten. `leftover` is the reason of all URLs of the job
-- that are still queued in `crawl_ledger`. Readers use the view `crawl_urls`, which has the table's old name.
ALTER TABLE crawl_states ADD COLUMN leftover TEXT;
ALTER TABLE crawl_states ADD COLUMN key INTEGER;

-- Every ledger has counters, so that its job has a number.
INSERT INTO crawl_states (job_id, total_pending, discovered, done, unchanged, failed, skipped, updated_at)
SELECT job_id, sum(state = 'queued'), count(*), sum(state = 'done'), sum(state = 'unchanged'), sum(state = 'failed'),
       sum(state = 'skipped'), strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')
FROM crawl_urls WHERE job_id NOT IN (SELECT job_id FROM crawl_states) GROUP BY job_id;
UPDATE crawl_states SET key = numbered.number
FROM (SELECT job_id, row_number() OVER (ORDER BY job_id) AS number FROM crawl_states) AS numbered
WHERE numbered.job_id = crawl_states.job_id;
CREATE UNIQUE INDEX crawl_states_key ON crawl_states (key);

CREATE TABLE crawl_ledger (
    job INTEGER NOT NULL,
    id INTEGER NOT NULL,
    url_key INTEGER NOT NULL,
    url TEXT NOT NULL,
    host TEXT NOT NULL,
    depth INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    detail TEXT,
    found_on INTEGER,
    found_via TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    http_status INTEGER,
    chain TEXT,
    PRIMARY KEY (job, id)
) WITHOUT ROWID;
INSERT INTO crawl_ledger
SELECT s.key, u.id, u.url_key, u.url, u.host, u.depth, u.state, u.reason, u.detail, u.found_on, u.found_via, u.attempts,
       u.http_status, u.chain
FROM crawl_states s CROSS JOIN crawl_urls u ON u.job_id = s.job_id ORDER BY s.key, u.id;
DROP TABLE crawl_urls;
CREATE VIEW crawl_urls AS
SELECT s.job_id, u.id, u.url_key, u.url, u.host, u.depth,
       CASE WHEN u.state = 'queued' AND s.leftover IS NOT NULL THEN 'skipped' ELSE u.state END AS state,
       CASE WHEN u.state = 'queued' AND s.leftover IS NOT NULL THEN s.leftover ELSE u.reason END AS reason,
       u.detail, u.found_on, u.found_via, u.attempts, u.http_status, u.chain
FROM crawl_states s JOIN crawl_ledger u ON u.job = s.key;

CREATE TABLE ledger_keys (
    job INTEGER NOT NULL,
    url_key INTEGER NOT NULL,
    id INTEGER NOT NULL,
    PRIMARY KEY (job, url_key, id)
) WITHOUT ROWID;
INSERT INTO ledger_keys
SELECT s.key, k.url_key, k.id FROM crawl_states s CROSS JOIN crawl_url_keys k ON k.job_id = s.job_id
ORDER BY s.key, k.url_key, k.id;
DROP TABLE crawl_url_keys;
CREATE VIEW crawl_url_keys AS
SELECT s.job_id, k.url_key, k.id FROM crawl_states s JOIN ledger_keys k ON k.job = s.key;

-- URLs that are left over when a crawl ends before them are not rewritten. `leftover` is the reason of all URLs of the job
-- that are still queued in `crawl_ledger`. Readers use the view `crawl_urls`, which has the table's old name.
ALTER TABLE crawl_states ADD COLUMN leftover text;
ALTER TABLE crawl_urls RENAME TO crawl_ledger;
ALTER INDEX crawl_urls_pkey RENAME TO crawl_ledger_pkey;
CREATE VIEW crawl_urls AS
SELECT u.job_id, u.id, u.url_key, u.url, u.host, u.depth,
       CASE WHEN u.state = 'queued' AND s.leftover IS NOT NULL THEN 'skipped' ELSE u.state END AS state,
       CASE WHEN u.state = 'queued' AND s.leftover IS NOT NULL THEN s.leftover ELSE u.reason END AS reason,
       u.detail, u.found_on, u.found_via, u.attempts, u.http_status, u.chain
FROM crawl_ledger u LEFT JOIN crawl_states s ON s.job_id = u.job_id;

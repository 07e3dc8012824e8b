-- URLs of crawls that redirected to another URL, for the cache.

-- name: append [sqlite]
-- Redirects of one checkpoint. The ledger has the keys of their URLs.
INSERT INTO crawl_redirects (job_id, url_id, url_key, target_key, created_at)
SELECT job_id, id, url_key, :target_key, :now FROM crawl_urls WHERE job_id = :job_id AND id = :url_id
ON CONFLICT (job_id, url_id) DO UPDATE SET target_key = excluded.target_key, created_at = excluded.created_at;

-- name: append [postgres]
INSERT INTO crawl_redirects (job_id, url_id, url_key, target_key, created_at)
SELECT u.job_id, u.id, u.url_key, new.target_key, :now::timestamptz
FROM unnest(:url_id::bigint[], :target_key::bigint[]) AS new (url_id, target_key)
JOIN crawl_urls u ON u.job_id = :job_id::uuid AND u.id = new.url_id
ON CONFLICT (job_id, url_id) DO UPDATE SET target_key = excluded.target_key, created_at = excluded.created_at;

-- name: newest
-- The last redirect of a URL, not older than :since.
SELECT job_id, url_id, target_key FROM crawl_redirects WHERE url_key = :url_key AND created_at >= :since
ORDER BY created_at DESC LIMIT 1;

-- name: forget
DELETE FROM crawl_redirects WHERE (job_id, url_id) IN (
    SELECT job_id, url_id FROM crawl_redirects WHERE job_id = :job_id LIMIT :wanted) RETURNING url_id;

-- The results of jobs.

-- name: append [sqlite]
-- Results of one checkpoint.
INSERT INTO crawl_results (job_id, created_at, url_id, original_url, original_key, final_url, final_key, data, success, metadata)
VALUES (:job_id, :now, :url_id, :original_url, :original_key, :final_url, :final_key, :data, :success, :metadata);

-- name: append [postgres]
INSERT INTO crawl_results (job_id, created_at, url_id, original_url, original_key, final_url, final_key, data, success, metadata)
SELECT :job_id::uuid, :now::timestamptz, * FROM unnest(:url_id::bigint[], :original_url::text[], :original_key::bigint[],
    :final_url::text[], :final_key::bigint[], :data::jsonb[], :success::boolean[], :metadata::jsonb[]);

-- name: page [sqlite]
-- Results of a job after a cursor, in the order they were stored.
SELECT id, job_id, url_id, original_url, final_url, data, success, metadata, created_at FROM crawl_results
WHERE job_id = :job_id AND id > :after ORDER BY id LIMIT :wanted;

-- name: page [postgres]
-- A range, as in `logs.page`.
SELECT id, job_id, url_id, original_url, final_url, data, success, metadata, created_at FROM crawl_results
WHERE (job_id, id) > (:job_id, :after) AND job_id <= :job_id ORDER BY job_id, id LIMIT :wanted;

-- name: sizes [sqlite]
-- How long the results of a page are, before they are read.
SELECT id, length(data) AS size FROM crawl_results WHERE job_id = :job_id AND id > :after ORDER BY id LIMIT :wanted;

-- name: sizes [postgres]
-- A short stored value is no long text, even if it is compressed, and then the text is not made to measure it.
SELECT id, CASE WHEN pg_column_size(data) < 20000 THEN pg_column_size(data) ELSE octet_length(data::text) END AS size
FROM crawl_results WHERE (job_id, id) > (:job_id, :after) AND job_id <= :job_id ORDER BY job_id, id LIMIT :wanted;

-- name: newest
-- The latest results, without their content.
SELECT url_id, metadata, created_at FROM crawl_results WHERE job_id = :job_id ORDER BY url_id DESC LIMIT :wanted;

-- name: page_by_discovery
-- Results of a job in the order of discovery of their URLs. A result that is stored late may come before the cursor.
SELECT id, job_id, url_id, original_url, final_url, data, success, metadata, created_at FROM crawl_results
WHERE job_id = :job_id AND url_id > :after ORDER BY url_id LIMIT :wanted;

-- name: sizes_by_discovery [sqlite]
SELECT url_id AS id, length(data) AS size FROM crawl_results
WHERE job_id = :job_id AND url_id > :after ORDER BY url_id LIMIT :wanted;

-- name: sizes_by_discovery [postgres]
SELECT url_id AS id, CASE WHEN pg_column_size(data) < 20000 THEN pg_column_size(data) ELSE octet_length(data::text) END AS size
FROM crawl_results WHERE job_id = :job_id AND url_id > :after ORDER BY url_id LIMIT :wanted;

-- name: by_url_id
SELECT id, job_id, url_id, original_url, final_url, data, success, metadata, created_at FROM crawl_results
WHERE job_id = :job_id AND url_id = :url_id;

-- name: cached
-- The newest successful result for a requested URL or a URL after redirects, not older than :since.
SELECT id, job_id, url_id, original_url, final_url, data, success, metadata, created_at FROM (
    SELECT * FROM (
        SELECT * FROM crawl_results WHERE original_key = :url_key AND success = :yes AND created_at >= :since
        ORDER BY id DESC LIMIT 1) AS asked
    UNION ALL
    SELECT * FROM (
        SELECT * FROM crawl_results WHERE final_key = :url_key AND (original_key IS NULL OR final_key <> original_key)
          AND success = :yes AND created_at >= :since
        ORDER BY id DESC LIMIT 1) AS landed
) AS found
ORDER BY id DESC LIMIT 1;

-- name: count
SELECT count(*) AS results FROM crawl_results WHERE job_id = :job_id;

-- name: withdraw [sqlite]
-- Remove the results of failed URLs that are retried, because a URL has one result.
DELETE FROM crawl_results WHERE job_id = :job_id AND url_id IN (SELECT value FROM json_each(:url_ids));

-- name: withdraw [postgres]
DELETE FROM crawl_results
WHERE job_id = :job_id AND url_id = ANY(ARRAY(SELECT jsonb_array_elements_text(:url_ids::jsonb)::bigint));

-- name: forget
DELETE FROM crawl_results WHERE id IN (SELECT id FROM crawl_results WHERE job_id = :job_id LIMIT :wanted) RETURNING id;

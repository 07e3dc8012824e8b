-- The facts of pages for lists and their sort orders.

-- name: append [sqlite]
-- The pages of one checkpoint.
INSERT INTO crawl_pages (job_id, stored_at, url_id, title, title_key, bytes, seconds)
VALUES (:job_id, :now, :url_id, :title, :title_key, :bytes, :seconds);

-- name: append [postgres]
INSERT INTO crawl_pages (job_id, stored_at, url_id, title, title_key, bytes, seconds)
SELECT :job_id::uuid, :now::timestamptz, * FROM unnest(:url_id::bigint[], :title::text[], :title_key::text[],
    :bytes::bigint[], :seconds::double precision[]);

-- name: by_found
-- Every URL of the ledger in the order of discovery, with the facts of its page. All statements below return the same
-- columns and are sorted by `place`.
SELECT u.id, u.url, u.state, coalesce(p.title, '') AS title, u.id AS place
FROM crawl_urls u LEFT JOIN crawl_pages p ON p.job_id = u.job_id AND p.url_id = u.id
WHERE u.job_id = :job_id AND u.id > :id ORDER BY u.id LIMIT :wanted;

-- name: in_state
-- URLs of one state, in a bounded range of the ledger.
SELECT id FROM crawl_urls
WHERE job_id = :job_id AND id > :id AND id <= :upto AND CASE WHEN state = :state THEN true ELSE false END
ORDER BY id LIMIT :wanted;

-- name: by_newest
SELECT u.id, u.url, u.state, coalesce(p.title, '') AS title, u.id AS place
FROM crawl_urls u LEFT JOIN crawl_pages p ON p.job_id = u.job_id AND p.url_id = u.id
WHERE u.job_id = :job_id AND u.id < :id ORDER BY u.id DESC LIMIT :wanted;

-- name: by_title
-- Stored pages only, from here on. SQLite reads the index crawl_pages_title in its order and sorts nothing.
SELECT u.id, u.url, u.state, p.title, p.title_key AS place
FROM crawl_pages p JOIN crawl_urls u ON u.job_id = p.job_id AND u.id = p.url_id
WHERE p.job_id = :job_id AND (p.title_key, p.url_id) > (:place, :id) ORDER BY p.title_key, p.url_id LIMIT :wanted;

-- name: by_title_down
SELECT u.id, u.url, u.state, p.title, p.title_key AS place
FROM crawl_pages p JOIN crawl_urls u ON u.job_id = p.job_id AND u.id = p.url_id
WHERE p.job_id = :job_id AND (p.title_key, p.url_id) < (:place, :id)
ORDER BY p.title_key DESC, p.url_id DESC LIMIT :wanted;

-- name: by_size
SELECT u.id, u.url, u.state, p.title, p.bytes AS place
FROM crawl_pages p JOIN crawl_urls u ON u.job_id = p.job_id AND u.id = p.url_id
WHERE p.job_id = :job_id AND (p.bytes, p.url_id) > (:place, :id) ORDER BY p.bytes, p.url_id LIMIT :wanted;

-- name: by_size_down
SELECT u.id, u.url, u.state, p.title, p.bytes AS place
FROM crawl_pages p JOIN crawl_urls u ON u.job_id = p.job_id AND u.id = p.url_id
WHERE p.job_id = :job_id AND (p.bytes, p.url_id) < (:place, :id) ORDER BY p.bytes DESC, p.url_id DESC LIMIT :wanted;

-- name: by_time
SELECT u.id, u.url, u.state, p.title, p.seconds AS place
FROM crawl_pages p JOIN crawl_urls u ON u.job_id = p.job_id AND u.id = p.url_id
WHERE p.job_id = :job_id AND (p.seconds, p.url_id) > (:place, :id) ORDER BY p.seconds, p.url_id LIMIT :wanted;

-- name: by_time_down
SELECT u.id, u.url, u.state, p.title, p.seconds AS place
FROM crawl_pages p JOIN crawl_urls u ON u.job_id = p.job_id AND u.id = p.url_id
WHERE p.job_id = :job_id AND (p.seconds, p.url_id) < (:place, :id) ORDER BY p.seconds DESC, p.url_id DESC LIMIT :wanted;

-- name: by_ids [sqlite]
-- Several pages by their ids, for the rows of a list.
SELECT url_id, title, bytes, seconds, stored_at FROM crawl_pages
WHERE job_id = :job_id AND url_id IN (SELECT value FROM json_each(:ids));

-- name: by_ids [postgres]
SELECT url_id, title, bytes, seconds, stored_at FROM crawl_pages
WHERE job_id = :job_id AND url_id = ANY(ARRAY(SELECT jsonb_array_elements_text(:ids::jsonb)::bigint));

-- name: withdraw [sqlite]
-- Remove the pages of failed URLs that are retried.
DELETE FROM crawl_pages WHERE job_id = :job_id AND url_id IN (SELECT value FROM json_each(:url_ids));

-- name: withdraw [postgres]
DELETE FROM crawl_pages
WHERE job_id = :job_id AND url_id = ANY(ARRAY(SELECT jsonb_array_elements_text(:url_ids::jsonb)::bigint));

-- name: forget
DELETE FROM crawl_pages WHERE job_id = :job_id AND url_id IN (
    SELECT url_id FROM crawl_pages WHERE job_id = :job_id LIMIT :wanted) RETURNING url_id;

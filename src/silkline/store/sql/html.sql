-- The HTML that jobs keep.

-- name: append [sqlite]
-- Pages of one checkpoint.
INSERT INTO crawl_html (job_id, url_id, dictionary, size, html) VALUES (:job_id, :url_id, :dictionary, :size, :html);

-- name: append [postgres]
INSERT INTO crawl_html (job_id, url_id, dictionary, size, html)
SELECT :job_id::uuid, * FROM unnest(:url_id::bigint[], :dictionary::bigint[], :size::bigint[], :html::bytea[]);

-- name: append_dictionary
-- Two fetchers may make the same dictionary.
INSERT INTO crawl_html_dictionaries (job_id, id, data) VALUES (:job_id, :id, :data) ON CONFLICT DO NOTHING;

-- name: page
-- Pages of a job after a cursor, in the order of discovery.
SELECT url_id, dictionary, size, html FROM crawl_html
WHERE job_id = :job_id AND url_id > :after ORDER BY url_id LIMIT :wanted;

-- name: by_url_id
SELECT url_id, dictionary, size, html FROM crawl_html WHERE job_id = :job_id AND url_id = :url_id;

-- name: dictionary
SELECT data FROM crawl_html_dictionaries WHERE job_id = :job_id AND id = :id;

-- name: forget
DELETE FROM crawl_html WHERE (job_id, url_id) IN (
    SELECT job_id, url_id FROM crawl_html WHERE job_id = :job_id LIMIT :wanted) RETURNING url_id;

-- name: forget_dictionaries
DELETE FROM crawl_html_dictionaries WHERE (job_id, id) IN (
    SELECT job_id, id FROM crawl_html_dictionaries WHERE job_id = :job_id LIMIT :wanted) RETURNING id;

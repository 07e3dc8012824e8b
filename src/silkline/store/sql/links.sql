-- The links of pages.

-- name: append
-- The links of some pages of a checkpoint.
INSERT INTO crawl_links (job_id, first_id, last_id, pages, keys) VALUES (:job_id, :first_id, :last_id, :pages, :keys);

-- name: page
-- The links of a crawl, some rows at a time.
SELECT first_id, pages, keys FROM crawl_links WHERE job_id = :job_id AND first_id > :after ORDER BY first_id LIMIT :wanted;

-- name: around
-- Rows that may contain the links of one page. Checkpoints overlap, so there can be several.
SELECT first_id, pages FROM crawl_links WHERE job_id = :job_id AND first_id <= :id AND last_id >= :id ORDER BY first_id;

-- name: row
SELECT pages, keys FROM crawl_links WHERE job_id = :job_id AND first_id = :first_id;

-- name: forget
DELETE FROM crawl_links WHERE (job_id, first_id) IN (
    SELECT job_id, first_id FROM crawl_links WHERE job_id = :job_id LIMIT :wanted) RETURNING first_id;

-- What lists of pages show and sort by, apart from the content: reading `crawl_results` means reading whole pages.
CREATE TABLE crawl_pages (
    job_id TEXT NOT NULL,
    url_id INTEGER NOT NULL,
    title TEXT NOT NULL,
    title_key TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    seconds REAL NOT NULL,
    stored_at TEXT NOT NULL,
    PRIMARY KEY (job_id, url_id)
) WITHOUT ROWID;
CREATE INDEX crawl_pages_title ON crawl_pages (job_id, title_key, url_id);
CREATE INDEX crawl_pages_bytes ON crawl_pages (job_id, bytes, url_id);
CREATE INDEX crawl_pages_seconds ON crawl_pages (job_id, seconds, url_id);

INSERT INTO crawl_pages (job_id, url_id, title, title_key, bytes, seconds, stored_at)
SELECT job_id, url_id, title, substr(lower(trim(title)), 1, 60),
    CASE WHEN json_type(metadata, '$.bytes') = 'integer' THEN json_extract(metadata, '$.bytes') ELSE -1 END,
    CASE WHEN json_type(metadata, '$.seconds') IN ('integer', 'real') THEN json_extract(metadata, '$.seconds') ELSE -1 END,
    created_at
FROM (SELECT job_id, url_id, metadata, created_at,
             CASE WHEN json_type(data, '$.title') = 'text' THEN substr(json_extract(data, '$.title'), 1, 300) ELSE '' END AS title
      FROM crawl_results) AS stored;

-- The crawling time so far, at each sample: two samples that lie further apart than the time between them was paused.
ALTER TABLE crawl_samples ADD COLUMN seconds REAL;

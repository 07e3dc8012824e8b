-- What lists of pages show and sort by, apart from the content: reading `crawl_results` means reading whole pages.
CREATE TABLE crawl_pages (
    job_id uuid NOT NULL,
    url_id bigint NOT NULL,
    title text NOT NULL,
    title_key text COLLATE "C" NOT NULL,
    bytes bigint NOT NULL,
    seconds double precision NOT NULL,
    stored_at timestamptz NOT NULL,
    PRIMARY KEY (job_id, url_id)
);
CREATE INDEX crawl_pages_title ON crawl_pages (job_id, title_key, url_id);
CREATE INDEX crawl_pages_bytes ON crawl_pages (job_id, bytes, url_id);
CREATE INDEX crawl_pages_seconds ON crawl_pages (job_id, seconds, url_id);

INSERT INTO crawl_pages (job_id, url_id, title, title_key, bytes, seconds, stored_at)
SELECT job_id, url_id, title, left(lower(trim(title)), 60),
    CASE WHEN jsonb_typeof(metadata -> 'bytes') = 'number' THEN (metadata ->> 'bytes')::numeric::bigint ELSE -1 END,
    CASE WHEN jsonb_typeof(metadata -> 'seconds') = 'number' THEN (metadata ->> 'seconds')::double precision ELSE -1 END,
    created_at
FROM (SELECT job_id, url_id, metadata, created_at,
             CASE WHEN jsonb_typeof(data -> 'title') = 'string' THEN left(data ->> 'title', 300) ELSE '' END AS title
      FROM crawl_results) AS stored;

-- The crawling time so far, at each sample: two samples that lie further apart than the time between them was paused.
ALTER TABLE crawl_samples ADD COLUMN seconds double precision;

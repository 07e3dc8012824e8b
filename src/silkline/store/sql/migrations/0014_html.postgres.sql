-- The HTML that jobs keep.

-- One compressed page in each row. `dictionary` is the id of the dictionary that it needs; 0: none. `size` is its size
-- before.
CREATE TABLE crawl_html (
    job_id uuid NOT NULL,
    url_id bigint NOT NULL,
    dictionary bigint NOT NULL,
    size bigint NOT NULL,
    html bytea NOT NULL,
    PRIMARY KEY (job_id, url_id)
);
ALTER TABLE crawl_html ALTER COLUMN html SET STORAGE EXTERNAL;

-- The dictionaries of a job. Each fetcher makes one from the first pages that it keeps.
CREATE TABLE crawl_html_dictionaries (
    job_id uuid NOT NULL,
    id bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (job_id, id)
);
ALTER TABLE crawl_html_dictionaries ALTER COLUMN data SET STORAGE EXTERNAL;

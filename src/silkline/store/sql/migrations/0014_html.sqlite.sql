-- The HTML that jobs keep.

-- One compressed page in each row. `dictionary` is the id of the dictionary that it needs; 0: none. `size` is its size
-- before. Rowids, since the rows are large.
CREATE TABLE crawl_html (
    job_id TEXT NOT NULL,
    url_id INTEGER NOT NULL,
    dictionary INTEGER NOT NULL,
    size INTEGER NOT NULL,
    html BLOB NOT NULL,
    PRIMARY KEY (job_id, url_id)
);

-- The dictionaries of a job. Each fetcher makes one from the first pages that it keeps.
CREATE TABLE crawl_html_dictionaries (
    job_id TEXT NOT NULL,
    id INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (job_id, id)
);

-- Which page links where.

-- A row holds the pages of one checkpoint, or a part of them: `pages` the ledger id of each and how many links it has,
-- `keys` the url_key of every link, page after page. A row for each page would cost four times as much to write, and
-- a byte more for each link. Rowids, since the rows are large.
CREATE TABLE crawl_links (
    job_id TEXT NOT NULL,
    first_id INTEGER NOT NULL,
    last_id INTEGER NOT NULL,
    pages BLOB NOT NULL,
    keys BLOB NOT NULL,
    PRIMARY KEY (job_id, first_id)
);

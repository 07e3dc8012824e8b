-- Which page links where.

-- A row holds the pages of one checkpoint, or a part of them: `pages` the ledger id of each and how many links it has,
-- `keys` the url_key of every link, page after page. A row for each page would cost four times as much to write, and
-- a byte more for each link. Hashes cannot be compressed, so that is not tried.
CREATE TABLE crawl_links (
    job_id uuid NOT NULL,
    first_id bigint NOT NULL,
    last_id bigint NOT NULL,
    pages bytea NOT NULL,
    keys bytea NOT NULL,
    PRIMARY KEY (job_id, first_id)
);
ALTER TABLE crawl_links ALTER COLUMN keys SET STORAGE EXTERNAL;

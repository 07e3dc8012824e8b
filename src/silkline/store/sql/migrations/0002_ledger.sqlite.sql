-- The ledger, the counters and the results of crawls.

-- Ids rise in the order of discovery, so a checkpoint only appends. No index on url_key while a crawl runs: it would
-- make a checkpoint cost 2.3 to 4 times as much; `crawl_url_keys` is filled when the crawl ends.
CREATE TABLE crawl_urls (
    job_id TEXT NOT NULL,
    id INTEGER NOT NULL,
    url_key INTEGER NOT NULL,
    url TEXT NOT NULL,
    host TEXT NOT NULL,
    depth INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    detail TEXT,
    found_on INTEGER,
    found_via TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    http_status INTEGER,
    PRIMARY KEY (job_id, id)
) WITHOUT ROWID;

-- Where a URL stands in the ledger of a crawl that has ended, for `explain`.
CREATE TABLE crawl_url_keys (
    job_id TEXT NOT NULL,
    url_key INTEGER NOT NULL,
    id INTEGER NOT NULL,
    PRIMARY KEY (job_id, url_key, id)
) WITHOUT ROWID;

CREATE TABLE crawl_states (
    job_id TEXT PRIMARY KEY,
    total_pending INTEGER NOT NULL DEFAULT 0,
    in_flight INTEGER NOT NULL DEFAULT 0,
    discovered INTEGER NOT NULL DEFAULT 0,
    done INTEGER NOT NULL DEFAULT 0,
    unchanged INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    skipped INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0,
    checkpoints INTEGER NOT NULL DEFAULT 0,
    seconds REAL NOT NULL DEFAULT 0,
    live TEXT NOT NULL DEFAULT '{}',
    updated_at TEXT NOT NULL,
    CHECK (discovered = total_pending + done + unchanged + failed + skipped)
) WITHOUT ROWID;

CREATE TABLE crawl_results (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id TEXT NOT NULL,
    url_id INTEGER NOT NULL,
    original_url TEXT,
    original_key INTEGER,
    final_url TEXT NOT NULL,
    final_key INTEGER NOT NULL,
    data TEXT NOT NULL,
    success INTEGER NOT NULL,
    metadata TEXT NOT NULL DEFAULT '{}',
    created_at TEXT NOT NULL,
    UNIQUE (job_id, url_id)
);
-- Reading the results of a job in the order they were stored (SQLite adds the id itself).
CREATE INDEX crawl_results_job ON crawl_results (job_id);
-- The cache, found by the asked URL; by the landed one only where it differs, which saves most of the second index.
CREATE INDEX crawl_results_original ON crawl_results (original_key, id);
CREATE INDEX crawl_results_final ON crawl_results (final_key, id) WHERE original_key IS NULL OR final_key <> original_key;

-- The ledger, the counters and the results of crawls.

-- Ids rise in the order of discovery, so a checkpoint only appends. No index on url_key while a crawl runs: it would
-- make a checkpoint cost 2.3 to 4 times as much; `crawl_url_keys` is filled when the crawl ends.
CREATE TABLE crawl_urls (
    job_id uuid NOT NULL,
    id bigint NOT NULL,
    url_key bigint NOT NULL,
    url text NOT NULL,
    host text NOT NULL,
    depth integer NOT NULL,
    state text NOT NULL,
    reason text,
    detail text,
    found_on bigint,
    found_via text NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    http_status integer,
    PRIMARY KEY (job_id, id)
) WITH (fillfactor = 80);

-- Where a URL stands in the ledger of a crawl that has ended, for `explain`.
CREATE TABLE crawl_url_keys (
    job_id uuid NOT NULL,
    url_key bigint NOT NULL,
    id bigint NOT NULL,
    PRIMARY KEY (job_id, url_key, id)
);

CREATE TABLE crawl_states (
    job_id uuid PRIMARY KEY,
    total_pending bigint NOT NULL DEFAULT 0,
    in_flight bigint NOT NULL DEFAULT 0,
    discovered bigint NOT NULL DEFAULT 0,
    done bigint NOT NULL DEFAULT 0,
    unchanged bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    skipped bigint NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0,
    checkpoints bigint NOT NULL DEFAULT 0,
    seconds double precision NOT NULL DEFAULT 0,
    live jsonb NOT NULL DEFAULT '{}',
    updated_at timestamptz NOT NULL,
    CHECK (discovered = total_pending + done + unchanged + failed + skipped)
) WITH (fillfactor = 50);

CREATE TABLE crawl_results (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id uuid NOT NULL,
    url_id bigint NOT NULL,
    original_url text,
    original_key bigint,
    final_url text NOT NULL,
    final_key bigint NOT NULL,
    data jsonb NOT NULL,
    success boolean NOT NULL,
    metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL,
    UNIQUE (job_id, url_id)
);
-- Reading the results of a job in the order they were stored.
CREATE INDEX crawl_results_job ON crawl_results (job_id, id);
-- The cache, found by the asked URL; by the landed one only where it differs, which saves most of the second index.
CREATE INDEX crawl_results_original ON crawl_results (original_key, id);
CREATE INDEX crawl_results_final ON crawl_results (final_key, id) WHERE original_key IS NULL OR final_key <> original_key;

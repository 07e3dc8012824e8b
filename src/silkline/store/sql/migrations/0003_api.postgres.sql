-- What the API remembers, and the history that charts are drawn from.

-- Only the SHA-256 of a token's secret is kept; a secret is 256 random bits, so a slow hash would add nothing.
CREATE TABLE api_tokens (
    id text PRIMARY KEY,
    name text NOT NULL,
    scope text NOT NULL CHECK (scope IN ('read', 'write', 'admin')),
    hash text NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz
);

-- The answer that a POST with this key got; stored in the transaction that did what was asked.
CREATE TABLE idempotency_keys (
    key text PRIMARY KEY,
    fingerprint text NOT NULL,
    job_id uuid,
    answer text,
    created_at timestamptz NOT NULL
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

-- The counters of a crawl as they were, ever more sparsely as it grows older.
CREATE TABLE crawl_samples (
    job_id uuid NOT NULL,
    at timestamptz NOT NULL,
    discovered bigint NOT NULL,
    done bigint NOT NULL,
    unchanged bigint NOT NULL,
    failed bigint NOT NULL,
    skipped bigint NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (job_id, at)
);

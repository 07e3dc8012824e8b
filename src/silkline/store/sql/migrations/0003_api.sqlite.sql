-- What the API remembers, and the history that charts are drawn from.

-- Only the SHA-256 of a token's secret is kept; a secret is 256 random bits, so a slow hash would add nothing.
CREATE TABLE api_tokens (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    scope TEXT NOT NULL CHECK (scope IN ('read', 'write', 'admin')),
    hash TEXT NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT
);

-- The answer that a POST with this key got; stored in the transaction that did what was asked.
CREATE TABLE idempotency_keys (
    key TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    job_id TEXT,
    answer TEXT,
    created_at TEXT NOT NULL
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

-- The counters of a crawl as they were, ever more sparsely as it grows older.
CREATE TABLE crawl_samples (
    job_id TEXT NOT NULL,
    at TEXT NOT NULL,
    discovered INTEGER NOT NULL,
    done INTEGER NOT NULL,
    unchanged INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (job_id, at)
) WITHOUT ROWID;

-- Sessions of the web page, and tokens for workers outside.

-- The key is a hash of the cookie's value, which is stored nowhere. `token_id`: the token that signed in, or `operator`.
CREATE TABLE web_sessions (
    hash TEXT PRIMARY KEY,
    token_id TEXT NOT NULL,
    created_at TEXT NOT NULL,
    seen_at TEXT NOT NULL,
    expires_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX web_sessions_token ON web_sessions (token_id, created_at);

-- SQLite cannot change a CHECK: the table is made anew with one scope more.
ALTER TABLE api_tokens RENAME TO api_tokens_before;
CREATE TABLE api_tokens (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    scope TEXT NOT NULL CHECK (scope IN ('worker', 'read', 'write', 'admin')),
    hash TEXT NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT
);
INSERT INTO api_tokens SELECT id, name, scope, hash, created_at, expires_at FROM api_tokens_before;
DROP TABLE api_tokens_before;

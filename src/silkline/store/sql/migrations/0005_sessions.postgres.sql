-- Sessions of the web page, and tokens for workers outside.

-- The key is a hash of the cookie's value, which is stored nowhere. `token_id`: the token that signed in, or `operator`.
CREATE TABLE web_sessions (
    hash text PRIMARY KEY,
    token_id text NOT NULL,
    created_at timestamptz NOT NULL,
    seen_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX web_sessions_token ON web_sessions (token_id, created_at);

ALTER TABLE api_tokens DROP CONSTRAINT api_tokens_scope_check;
ALTER TABLE api_tokens ADD CONSTRAINT api_tokens_scope_check CHECK (scope IN ('worker', 'read', 'write', 'admin'));

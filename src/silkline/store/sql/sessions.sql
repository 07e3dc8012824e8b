-- The sessions of the web page.

-- name: add
INSERT INTO web_sessions (hash, token_id, created_at, seen_at, expires_at)
VALUES (:hash, :token_id, :now, :now, :expires_at) RETURNING hash;

-- name: get
-- One session that has not expired and was used recently enough.
SELECT token_id, seen_at FROM web_sessions WHERE hash = :hash AND expires_at > :now AND seen_at > :idle_since;

-- name: touch
UPDATE web_sessions SET seen_at = :now WHERE hash = :hash RETURNING hash;

-- name: forget
DELETE FROM web_sessions WHERE hash = :hash RETURNING hash;

-- name: forget_of
-- Remove all sessions of a revoked token.
DELETE FROM web_sessions WHERE token_id = :token_id RETURNING hash;

-- name: sweep
-- Remove expired sessions, and all but the newest sessions of a token.
DELETE FROM web_sessions WHERE expires_at <= :now OR seen_at <= :idle_since OR hash IN (
    SELECT hash FROM web_sessions WHERE token_id = :token_id ORDER BY created_at DESC LIMIT 1000 OFFSET :kept)
RETURNING hash;

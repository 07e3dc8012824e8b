-- The tokens of the API.

-- name: add
INSERT INTO api_tokens (id, name, scope, hash, created_at, expires_at)
VALUES (:id, :label, :scope, :hash, :now, :expires_at) RETURNING id;

-- name: get
-- One token that has not expired.
SELECT * FROM api_tokens WHERE id = :id AND (expires_at IS NULL OR expires_at > :now);

-- name: all
SELECT id, name, scope, created_at, expires_at FROM api_tokens ORDER BY created_at, id;

-- name: forget
DELETE FROM api_tokens WHERE id = :id RETURNING id;

-- The schema revision of a database.

-- name: exists [sqlite]
SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = 'silkline_schema';

-- name: exists [postgres]
SELECT 1 AS found WHERE to_regclass('silkline_schema') IS NOT NULL;

-- name: create
CREATE TABLE IF NOT EXISTS silkline_schema (revision integer PRIMARY KEY, applied_at text NOT NULL);

-- name: revision
SELECT max(revision) AS revision FROM silkline_schema;

-- name: record
INSERT INTO silkline_schema (revision, applied_at) VALUES (:revision, :applied);

-- Links between the shards of a crawl: a transactional outbox with cursors. PostgreSQL only.

-- name: advance [postgres]
-- The progress of a shard. Its rows for other shards get the number that this returns. The row of a shard is locked until
-- the commit, so the numbers become visible in order: who sees a number has seen all smaller ones.
UPDATE crawl_shards SET sent = CASE WHEN :sends THEN greatest(sent + 1, :micros) ELSE sent END, lowest = :lowest, quiet = :quiet WHERE job_id = :job_id RETURNING sent;

-- name: send [postgres]
-- One row for each receiver.
INSERT INTO shard_links (parent_id, receiver, sender, number, depth, links)
SELECT :parent_id, new.receiver, :sender, :number, new.depth, new.links
FROM unnest(:receivers::int[], :depths::int[], :links::bytea[]) AS new (receiver, depth, links);

-- name: notify [postgres]
-- Wake receivers that have nothing to do; those with work look by themselves. Outside of the checkpoint, because NOTIFY
-- takes a lock on the whole server at commit, which would make all checkpoints wait for each other.
SELECT pg_notify('silkline', s.job_id::text)
FROM crawl_shards s LEFT JOIN crawl_states t ON t.job_id = s.job_id
WHERE s.parent_id = :parent_id AND s.shard = ANY(:receivers::int[]) AND coalesce(t.total_pending, 0) = 0;

-- name: notify_all [postgres]
-- Wake all shards of a parent: its end or its depth was decided.
SELECT pg_notify('silkline', job_id::text) FROM crawl_shards WHERE parent_id = :parent_id;

-- name: take [postgres]
-- Move the cursors of a receiver, never back.
INSERT INTO shard_cursors (parent_id, receiver, sender, taken)
SELECT :parent_id, :receiver, new.sender, new.taken FROM unnest(:senders::int[], :numbers::bigint[]) AS new (sender, taken)
ON CONFLICT (parent_id, receiver, sender) DO UPDATE SET taken = excluded.taken
WHERE shard_cursors.taken < excluded.taken
RETURNING sender;

-- name: sweep [postgres]
-- Remove the rows that a receiver has taken in.
DELETE FROM shard_links USING shard_cursors AS k
WHERE k.parent_id = :parent_id AND k.receiver = :receiver AND shard_links.parent_id = k.parent_id
  AND shard_links.receiver = k.receiver AND shard_links.sender = k.sender AND shard_links.number <= k.taken;

-- name: sweep_all [postgres]
-- Remove the rows that any receiver of a crawl has taken in.
DELETE FROM shard_links USING shard_cursors AS k
WHERE k.parent_id = :parent_id AND shard_links.parent_id = k.parent_id
  AND shard_links.receiver = k.receiver AND shard_links.sender = k.sender AND shard_links.number <= k.taken;

-- name: cursors [postgres]
SELECT sender, taken FROM shard_cursors WHERE parent_id = :parent_id AND receiver = :receiver;

-- name: arrived [postgres]
-- Rows for a receiver after the given numbers of each sender, the oldest of each sender first.
SELECT who.sender, l.number, l.links
FROM unnest(:senders::int[], :numbers::bigint[]) AS who (sender, number)
CROSS JOIN LATERAL (
    SELECT r.number, r.links FROM shard_links r
    WHERE r.parent_id = :parent_id AND r.receiver = :receiver AND r.sender = who.sender AND r.number > who.number
    ORDER BY r.number LIMIT :wanted) AS l
ORDER BY l.number, who.sender LIMIT :most;

-- name: look [postgres]
-- What a shard must know of the rest of the crawl. `wanted`: another job waits for a slot, and no live worker that could run
-- it has one.
SELECT c.ending, c.remaining, c.level, c.settled, s.allowed, EXISTS (
    SELECT 1 FROM crawl_jobs w WHERE w.status = 'queued' AND w.run_at <= :now AND w.kind <> 'extension'
      AND NOT EXISTS (SELECT 1 FROM workers v WHERE v.idle AND v.last_seen > CAST(:now AS timestamptz) - interval '60 seconds'
                        AND (v.kinds IS NULL OR v.kinds LIKE '%"' || w.kind || '"%'))) AS wanted,
    NOT EXISTS (SELECT 1 FROM crawl_shards o JOIN crawl_jobs j ON j.id = o.job_id
                WHERE o.parent_id = c.job_id AND NOT o.quiet AND j.status = 'running' AND o.job_id <> s.job_id) AS all_quiet
FROM sharded_crawls c JOIN crawl_shards s ON s.parent_id = c.job_id WHERE s.job_id = :job_id;

-- name: hold [postgres]
-- What is left of the limit. The lock orders all who take from it or return to it.
SELECT remaining, shards FROM sharded_crawls WHERE job_id = :parent_id AND remaining IS NOT NULL FOR UPDATE;

-- name: unused [postgres]
-- Pages that a shard may store and has not stored.
SELECT s.allowed - coalesce(t.done + t.unchanged, 0) AS pages
FROM crawl_shards s LEFT JOIN crawl_states t ON t.job_id = s.job_id WHERE s.job_id = :job_id;

-- name: grant [postgres]
-- Pages of the limit go from the parent to a shard, or back.
WITH taken AS (UPDATE sharded_crawls SET remaining = remaining - :pages WHERE job_id = :parent_id)
UPDATE crawl_shards SET allowed = allowed + :pages WHERE job_id = :job_id;

-- name: overdrawn [postgres]
-- A shard that has stored more pages than it may.
SELECT s.job_id FROM crawl_shards s JOIN crawl_states t ON t.job_id = s.job_id JOIN sharded_crawls c ON c.job_id = s.parent_id
WHERE s.job_id = :job_id AND c.remaining IS NOT NULL AND t.done + t.unchanged > s.allowed;

-- name: forget [postgres]
DELETE FROM shard_links WHERE parent_id = :job_id;

-- The fleet as a whole.

-- name: running
-- Running jobs, the oldest first, without their payloads, which may be large. A crawl in shards runs as its shards.
SELECT id, kind, shard, request_url, desired, host, worker_id, attempt, run_lease, started_at
FROM crawl_jobs WHERE status = 'running' AND worker_id <> 'shards' ORDER BY started_at, id LIMIT :wanted;

-- name: running_total
SELECT count(*) AS jobs FROM crawl_jobs WHERE status = 'running' AND worker_id <> 'shards';

-- name: queue
-- The queued jobs of each kind: how many, how many of them are due, and since when the oldest of these is due.
SELECT kind, count(*) AS jobs,
       coalesce(sum(CASE WHEN run_at <= :now THEN 1 ELSE 0 END), 0) AS due,
       min(CASE WHEN run_at <= :now THEN run_at END) AS run_at
FROM crawl_jobs WHERE status = 'queued' GROUP BY kind ORDER BY kind;

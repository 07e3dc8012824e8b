-- What the processes with each meter committed.

-- name: add
INSERT INTO checkpoint_counts
    (meter, discovered, done, unchanged, failed, skipped, requeued, bytes, results, checkpoints, updated_at)
VALUES (:meter, :discovered, :done, :unchanged, :failed, :skipped, :requeued, :bytes, :results, :checkpoints, :now)
ON CONFLICT (meter) DO UPDATE
SET discovered = checkpoint_counts.discovered + excluded.discovered, done = checkpoint_counts.done + excluded.done,
    unchanged = checkpoint_counts.unchanged + excluded.unchanged, failed = checkpoint_counts.failed + excluded.failed,
    skipped = checkpoint_counts.skipped + excluded.skipped,
    requeued = checkpoint_counts.requeued + excluded.requeued, bytes = checkpoint_counts.bytes + excluded.bytes,
    results = checkpoint_counts.results + excluded.results,
    checkpoints = checkpoint_counts.checkpoints + excluded.checkpoints, updated_at = excluded.updated_at;

-- name: sum [sqlite]
-- The sum over the meters of one machine.
SELECT coalesce(sum(discovered), 0) AS discovered, coalesce(sum(done), 0) AS done, coalesce(sum(unchanged), 0) AS unchanged,
       coalesce(sum(failed), 0) AS failed, coalesce(sum(skipped), 0) AS skipped, coalesce(sum(requeued), 0) AS requeued,
       coalesce(sum(bytes), 0) AS bytes, coalesce(sum(results), 0) AS results, coalesce(sum(checkpoints), 0) AS checkpoints
FROM checkpoint_counts WHERE meter IN (SELECT value FROM json_each(:meters));

-- name: sum [postgres]
SELECT coalesce(sum(discovered), 0) AS discovered, coalesce(sum(done), 0) AS done, coalesce(sum(unchanged), 0) AS unchanged,
       coalesce(sum(failed), 0) AS failed, coalesce(sum(skipped), 0) AS skipped, coalesce(sum(requeued), 0) AS requeued,
       coalesce(sum(bytes), 0) AS bytes, coalesce(sum(results), 0) AS results, coalesce(sum(checkpoints), 0) AS checkpoints
FROM checkpoint_counts WHERE meter = ANY(ARRAY(SELECT jsonb_array_elements_text(:meters::jsonb)));

-- name: forget
-- Remove the counts of data directories that are gone.
DELETE FROM checkpoint_counts WHERE updated_at < :before;

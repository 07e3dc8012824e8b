-- The ledger and the counters of crawls.
-- `crawl_ledger` has the rows that are written. `crawl_urls` is a view of it for readers: URLs that were left over at
-- the end of a crawl are queued in the table and skipped in the view. A row of `crawl_ledger` begins with the job; :ledger
-- is that value, from the statement `ledger`.

-- name: glance
-- Does this attempt still hold the lease? Checked first, without a lock, so that an attempt without the lease writes
-- nothing.
SELECT id FROM crawl_jobs WHERE id = :job_id AND status = 'running' AND run_lease = :run_lease AND worker_id = :worker_id;

-- name: fence [sqlite]
-- Does this attempt still hold the lease? SQLite has one writer, so the answer cannot change before the commit.
SELECT id FROM crawl_jobs WHERE id = :job_id AND status = 'running' AND run_lease = :run_lease AND worker_id = :worker_id;

-- name: fence [postgres]
-- The same, checked last in a checkpoint, with a lock that a rescue waits for. The commit releases it at once, so that
-- heartbeats wait for microseconds only.
SELECT id FROM crawl_jobs WHERE id = :job_id AND status = 'running' AND run_lease = :run_lease AND worker_id = :worker_id
FOR SHARE;

-- name: append [sqlite]
-- New URLs, in the order of discovery. OR ROLLBACK: a row that cannot be stored ends the whole transaction, so SQLite keeps
-- no journal of each statement.
INSERT OR ROLLBACK INTO crawl_ledger (job, id, url_key, url, host, depth, state, reason, detail, found_on, found_via, chain)
VALUES (:ledger, :id, :url_key, :url, :host, :depth, :state, :reason, :detail, :found_on, :found_via, :chain);

-- name: append [postgres]
-- The values are :ledger and the columns of a new URL, in this order.
COPY crawl_ledger (job_id, id, url_key, url, host, depth, state, reason, detail, found_on, found_via, chain)
FROM STDIN (FORMAT binary);

-- name: settle [sqlite]
-- Store the final state of queued URLs, one more try, or a smaller depth.
UPDATE crawl_ledger SET state = :state, reason = :reason, detail = :detail, attempts = :attempts,
    http_status = :http_status, depth = coalesce(:depth, depth)
WHERE job = :ledger AND id = :id AND state = 'queued';

-- name: settle [postgres]
UPDATE crawl_ledger SET state = new.state, reason = new.reason, detail = new.detail, attempts = new.attempts,
    http_status = new.http_status, depth = coalesce(new.depth, crawl_ledger.depth)
FROM unnest(:id::bigint[], :state::text[], :reason::text[], :detail::text[], :attempts::int[], :http_status::int[],
    :depth::int[]) AS new (id, state, reason, detail, attempts, http_status, depth)
WHERE crawl_ledger.job_id = :ledger AND crawl_ledger.id = new.id AND crawl_ledger.state = 'queued';

-- name: open_state [sqlite]
-- Create the counters of a crawl. The key is free again only when the ledger of a deleted job is empty.
INSERT INTO crawl_states (job_id, updated_at, key)
VALUES (:job_id, :now, (SELECT coalesce(max(key), 0) + 1 FROM crawl_states)) ON CONFLICT (job_id) DO NOTHING;

-- name: open_state [postgres]
INSERT INTO crawl_states (job_id, updated_at) VALUES (:job_id, :now) ON CONFLICT (job_id) DO NOTHING;

-- name: ledger [sqlite]
-- What the rows of a job begin with, the reason of its URLs that were left over, and the number of its checkpoints.
SELECT key AS ledger, leftover, checkpoints FROM crawl_states WHERE job_id = :job_id;

-- name: ledger [postgres]
SELECT job_id AS ledger, leftover, checkpoints FROM crawl_states WHERE job_id = :job_id;

-- name: count
-- Change the counters by the URLs that this checkpoint appended and settled.
UPDATE crawl_states
SET total_pending = total_pending + :pending, discovered = discovered + :discovered, done = done + :done,
    unchanged = unchanged + :unchanged, failed = failed + :failed, skipped = skipped + :skipped, bytes = bytes + :bytes,
    in_flight = :in_flight, seconds = seconds + :seconds, live = :live, checkpoints = checkpoints + 1, updated_at = :now
WHERE job_id = :job_id
RETURNING *;

-- name: states [sqlite]
-- The counters of several jobs. `runs`: a job that does not run has no URLs in flight, even if its last checkpoint has
-- some. `crawling`: the crawling time, if it is not the sum of the parts.
SELECT crawl_states.*, job_id AS asked, NULL AS crawling, EXISTS (
    SELECT 1 FROM crawl_jobs WHERE crawl_jobs.id = crawl_states.job_id AND crawl_jobs.status = 'running') AS runs
FROM crawl_states WHERE job_id IN (SELECT value FROM json_each(:job_ids));

-- name: states [postgres]
-- The same, and one row for each shard of a job. One statement reads all shards in one snapshot.
SELECT t.*, part.asked, part.crawling, EXISTS (
    SELECT 1 FROM crawl_jobs WHERE crawl_jobs.id = t.job_id AND crawl_jobs.status = 'running') AS runs
FROM (
    SELECT value::uuid AS asked, value::uuid AS job_id, NULL::double precision AS crawling
    FROM jsonb_array_elements_text(:job_ids::jsonb)
    UNION ALL
    SELECT s.parent_id, s.job_id, c.seconds
    FROM jsonb_array_elements_text(:job_ids::jsonb) JOIN crawl_shards s ON s.parent_id = value::uuid
    JOIN sharded_crawls c ON c.job_id = s.parent_id) AS part
JOIN crawl_states t ON t.job_id = part.job_id;

-- name: tally
-- The number of URLs in each state, from the rows. The counters must be equal.
SELECT state, count(*) AS urls FROM crawl_urls WHERE job_id = :job_id GROUP BY state;

-- name: tally_reasons
-- Why URLs failed or were skipped.
SELECT state, reason, count(*) AS urls FROM crawl_urls
WHERE job_id = :job_id AND reason IS NOT NULL AND state IN ('failed', 'skipped') GROUP BY state, reason ORDER BY urls DESC, state, reason;

-- name: tally_statuses
-- The number of URLs for each HTTP status.
SELECT http_status, count(*) AS urls FROM crawl_urls
WHERE job_id = :job_id AND http_status IS NOT NULL GROUP BY http_status ORDER BY http_status;

-- name: tally_hosts
-- The hosts of a crawl, the largest first; after them the hosts that its pages only link to.
SELECT host, count(*) AS discovered, sum(CASE WHEN state = 'queued' THEN 1 ELSE 0 END) AS queued,
       sum(CASE WHEN state = 'done' THEN 1 ELSE 0 END) AS done,
       sum(CASE WHEN state = 'unchanged' THEN 1 ELSE 0 END) AS unchanged,
       sum(CASE WHEN state = 'failed' THEN 1 ELSE 0 END) AS failed,
       sum(CASE WHEN state = 'skipped' THEN 1 ELSE 0 END) AS skipped,
       sum(CASE WHEN state = 'skipped' AND reason = 'out_of_scope' THEN 1 ELSE 0 END) AS out_of_scope
FROM crawl_urls WHERE job_id = :job_id GROUP BY host
ORDER BY CASE WHEN sum(CASE WHEN state = 'skipped' AND reason = 'out_of_scope' THEN 0 ELSE 1 END) = 0 THEN 1 ELSE 0 END,
         discovered DESC, host LIMIT :wanted;

-- name: page_by_reason
-- URLs of one state and, unless :reason is null, one reason. CASE as in `jobs.search`, to read in order until there are
-- enough.
SELECT * FROM crawl_urls
WHERE job_id = :job_id AND id > :after AND CASE
    WHEN state <> :state THEN false
    WHEN CAST(:reason AS text) IS NULL THEN true
    ELSE reason = CAST(:reason AS text) END
ORDER BY id LIMIT :wanted;

-- name: named_on
-- URLs that were found on one page first.
SELECT * FROM crawl_urls WHERE job_id = :job_id AND found_on = :id ORDER BY id LIMIT :wanted;

-- name: by_ids [sqlite]
SELECT * FROM crawl_urls WHERE job_id = :job_id AND id IN (SELECT value FROM json_each(:ids));

-- name: by_ids [postgres]
SELECT * FROM crawl_urls
WHERE job_id = :job_id AND id = ANY(ARRAY(SELECT jsonb_array_elements_text(:ids::jsonb)::bigint));

-- name: page
-- Rows of the ledger after a cursor.
SELECT * FROM crawl_urls WHERE job_id = :job_id AND id > :after ORDER BY id LIMIT :wanted;

-- name: page_by_state
SELECT * FROM crawl_urls
WHERE job_id = :job_id AND id > :after AND CASE WHEN state = :state THEN true ELSE false END ORDER BY id LIMIT :wanted;

-- name: queued
-- Queued URLs, in the order of discovery.
SELECT id, url_key, url, host, depth, attempts, found_via, chain FROM crawl_urls
WHERE job_id = :job_id AND id > :after AND CASE WHEN state = 'queued' THEN true ELSE false END ORDER BY id LIMIT :wanted;

-- name: queued_own
-- Queued URLs that their own hosts name, for a crawl that starts or refills its frontier. Sitemaps that only others name
-- are among them.
SELECT id, url_key, url, host, depth, attempts, found_via, chain FROM crawl_urls
WHERE job_id = :job_id AND id > :after AND CASE WHEN state = 'queued' THEN found_via <> 'foreign' ELSE false END
ORDER BY id LIMIT :wanted;

-- name: queued_foreign
-- Queued URLs that only other hosts name, for the same. All sitemaps are among them.
SELECT id, url_key, url, host, depth, attempts, found_via, chain FROM crawl_urls
WHERE job_id = :job_id AND id > :after
  AND CASE WHEN state = 'queued' THEN found_via IN ('foreign', 'robots', 'sitemap_index') ELSE false END
ORDER BY id LIMIT :wanted;

-- name: queued_depths
-- The number of queued URLs at each depth.
SELECT depth, count(*) AS urls FROM crawl_urls WHERE job_id = :job_id AND state = 'queued' GROUP BY depth;

-- name: every
-- Every URL ever seen, to rebuild the seen-set.
SELECT id, url, host, found_via FROM crawl_urls WHERE job_id = :job_id AND id > :after ORDER BY id LIMIT :wanted;

-- name: sitemaps
-- The sitemaps of a `map` job.
SELECT url, chain, found_via, reason FROM crawl_urls WHERE job_id = :job_id AND found_via <> 'sitemap';

-- name: listed
-- The sitemaps of a `map` job, each with the number of its URLs that have a result.
SELECT s.url, s.chain, count(*) AS urls
FROM crawl_urls u JOIN crawl_urls s ON s.job_id = u.job_id AND s.id = u.found_on
WHERE u.job_id = :job_id AND u.found_via = 'sitemap' AND u.state = 'done' GROUP BY s.id, s.url, s.chain;

-- name: spent
-- For each host that is large or has a trap: the number of its URLs in the scope, their bytes, and the number of URLs
-- of a trap.
SELECT host, count(*) AS urls, CAST(sum(length(url) + :row_bytes) AS BIGINT) AS bytes,
  count(CASE WHEN state = 'skipped' AND reason = 'trap' THEN 1 END) AS trapped
FROM crawl_urls
WHERE job_id = :job_id AND NOT (state = 'skipped' AND reason IN ('out_of_scope', 'excluded', 'too_deep'))
GROUP BY host
HAVING count(*) > :large OR sum(length(url)) > :large_bytes OR count(CASE WHEN state = 'skipped' AND reason = 'trap' THEN 1 END) > 0;

-- name: bytes_by_source
-- The bytes of the rows that were found on the pages of each host or by its redirects, without the URLs of the same host
-- that are to be fetched, and without the redirects of seeds.
SELECT source.host AS host, CAST(sum(length(found.url) + :row_bytes) AS BIGINT) AS bytes
FROM crawl_urls AS found JOIN crawl_urls AS source ON source.job_id = found.job_id AND source.id = found.found_on
WHERE found.job_id = :job_id AND found.depth > 0 AND (found.host <> source.host
  OR (found.state = 'skipped' AND found.reason IN ('out_of_scope', 'excluded', 'too_deep', 'trap')))
GROUP BY source.host
HAVING sum(length(found.url) + :row_bytes) > :large_bytes;

-- name: roots
-- Seeds, and the targets of their redirects.
SELECT id, url FROM crawl_urls
WHERE job_id = :job_id AND id > :after AND depth = 0 AND found_via IN ('seed', 'redirect') ORDER BY id LIMIT :wanted;

-- name: root_ends
-- The final states of the first URLs of a job, each with its number of URLs and its first URL.
SELECT ends.found_via, ends.state, ends.reason, ends.urls, u.url, u.detail FROM (
    SELECT found_via, state, reason, count(*) AS urls, min(id) AS first FROM crawl_urls
    WHERE job_id = :job_id AND depth = 0 GROUP BY found_via, state, reason) AS ends
JOIN crawl_urls u ON u.job_id = :job_id AND u.id = ends.first
ORDER BY ends.urls DESC, ends.first;

-- name: left
-- Whether URLs of a job are still queued.
SELECT job_id FROM crawl_states WHERE job_id = :job_id AND total_pending > 0;

-- name: lock_counts
-- Take the counters of a job, so that nobody else changes them before the commit.
UPDATE crawl_states SET updated_at = :now WHERE job_id = :job_id RETURNING total_pending;

-- name: leave_queued
-- The crawl ends before its queued URLs: all of them are skipped from now on, for one reason. No row is rewritten.
UPDATE crawl_states
SET leftover = :reason, skipped = skipped + total_pending, total_pending = 0, in_flight = 0, updated_at = :now
WHERE job_id = :job_id;

-- name: rewrite_leftovers [sqlite]
-- Give the URLs that were left over the state that the view shows, in a range of ids.
UPDATE crawl_ledger SET state = 'skipped', reason = :reason
WHERE job = :ledger AND id > :after AND id <= :upto AND state = 'queued';

-- name: rewrite_leftovers [postgres]
UPDATE crawl_ledger SET state = 'skipped', reason = :reason
WHERE job_id = :ledger AND id > :after AND id <= :upto AND state = 'queued';

-- name: no_leftovers
UPDATE crawl_states SET leftover = NULL WHERE job_id = :job_id;

-- name: last_id [sqlite]
SELECT coalesce((SELECT max(id) FROM crawl_ledger WHERE job = (SELECT key FROM crawl_states WHERE job_id = :job_id)), 0) AS id;

-- name: last_id [postgres]
SELECT coalesce(max(id), 0) AS id FROM crawl_ledger WHERE job_id = :job_id;

-- name: by_id
SELECT * FROM crawl_urls WHERE job_id = :job_id AND id = :id;

-- name: by_key
-- One URL of a crawl that still runs: a scan of its own rows.
SELECT * FROM crawl_urls WHERE job_id = :job_id AND url_key = :url_key AND url = :url ORDER BY id LIMIT 1;

-- name: by_indexed_key
-- One URL of a crawl that has ended.
SELECT u.* FROM crawl_url_keys k JOIN crawl_urls u ON u.job_id = k.job_id AND u.id = k.id
WHERE k.job_id = :job_id AND k.url_key = :url_key AND u.url = :url ORDER BY k.id LIMIT 1;

-- name: by_keys [sqlite]
-- Several URLs of a crawl that has no index.
SELECT * FROM crawl_urls WHERE job_id = :job_id AND url_key IN (SELECT value FROM json_each(:keys));

-- name: by_keys [postgres]
SELECT * FROM crawl_urls
WHERE job_id = :job_id AND url_key = ANY(ARRAY(SELECT jsonb_array_elements_text(:keys::jsonb)::bigint));

-- name: by_indexed_keys [sqlite]
-- Several URLs of a crawl that has ended. CROSS makes SQLite search each key in the index.
SELECT u.* FROM json_each(:keys) AS wanted
CROSS JOIN crawl_url_keys k ON k.job_id = :job_id AND k.url_key = wanted.value
JOIN crawl_urls u ON u.job_id = k.job_id AND u.id = k.id;

-- name: by_indexed_keys [postgres]
SELECT u.* FROM crawl_url_keys k JOIN crawl_urls u ON u.job_id = k.job_id AND u.id = k.id
WHERE k.job_id = :job_id AND k.url_key = ANY(ARRAY(SELECT jsonb_array_elements_text(:keys::jsonb)::bigint));

-- name: index [sqlite]
-- Index the URLs of an ended crawl by key, a bounded range of ids at a time.
INSERT INTO ledger_keys (job, url_key, id)
SELECT u.job, u.url_key, u.id FROM crawl_states s JOIN crawl_ledger u ON u.job = s.key
WHERE s.job_id = :job_id AND u.id > :after AND u.id <= :upto ORDER BY u.url_key
ON CONFLICT (job, url_key, id) DO NOTHING;

-- name: index [postgres]
INSERT INTO crawl_url_keys (job_id, url_key, id)
SELECT job_id, url_key, id FROM crawl_ledger WHERE job_id = :job_id AND id > :after AND id <= :upto ORDER BY url_key
ON CONFLICT (job_id, url_key, id) DO NOTHING;

-- name: hold_status [sqlite]
-- The status of a job, which cannot change before the commit. SQLite has one writer.
SELECT status FROM crawl_jobs WHERE id = :id;

-- name: hold_status [postgres]
SELECT status FROM crawl_jobs WHERE id = :id FOR SHARE;

-- name: requeue [sqlite]
-- Queue failed URLs again: those of one reason, a bounded number at a time.
UPDATE crawl_ledger SET state = 'queued', reason = NULL, detail = NULL, attempts = 0
WHERE job = (SELECT key FROM crawl_states WHERE job_id = :job_id) AND state = 'failed' AND id IN (
    SELECT id FROM crawl_urls WHERE job_id = :job_id AND state = 'failed' AND reason = :reason LIMIT :wanted)
RETURNING id;

-- name: requeue [postgres]
UPDATE crawl_ledger SET state = 'queued', reason = NULL, detail = NULL, attempts = 0
WHERE job_id = :job_id AND state = 'failed' AND id IN (
    SELECT id FROM crawl_ledger WHERE job_id = :job_id AND state = 'failed' AND reason = :reason LIMIT :wanted)
RETURNING id;

-- name: requeued
-- Change the counters accordingly.
UPDATE crawl_states SET total_pending = total_pending + :urls, failed = failed - :urls, updated_at = :now
WHERE job_id = :job_id;

-- name: forget [sqlite]
DELETE FROM crawl_ledger WHERE job = (SELECT key FROM crawl_states WHERE job_id = :job_id) AND id IN (
    SELECT id FROM crawl_urls WHERE job_id = :job_id LIMIT :wanted) RETURNING id;

-- name: forget [postgres]
DELETE FROM crawl_ledger WHERE job_id = :job_id AND id IN (
    SELECT id FROM crawl_ledger WHERE job_id = :job_id LIMIT :wanted) RETURNING id;

-- name: forget_keys [sqlite]
DELETE FROM ledger_keys WHERE (job, url_key, id) IN (
    SELECT k.job, k.url_key, k.id FROM crawl_states s JOIN ledger_keys k ON k.job = s.key WHERE s.job_id = :job_id LIMIT :wanted)
RETURNING id;

-- name: forget_keys [postgres]
DELETE FROM crawl_url_keys WHERE (job_id, url_key, id) IN (
    SELECT job_id, url_key, id FROM crawl_url_keys WHERE job_id = :job_id LIMIT :wanted) RETURNING id;

-- name: forget_state
DELETE FROM crawl_states WHERE job_id = :job_id;

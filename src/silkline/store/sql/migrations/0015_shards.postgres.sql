-- Crawls that span machines: a parent job and its shards, each a job with a part of the hosts.

-- Which shard of its parent a job is. NULL: it is not a shard.
ALTER TABLE crawl_jobs ADD COLUMN shard integer;
CREATE UNIQUE INDEX crawl_jobs_shard ON crawl_jobs (parent_id, shard) WHERE shard IS NOT NULL;

-- The parents. `remaining`: pages of the limit that no shard may store yet; NULL: no limit. `ending`: how the crawl ends,
-- once that is decided. `level`: the lowest depth with something to do. `settled`: URLs that are not queued any more.
-- `horizon`: no result with an id up to here is still to come, so a reader that follows the crawl may read so far; `mark` is
-- the next one, when all transactions before `mark_xid` have ended. `log_horizon` and `log_mark` are the same for lines of the
-- log. `seconds`: its crawling time.
CREATE TABLE sharded_crawls (
    job_id uuid PRIMARY KEY,
    shards integer NOT NULL,
    remaining bigint CHECK (remaining >= 0),
    ending text,
    message text,
    level integer,
    settled bigint NOT NULL DEFAULT 0,
    horizon bigint NOT NULL DEFAULT 0,
    mark bigint NOT NULL DEFAULT 0,
    log_horizon bigint NOT NULL DEFAULT 0,
    log_mark bigint NOT NULL DEFAULT 0,
    mark_xid bigint NOT NULL DEFAULT 0,
    seconds double precision NOT NULL DEFAULT 0,
    settled_at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- What only shards have beside the counters of every crawl. `sent`: the number of its last row in shard_links. `allowed`:
-- how many pages it may store. `lowest`: the lowest depth at which it has queued URLs, in a crawl with a limit on depth.
-- `quiet`: the crawl ends, and this shard sends nothing more.
CREATE TABLE crawl_shards (
    job_id uuid PRIMARY KEY,
    parent_id uuid NOT NULL,
    shard integer NOT NULL,
    sent bigint NOT NULL DEFAULT 0,
    allowed bigint NOT NULL DEFAULT 0,
    lowest integer,
    quiet boolean NOT NULL DEFAULT false,
    UNIQUE (parent_id, shard)
) WITH (fillfactor = 50);

-- Links to hosts of another shard, one row for each checkpoint of the sender and each receiver. Sender -1 is the seeds file.
-- `depth`: the lowest depth of these links.
CREATE TABLE shard_links (
    parent_id uuid NOT NULL,
    receiver integer NOT NULL,
    sender integer NOT NULL,
    number bigint NOT NULL,
    depth integer NOT NULL,
    links bytea NOT NULL,
    PRIMARY KEY (parent_id, receiver, sender, number)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE shard_links ALTER COLUMN links SET STORAGE EXTERNAL;

-- How far each receiver has taken in the rows of each sender.
CREATE TABLE shard_cursors (
    parent_id uuid NOT NULL,
    receiver integer NOT NULL,
    sender integer NOT NULL,
    taken bigint NOT NULL,
    PRIMARY KEY (parent_id, receiver, sender)
) WITH (fillfactor = 50);

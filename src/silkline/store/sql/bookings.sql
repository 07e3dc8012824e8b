-- The time of hosts, booked by jobs. The clock is that of the database, so that all machines agree.

-- name: book [sqlite]
-- Book the time of many hosts at once; an entry of `asked` is host, owner, delay, length. A host is free for its last owner at once,
-- and for others when the last booking has ended and the longer of the two delays is over. So bookings form a queue. A booking that
-- was made more than a minute in the future was made with a wrong clock, and does not count.
INSERT INTO host_bookings (host, job_id, owner, starts, ends, delay, booked, idle)
SELECT value ->> 0, :job_id, value ->> 1, now, now + (value ->> 3), value ->> 2, now, 3600
FROM json_each(:asked) CROSS JOIN (SELECT unixepoch('subsec') AS now) WHERE true
ON CONFLICT (host) DO UPDATE SET
    starts = CASE
        WHEN host_bookings.booked > excluded.booked + 60 THEN excluded.booked
        WHEN host_bookings.owner = excluded.owner THEN max(excluded.booked, host_bookings.starts)
        ELSE max(excluded.booked, host_bookings.ends + max(host_bookings.delay, excluded.delay)) END,
    ends = CASE
        WHEN host_bookings.booked > excluded.booked + 60 THEN excluded.ends
        WHEN host_bookings.owner = excluded.owner THEN max(excluded.ends, host_bookings.ends)
        ELSE excluded.ends - excluded.booked
            + max(excluded.booked, host_bookings.ends + max(host_bookings.delay, excluded.delay)) END,
    behind = CASE WHEN host_bookings.owner <> excluded.owner AND host_bookings.ends > excluded.booked THEN host_bookings.job_id END,
    idle = excluded.booked - host_bookings.ends,
    job_id = excluded.job_id, owner = excluded.owner, delay = excluded.delay, booked = excluded.booked
RETURNING host, starts - booked AS starts, ends - booked AS ends, behind, idle;

-- name: book [postgres]
-- The same. The rows are locked in the order of `asked`, so it must be sorted.
INSERT INTO host_bookings (host, job_id, owner, starts, ends, delay, booked, idle)
SELECT value ->> 0, :job_id, (value ->> 1)::bigint, now, now + (value ->> 3)::float8, (value ->> 2)::float8, now, 3600
FROM jsonb_array_elements(CAST(:asked AS jsonb)) CROSS JOIN (SELECT extract(epoch FROM clock_timestamp())::float8 AS now) AS clock
ON CONFLICT (host) DO UPDATE SET
    starts = CASE
        WHEN host_bookings.booked > excluded.booked + 60 THEN excluded.booked
        WHEN host_bookings.owner = excluded.owner THEN greatest(excluded.booked, host_bookings.starts)
        ELSE greatest(excluded.booked, host_bookings.ends + greatest(host_bookings.delay, excluded.delay)) END,
    ends = CASE
        WHEN host_bookings.booked > excluded.booked + 60 THEN excluded.ends
        WHEN host_bookings.owner = excluded.owner THEN greatest(excluded.ends, host_bookings.ends)
        ELSE excluded.ends - excluded.booked
            + greatest(excluded.booked, host_bookings.ends + greatest(host_bookings.delay, excluded.delay)) END,
    behind = CASE WHEN host_bookings.owner <> excluded.owner AND host_bookings.ends > excluded.booked THEN host_bookings.job_id END,
    idle = excluded.booked - host_bookings.ends,
    job_id = excluded.job_id, owner = excluded.owner, delay = excluded.delay, booked = excluded.booked
RETURNING host, starts - booked AS starts, ends - booked AS ends, behind, idle;

-- name: share [sqlite]
-- Book the time of addresses that several hosts share; an entry of `asked` is address, length.
INSERT INTO address_bookings (address, ends, booked) SELECT value ->> 0, now + (value ->> 1), now
FROM json_each(:asked) CROSS JOIN (SELECT unixepoch('subsec') AS now) WHERE true
ON CONFLICT (address) DO UPDATE SET booked = excluded.booked,
    ends = excluded.ends - excluded.booked + CASE
        WHEN address_bookings.booked > excluded.booked + 60 THEN excluded.booked
        ELSE max(excluded.booked, address_bookings.ends) END
RETURNING address, ends - booked AS ends;

-- name: share [postgres]
INSERT INTO address_bookings (address, ends, booked) SELECT value ->> 0, now + (value ->> 1)::float8, now
FROM jsonb_array_elements(CAST(:asked AS jsonb)) CROSS JOIN (SELECT extract(epoch FROM clock_timestamp())::float8 AS now) AS clock
ON CONFLICT (address) DO UPDATE SET booked = excluded.booked,
    ends = excluded.ends - excluded.booked + CASE
        WHEN address_bookings.booked > excluded.booked + 60 THEN excluded.booked
        ELSE greatest(excluded.booked, address_bookings.ends) END
RETURNING address, ends - booked AS ends;

-- name: release [sqlite]
-- Give back the rest of bookings that nobody has booked behind; an entry of `asked` is host, owner. A booking that has not
-- started yet keeps the time of those before it.
UPDATE host_bookings SET ends = max(unixepoch('subsec'), starts - delay)
WHERE ends > unixepoch('subsec') AND (host, owner) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:asked));

-- name: release [postgres]
UPDATE host_bookings SET ends = greatest(extract(epoch FROM clock_timestamp())::float8, starts - delay)
WHERE ends > extract(epoch FROM clock_timestamp())::float8
  AND (host, owner) IN (SELECT value ->> 0, (value ->> 1)::bigint FROM jsonb_array_elements(CAST(:asked AS jsonb)));

-- name: sweep [sqlite]
-- Remove the bookings that ended some time ago.
DELETE FROM host_bookings WHERE ends < unixepoch('subsec') - :seconds - delay;

-- name: sweep [postgres]
DELETE FROM host_bookings WHERE ends < extract(epoch FROM clock_timestamp())::float8 - :seconds - delay;

-- name: sweep_addresses [sqlite]
DELETE FROM address_bookings WHERE ends < unixepoch('subsec') - :seconds;

-- name: sweep_addresses [postgres]
DELETE FROM address_bookings WHERE ends < extract(epoch FROM clock_timestamp())::float8 - :seconds;

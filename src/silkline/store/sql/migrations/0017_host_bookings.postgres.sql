-- The time of hosts, booked by jobs. All times are seconds since 1970.

-- The last booking of a host: `owner`, one process of a job, may send requests from `starts` to `ends`. The next owner starts
-- `delay` seconds later at the earliest. `behind`: the job that had booked before, if its booking had not ended. `idle`: seconds since
-- then, if it had. Rows that have ended are removed.
CREATE TABLE host_bookings (
    host text PRIMARY KEY,
    job_id uuid NOT NULL,
    owner bigint NOT NULL,
    starts double precision NOT NULL,
    ends double precision NOT NULL,
    delay double precision NOT NULL,
    booked double precision NOT NULL,
    behind uuid,
    idle double precision NOT NULL
) WITH (fillfactor = 50);

-- Up to when the time of an address that several hosts share is booked.
CREATE TABLE address_bookings (
    address text PRIMARY KEY,
    ends double precision NOT NULL,
    booked double precision NOT NULL
) WITH (fillfactor = 50);

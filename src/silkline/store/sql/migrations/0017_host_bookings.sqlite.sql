-- The time of hosts, booked by jobs. All times are seconds since 1970.

-- The last booking of a host: `owner`, one process of a job, may send requests from `starts` to `ends`. The next owner starts
-- `delay` seconds later at the earliest. `behind`: the job that had booked before, if its booking had not ended. `idle`: seconds since
-- then, if it had. Rows that have ended are removed.
CREATE TABLE host_bookings (
    host text NOT NULL PRIMARY KEY,
    job_id text NOT NULL,
    owner integer NOT NULL,
    starts real NOT NULL,
    ends real NOT NULL,
    delay real NOT NULL,
    booked real NOT NULL,
    behind text,
    idle real NOT NULL
) WITHOUT ROWID;

-- Up to when the time of an address that several hosts share is booked.
CREATE TABLE address_bookings (
    address text NOT NULL PRIMARY KEY,
    ends real NOT NULL,
    booked real NOT NULL
) WITHOUT ROWID;

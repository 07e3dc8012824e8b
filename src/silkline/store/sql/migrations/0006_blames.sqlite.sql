-- Inputs from the web that ended a process which read them.

-- `input` is a URL, cut as a mark is, or an origin, which stands for its robots.txt.
CREATE TABLE blamed_inputs (
    job_id TEXT NOT NULL,
    input TEXT NOT NULL,
    times INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    PRIMARY KEY (job_id, input)
) WITHOUT ROWID;

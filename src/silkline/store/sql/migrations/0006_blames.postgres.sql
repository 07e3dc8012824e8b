-- Inputs from the web that ended a process which read them.

-- `input` is a URL, cut as a mark is, or an origin, which stands for its robots.txt.
CREATE TABLE blamed_inputs (
    job_id uuid NOT NULL,
    input text NOT NULL,
    times integer NOT NULL,
    attempt integer NOT NULL,
    PRIMARY KEY (job_id, input)
);

-- What the processes with one meter committed, in the same transactions: the metrics equal the ledgers after any crash.
-- Rows are updated every second: room in the page lets PostgreSQL do it without a change of the index.
CREATE TABLE checkpoint_counts (
    meter text PRIMARY KEY,
    discovered bigint NOT NULL,
    done bigint NOT NULL,
    unchanged bigint NOT NULL,
    failed bigint NOT NULL,
    skipped bigint NOT NULL,
    requeued bigint NOT NULL,
    bytes bigint NOT NULL,
    results bigint NOT NULL,
    checkpoints bigint NOT NULL,
    updated_at timestamptz NOT NULL
) WITH (fillfactor = 50);

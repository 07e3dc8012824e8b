-- What the processes with one meter committed, in the same transactions: the metrics equal the ledgers after any crash.
CREATE TABLE checkpoint_counts (
    meter TEXT PRIMARY KEY,
    discovered INTEGER NOT NULL,
    done INTEGER NOT NULL,
    unchanged INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    requeued INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    results INTEGER NOT NULL,
    checkpoints INTEGER NOT NULL,
    updated_at TEXT NOT NULL
) WITHOUT ROWID;

-- The short form of a long payload, for lists and events (store/short_payload.py). Null: the payload is short.
-- A value of up to 2 KB is at most 32 KB before compression, which is how long a short payload may be.
ALTER TABLE crawl_jobs ADD COLUMN short_payload jsonb;
UPDATE crawl_jobs SET short_payload = (
    SELECT jsonb_object_agg(each.key, CASE
        WHEN pg_column_size(each.value) <= 8192 OR each.key IN ('headers', 'cookies', 'proxy', 'fields')
        THEN each.value END)
    FROM jsonb_each(payload) AS each)
WHERE pg_column_size(payload) > 2048;

-- Each tenant has dedupe keys of its own. The old index made every live key unique, so the new one is fulfilled already.
DROP INDEX crawl_jobs_dedupe;
CREATE UNIQUE INDEX crawl_jobs_dedupe ON crawl_jobs (tenant, dedupe_key)
    WHERE dedupe_key IS NOT NULL AND status IN ('queued', 'running', 'paused');

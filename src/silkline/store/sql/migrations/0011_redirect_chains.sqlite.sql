-- How a queued URL was reached (the URLs that redirected to it, the sitemap indexes above it) has a column of its own. It
-- stood in `detail`, where the reason of a failed try overwrote it. Empty in most rows: it takes one byte there.
ALTER TABLE crawl_urls ADD COLUMN chain TEXT;
UPDATE crawl_urls SET chain = detail, detail = NULL
WHERE state = 'queued' AND detail IS NOT NULL AND found_via IN ('redirect', 'robots', 'sitemap_index');

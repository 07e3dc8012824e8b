"""What the ledger knows of the sitemaps of a `map` job, for its next attempt."""

from __future__ import annotations

from silkline.model.database import Database


def sitemaps(database: Database, job_id: str) -> list[tuple[str, str | None, str, str | None]]:
    """The (url, chain, found_via, reason) of each sitemap of a `map` job. Reads the whole ledger of the job."""
    rows = database.rows("urls.sitemaps", job_id=job_id)
    return [(row["url"], row["chain"], row["found_via"], row["reason"]) for row in rows]


def listed(database: Database, job_id: str) -> list[tuple[str, str | None, int]]:
    """The URL and chain of each sitemap of a `map` job, and how many of its URLs have a result. Reads the whole
    ledger of the job."""
    rows = database.rows("urls.listed", job_id=job_id)
    return [(row["url"], row["chain"], row["urls"]) for row in rows]

"""Jobs as crawls leave them, put into the database of a server: what the page shows of them is looked at."""

import json
from datetime import timedelta
from typing import Any

from silkline.model.database import Database
from silkline.model.job import End, Job
from silkline.model.ledger import Checkpoint
from silkline.store import jobs, logs, urls
from tests.store.given import finished, result, running, settled, url

HOME = "https://site.test/"
LONG = f"{HOME}long/{'x' * 3000}?{'y' * 900}"
TITLES = {
    2: "مرحبا بالعالم",
    3: "日本語のタイトル" * 40,
    4: "<b>bold</b> & \u202eturned",
    5: "T" * 400,
    6: "Tern",
    7: "",
}
KIND = "extension"  # no supervisor takes it, so it stays as it is put here


def large_crawl(database: Database, *, outside: int = 145, pages: int = 40) -> Job:
    """Pages, failures, redirects, links to many other hosts, and a pause of an hour."""
    job = running(database, kind=KIND, request_url=HOME, payload={"url": HOME})
    first = url(1, url=HOME, host="site.test")
    found = [
        url(id, url=f"{HOME}p/{id}", host="site.test", depth=1, found_on=1, found_via="link") for id in range(2, pages)
    ]
    found.append(url(pages, url=LONG, host="site.test", depth=1, found_on=1, found_via="link"))
    other = [
        url(
            pages + number,
            url=f"https://host{number}.other.test/",
            host=f"host{number}.other.test",
            state="skipped",
            reason="out_of_scope",
            found_on=1,
            found_via="link",
        )
        for number in range(1, outside + 1)
    ]
    ends = [settled(id, http_status=200) for id in range(1, pages - 2)]
    ends += [
        settled(pages - 2, "failed", reason="http_404", http_status=404),
        settled(pages - 1, "failed", reason="timeout"),
    ]
    ends.append(settled(pages, http_status=200))
    stored = [page(id, TITLES.get(id, f"Page {id}")) for id in [*range(1, pages - 2), pages]]
    began = database.now() - timedelta(hours=2)
    parts = [
        (0, Checkpoint([first, *found, *other], seconds=10.0)),
        (10, Checkpoint(settled=ends[:10], results=stored[:10], seconds=10.0)),
        (20, Checkpoint(settled=ends[10:20], results=stored[10:20], seconds=10.0)),
        (3620, Checkpoint(settled=ends[20:], results=stored[20:], bytes=5_500_000, seconds=10.0)),
        (3630, Checkpoint(seconds=10.0)),
    ]
    for seconds, checkpoint in parts:
        with database.transaction() as transaction:
            urls.write(transaction, job.id, checkpoint, began + timedelta(seconds=seconds))
    logs.append(database, [logs.NewLine(job.id, 1, "warning", f"line {LONG}", database.now())])
    finished(database, job)
    return jobs.get(database, job.id)


def page(id: int, title: str) -> Any:
    data = {
        "title": title,
        "markdown": f"# {title}\n\nWords of page {id}.",
        "links": [f"{HOME}p/{n}" for n in range(35)],
    }
    return result(id, data=json.dumps(data), metadata=json.dumps({"bytes": id * 1_000, "seconds": (50 - id) / 10}))


def all_failed(database: Database, end: End = End.COMPLETED) -> Job:
    """A job that found nothing but errors in ten seconds."""
    job = running(database, kind=KIND, request_url="https://nosuch.test/")
    address = url(1, url="https://nosuch.test/", host="nosuch.test")
    ended = settled(1, "failed", reason="host_unknown")
    urls.record(database, job, Checkpoint([address], [ended], seconds=0.08))
    finished(database, job, end, reason="host_unknown" if end is End.PERMANENT else "")
    return jobs.get(database, job.id)

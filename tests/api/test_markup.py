"""What was crawled never becomes markup, and never forges a line."""

import json
from html.parser import HTMLParser

import pytest

from silkline.model.database import Database
from silkline.model.job import NewJob
from silkline.model.ledger import Checkpoint, NewResult, NewUrl, Settled
from silkline.store import jobs, logs, urls
from tests.support.served import Client

SCRIPT = "<script>alert('silk')</script>"


@pytest.fixture
def poisoned(database: Database) -> str:
    """A job all of whose texts try to break out."""
    evil = "https://evil.test/" + SCRIPT
    new = NewJob("site", {"url": evil}, request_url=evil, metadata={SCRIPT: SCRIPT}, tenant=SCRIPT, paused=True)
    job, _ = jobs.enqueue(database, new)
    found = [
        NewUrl(1, 1, evil, SCRIPT, 0),
        NewUrl(2, 2, "javascript:alert('silk')", "x", 1, found_on=1, found_via=SCRIPT),
        NewUrl(3, 3, 'https://x.test/"onmouseover="alert(1)', "x", 1, "failed", SCRIPT, SCRIPT, 1),
        NewUrl(4, 4, "data:text/html,<b>", "x", 1, "skipped", SCRIPT, SCRIPT, 1),
    ]
    data = json.dumps({"title": SCRIPT, "markdown": f"# {SCRIPT}\n[click](javascript:alert(1))", SCRIPT: [SCRIPT]})
    result = NewResult(1, evil, 1, "javascript:alert('silk')", 1, data, True, json.dumps({"error": SCRIPT}))
    with database.transaction() as transaction:
        urls.write(transaction, job.id, Checkpoint(found=found), database.now())
        live = {"in_flight": ["javascript:alert('silk')", evil]}
        done = Checkpoint(settled=[Settled(1, "done", http_status=200)], results=[result], live=live)
        urls.write(transaction, job.id, done, database.now())
    lines = [SCRIPT, "\x1b[31mred\x1b[0m", "one\r\ntwo\rthree", "\u202egnp.exe"]
    logs.append(database, [logs.NewLine(job.id, 1, "error", line, database.now()) for line in lines])
    return job.id


OUR_TAGS = """
html head meta title link script body a header nav span button main p section div h1 h2 svg rect form code b i time
table caption tr th td thead tbody br ul ol li input select option label details summary dl dt dd pre footer dialog
kbd img
"""
OUR_ATTRIBUTES = """
lang charset name content rel href src defer class type title id hidden role alt width height for method action value
placeholder tabindex checked selected scope viewbox preserveaspectratio x y datetime download target data-stream
data-job data-status data-count data-gauge data-part data-verb data-tab data-chart data-row data-open data-ago
data-clock data-last data-level data-q data-name data-left data-event aria-hidden aria-label aria-live aria-labelledby
aria-current hx-get hx-post hx-target hx-swap hx-select hx-trigger hx-push-url
"""


class Markup(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attributes}
        found = dict(attributes)
        self.links += [found[name] or "" for name in ("href", "src", "action", "hx-get", "hx-post") if name in found]
        if tag == "script":
            self.scripts.append(found.get("src") or "")


TABS = ("", "/pages", "/errors", "/skipped", "/hosts", "/logs", "/details", "/head", "/page/1", "/page/2", "/page/3")


@pytest.mark.parametrize("tab", TABS)
def test_no_crawled_text_becomes_markup(client: Client, poisoned: str, tab: str) -> None:
    page = client.get(f"/jobs/{poisoned}{tab}", Accept="text/html")
    assert page.status == 200
    assert SCRIPT not in page.text
    markup = Markup(page.text)
    assert markup.tags <= set(OUR_TAGS.split())
    assert markup.attributes <= set(OUR_ATTRIBUTES.split())
    assert [
        link for link in markup.links if not link.startswith(("/", "?", "#", "https://evil.test/", "https://x.test/"))
    ] == []
    assert all(source.startswith("/static/") for source in markup.scripts)
    for bad in ("\x1b", "\r", "\u202e"):
        assert bad not in page.text, bad
    policy = page.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy


def test_a_search_is_not_reflected_as_markup(client: Client) -> None:
    for path in ("/?q=", "/?kind=x&q=", "/login?next=/"):
        assert SCRIPT not in client.get(path + "%3Cscript%3Ealert('silk')%3C/script%3E", Accept="text/html").text
    missing = client.get("/%3Cscript%3Ealert('silk')%3C/script%3E", Accept="text/html")
    assert (missing.status, SCRIPT in missing.text) == (404, False)


def test_log_lines_cannot_forge_events_or_lines(client: Client, poisoned: str) -> None:
    stream = client.events(f"/v1/jobs/{poisoned}/events")
    seen = [(name, data) for _, (_, name, data) in zip(range(2), stream, strict=False)]
    assert [name for name, _ in seen] == ["status", "logs"]
    assert "one\r\ntwo\rthree" in [line["message"] for line in seen[1][1]["lines"]]
    lines = client.get(f"/v1/jobs/{poisoned}/logs?format=jsonl").text.splitlines()
    assert len(lines) == 4
    assert all(json.loads(line) for line in lines)

"""Downloads and event streams: few for each caller, and none after its token was removed. Pages of long texts."""

import html
import http.client
import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import pytest

from silkline.api.web.job_pages import MOST_TEXT
from silkline.model.database import Database
from silkline.model.ledger import Checkpoint
from silkline.store import logs, urls
from silkline.store.opening import open_database
from tests.store.given import result, running, settled, url
from tests.support.served import Client, Served
from tests.support.supervisors import PATIENCE, eventually
from tests.support.unread_downloads import PAGES, PATHS, downloaded, large_job, unread

TOKEN = "an-operator-token-for-tests"
EACH, IN_ALL = 8, 10
CHECK = 0.1
WAITING_JOB = {"kind": "page", "url": "https://example.com/", "paused": True}
CANCELLED = re.compile(rb'"status":"cancelled"|"cancelled":[1-9]')


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("long")
    settings = {"api_token": TOKEN, "slots": 0, "api_stream_check": CHECK, "api_downloads": IN_ALL}
    with closing(Served(f"sqlite:///{folder / 'silkline.db'}", folder, **settings)) as server:
        server.ready()
        yield server


def test_a_caller_has_so_many_downloads(server: Served) -> None:
    client = server.ready().with_token(TOKEN)
    other = client.with_token(client.post("/v1/tokens", {"name": "other"}).json["token"])
    with closing(open_database(f"sqlite:///{server.data / 'silkline.db'}")) as database:
        job = large_job(database)
    paths = [f"/v1/jobs/{job.id}/{path}" for path in PATHS]
    with ExitStack() as stack:
        waiting = [stack.enter_context(unread(client, paths[place % len(paths)])) for place in range(EACH)]
        for path in paths:
            refused = client.get(path)
            refused.problem(429, "too-many", f"each caller may have at most {EACH} downloads")
            assert refused.headers["retry-after"]
        assert client.get(f"/v1/jobs/{job.id}/results?limit=1").status == 200, "a page of a list is no download"
        for _ in range(IN_ALL - EACH):
            stack.enter_context(unread(other, paths[0]))
        other.get(paths[0]).problem(503, "too-many-downloads", f"at most {IN_ALL} downloads")
        waiting[0].close()
        assert len(eventually("there is room again", lambda: downloaded(client, job))) == PAGES
    assert "Traceback" not in server.log


def test_unread_pages_of_results_hold_a_limited_number_of_bytes(server: Served) -> None:
    """Each answer is cut off by its size, and a caller has 32 MB of them at the same time. A single result of 12 MB is
    sent whole, and does not fit into the buffers of a connection."""
    client = server.ready().with_token(TOKEN)
    other = client.with_token(client.post("/v1/tokens", {"name": "reads"}).json["token"])
    with closing(open_database(f"sqlite:///{server.data / 'silkline.db'}")) as database:
        job, one = large_job(database), large_job(database, pages=1, words=2_000_000)
    some = client.get(f"/v1/jobs/{job.id}/results?limit=1000")
    assert 1 << 20 < len(some.body) < 2 << 20
    assert len(some.json["items"]) < PAGES
    assert some.json["next_cursor"] == str(some.json["items"][-1]["id"])
    path = f"/v1/jobs/{one.id}/results?limit=1000"
    whole = client.get(path)
    with ExitStack() as stack:
        waiting = [stack.enter_context(unread(client, path)) for _ in range(2)]
        refused = client.get(path)
        refused.problem(429, "too-many", "your answers that are being sent have more than")
        assert refused.headers["retry-after"]
        assert client.get(f"/v1/jobs/{job.id}").status == 200, "small answers are always sent"
        assert other.get(path).body == whole.body
        waiting[0].close()
        assert eventually("there is room again", lambda: client.get(path).status == 200)
    assert "Traceback" not in server.log


def test_jobs_with_very_long_requests_are_short_in_lists_and_events(server: Served) -> None:
    """Lists, events and the web page leave long fields out; only the job itself has them."""
    client = server.ready().with_token(TOKEN)
    urls = [f"https://example.com/{'a' * 1_000}{number}" for number in range(1_000)]
    body = {"kind": "page", "urls": urls, "headers": {"x-key": "s3cret-key"}, "contact": "me", "paused": True}
    posted = client.post("/v1/jobs", body)
    assert posted.json["spec"]["urls"] == urls
    path = f"/v1/jobs/{posted.json['id']}"
    assert client.get(path).json["spec"]["urls"] == urls
    listed = client.get("/v1/jobs?limit=1")
    expected = {"urls": None, "headers": {"x-key": "***"}, "contact": "me"}
    assert listed.json["items"][0]["spec"] == expected
    assert listed.json["items"][0]["url"] == urls[0]
    _, name, status = next(iter(client.events(f"{path}/events")))
    assert (name, status["spec"]) == ("status", expected)
    pages = (client.get("/"), client.get(path.removeprefix("/v1")), client.get(f"{path}/hosts"))
    for answer in (listed, *pages, client.post(f"{path}/resume"), client.post(f"{path}/cancel")):
        assert answer.status == 200
        assert len(answer.body) < 100_000


def test_a_page_of_jobs_ends_when_it_gets_large(server: Served) -> None:
    """Everybody can follow the cursor to the last job, and no page has more than two megabytes."""
    client = server.ready().with_token(TOKEN)
    body = {**WAITING_JOB, "tenant": "large", "metadata": {"note": "x" * 65_000}}
    posted = [client.post("/v1/jobs", body).json["id"] for _ in range(40)]
    found: list[str] = []
    path, sizes = "/v1/jobs?limit=500", []
    while path:
        page = client.get(path)
        sizes.append(len(page.body))
        found += [job["id"] for job in page.json["items"] if job["tenant"] == "large"]
        after = page.json["next_cursor"]
        path = f"/v1/jobs?limit=500&cursor={after}" if after else ""
    assert found == posted[::-1]
    assert len(sizes) > 1
    assert max(sizes) < (2 << 20) + 1_000


def test_a_job_that_does_not_fit_into_the_form_is_not_read_for_it(server: Served) -> None:
    client = server.ready().with_token(TOKEN)
    pages = {}
    for number in (10, 2_000):
        asked = {"kind": "page", "urls": [f"https://example.com/number-{n}" for n in range(number)], "paused": True}
        id = client.post("/v1/jobs", asked).json["id"]
        assert client.post(f"/v1/jobs/{id}/cancel").status == 200
        pages[number] = client.get(f"/?again={id}").body
    assert b"https://example.com/number-9" in pages[10]
    assert b"https://example.com/number-9" not in pages[2_000]


@contextmanager
def opened(client: Client, path: str) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection(client.host, client.port, timeout=PATIENCE)
    with closing(connection):
        connection.request("GET", path, headers=client.headers)
        with connection.getresponse() as stream:
            assert stream.status == 200
            yield stream


@pytest.mark.parametrize("path", ["/v1/events", "/v1/jobs/{id}/events"])
def test_a_stream_ends_when_its_token_is_removed(server: Served, path: str) -> None:
    client = server.ready().with_token(TOKEN)
    id = client.post("/v1/jobs", WAITING_JOB).json["id"]
    made = client.post("/v1/tokens", {"name": "removed soon"}).json
    removed, path = client.with_token(made["token"]), path.format(id=id)
    with opened(client, path) as stays, opened(removed, path) as ends:
        assert client.ask("DELETE", f"/v1/tokens/{made['id']}").status == 204
        ends.read()  # it ends, although the job goes on
        removed.get(path).problem(401, "unauthorized")
        assert client.post(f"/v1/jobs/{id}/cancel").status == 200
        assert any(map(CANCELLED.search, stays)), "the streams of others go on"


@pytest.mark.parametrize("kind", PATHS)
def test_a_download_ends_when_its_token_is_removed(server: Served, kind: str) -> None:
    client = server.ready().with_token(TOKEN)
    made = client.post("/v1/tokens", {"name": "removed soon", "scope": "read"}).json
    removed = client.with_token(made["token"])
    with closing(open_database(f"sqlite:///{server.data / 'silkline.db'}")) as database:
        job = large_job(database)
    path = f"/v1/jobs/{job.id}/{kind}"
    whole = len(client.get(path).body)
    with unread(client, path) as stays, unread(removed, path) as ends:
        assert client.ask("DELETE", f"/v1/tokens/{made['id']}").status == 204
        time.sleep(2 * CHECK)
        came = b"".join(iter(lambda: ends.recv(1 << 20), b""))
        assert len(came) < whole
        assert not came.endswith(b"0\r\n\r\n"), "nobody takes it for the whole file"
        came = b""
        while not came.endswith(b"\r\n0\r\n\r\n"):
            came = came[-10:] + stays.recv(1 << 20)


def test_a_job_stream_that_catches_up_ends_with_its_token(server: Served) -> None:
    client = server.ready().with_token(TOKEN)
    made = client.post("/v1/tokens", {"name": "removed soon", "scope": "read"}).json
    with closing(open_database(f"sqlite:///{server.data / 'silkline.db'}")) as database:
        job = large_job(database, pages=1)
        now = database.now()
        logs.append(database, [logs.NewLine(job.id, 1, "info", 2_000 * "line ", now) for _ in range(3_000)])
    path = f"/v1/jobs/{job.id}/events?last_event_id=0.0.0"
    with unread(client.with_token(made["token"]), path) as ends:
        assert client.ask("DELETE", f"/v1/tokens/{made['id']}").status == 204
        time.sleep(2 * CHECK)
        came = b"".join(iter(lambda: ends.recv(1 << 20), b""))
    assert came.count(b"event: line") < 3_000


def test_a_stream_ends_when_its_session_ends(server: Served) -> None:
    client = server.ready()
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    cookie = client.post("/login", f"token={TOKEN}".encode(), **form).headers["set-cookie"].partition(";")[0]
    browser = Client(client.port, client.host, Cookie=cookie)
    with opened(browser, "/v1/events") as stream:
        assert browser.post("/logout").status == 303
        stream.read()
    browser.get("/v1/events").problem(401, "unauthorized")


def test_the_page_of_a_long_text_shows_its_start_and_leads_to_all_of_it(client: Client, database: Database) -> None:
    job, text = running(database, kind="extension"), "<" * (MOST_TEXT + 5_000)
    stored = [result(id, data=json.dumps({"markdown": text if id == 2 else "short"})) for id in (1, 2, 3)]
    urls.record(database, job, Checkpoint([url(id) for id in (1, 2, 3)], [settled(id) for id in (1, 2, 3)], stored))
    page = client.get(f"/jobs/{job.id}/page/2", Accept="text/html").text
    assert page.count("&lt;") == MOST_TEXT
    assert "5,000 more characters" in page
    (whole,) = re.findall(r'href="(/v1/[^"]*)">The whole result', page)
    assert [each["data"]["markdown"] for each in client.get(html.unescape(whole)).json["items"]] == [text]
    assert "more characters" not in client.get(f"/jobs/{job.id}/page/1", Accept="text/html").text

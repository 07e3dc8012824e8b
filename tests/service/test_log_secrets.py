"""No log line contains a secret: not those of a job, and not those of the service. Secrets are planted everywhere."""

from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from silkline.model.job import NewJob
from silkline.sample.server import SampleServer
from silkline.sample.site import SampleAnswer
from silkline.store import jobs, logs
from tests.support.supervisors import Yard
from tests.support.supervisors import yard as open_yard

DATABASE, TOKEN = "hush-database", "hush-token"
SECRETS = {
    "headers": {"Authorization": "Bearer hush-header", "X-Api-Key": "hush-key"},
    "cookies": {"session": "hush-cookie"},
}
LOCAL = {"allow_private": ["127.0.0.0/8"], "speed": "max", "content": "none"}


def with_password(url: str) -> str:
    """A server that trusts everyone takes any password."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return url
    user, _, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0] or 'postgres'}:{DATABASE}@{host}"))


def respond(target: str, origin: str) -> SampleAnswer:
    """A page with links that contain passwords and tokens; all but the first page fail."""
    if target != "/?token=hush-seed":
        return SampleAnswer(404, "text/plain", b"")
    there = origin.replace("://", "://me:hush-link@")
    links = f'<a href="{there}/a">a</a> <a href="{origin}/b?api_key=hush-parameter">b</a>'
    return SampleAnswer(200, "text/html", f"<html><body>{links}</body></html>".encode())


def test_no_secret_is_in_any_log_line(database_url: str, tmp_path: Path) -> None:
    format = "text" if database_url.startswith("sqlite") else "json"
    with open_yard(with_password(database_url), tmp_path) as yard, SampleServer(respond=respond) as site:
        url = f"{site.url}?token=hush-seed"
        proxied = {**LOCAL, "url": url, "proxy": site.url.replace("://", "://me:hush-proxy@")}
        wanted = [
            NewJob("site", {**LOCAL, **SECRETS, "url": url, "fetchers": 2}),
            NewJob("page", {**LOCAL, **SECRETS, "url": url}),
            NewJob("page", proxied),
            # Code of a kind that prints and reports what it should not.
            NewJob("diagnostic", {"do": "exit", "code": 1, "text": f"cannot reach {yard.url} with {TOKEN}"}),
            NewJob("diagnostic", {"do": "exit", "code": 65, "text": f"no access: {TOKEN} at {yard.url}"}),
        ]
        ids = jobs.enqueue_many(yard.database, [replace(new, max_retries=0) for new in wanted])
        environment = {"SILKLINE_API_TOKEN": TOKEN, "PGPASSWORD": DATABASE}
        supervisor = yard.start(environment=environment, log_level="debug", log_format=format, slots=5)
        assert [job.status.value for job in yard.wait_for_end(ids)] == ["completed", "completed", *["failed"] * 3]
        assert supervisor.terminate() == 0
        _assert_clean(yard, ids, supervisor.log)


def _assert_clean(yard: Yard, ids: list[str], stderr: str) -> None:
    files = {path.stem: path.read_text() for path in (yard.folder / "data" / "logs").glob("*.log")}
    assert set(ids) <= set(files)
    stored = {id: "\n".join(line.message for line in logs.page(yard.database, id, wanted=10_000)) for id in ids}
    for lines in (stderr, *files.values(), *stored.values()):
        assert "hush" not in lines
    assert all(id in stderr for id in ids)
    assert "token=***" in stored[ids[0]], "the seeds are named"
    assert "headers Authorization, Cookie, X-Api-Key for the seeds" in stored[ids[0]]
    assert "no access: ***" in stored[ids[4]]

"""Neither the token nor the address of the database stands where other processes can read it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit, urlunsplit

import psutil
import pytest

from silkline.confine.environment import scrubbed
from silkline.model.job import NewJob, Status
from silkline.runner.protocol import JOB_TAG, SUPERVISOR_TAG
from silkline.store import jobs
from silkline.store.opening import open_database
from tests.support.supervisors import Yard, eventually

TOKEN = "a-token-that-nobody-may-see"
PASSWORD = "pass-word-77"


@pytest.fixture
def patient_site() -> Iterator[str]:
    """A site that answers robots.txt at once and its pages when the test is over, so that crawls of it stay alive."""
    over = threading.Event()

    class Patient(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/robots.txt":
                over.wait()
            self.send_response(404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Patient) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        over.set()
        server.shutdown()


def with_password(url: str) -> str:
    """A server that trusts everyone takes any password."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return url
    user, _, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0] or 'postgres'}:{PASSWORD}@{host}"))


@pytest.fixture(params=["serve", "worker", "crawl"])
def tree(
    request: pytest.FixtureRequest, database_url: str, tmp_path: Path, patient_site: str
) -> Iterator[psutil.Process]:
    """A running crawl with every kind of process; its root is the command that the operator typed."""
    url = with_password(database_url)
    database = open_database(url)
    wanted = {"url": patient_site, "allow_private": ["127.0.0.0/8"], "fetchers": 2, "parsers": 1}
    environment = {**os.environ, "SILKLINE_API_TOKEN": TOKEN, "SILKLINE_DATA": str(tmp_path), "PGPASSWORD": PASSWORD}
    if request.param == "crawl":
        command = ["crawl", patient_site, "--fetchers", "2", "--parsers", "1", "--database-url", url]
    else:
        jobs.enqueue(database, NewJob("site", wanted))
        command = [request.param, *(("--port", "0") if request.param == "serve" else ())]
        environment["SILKLINE_DATABASE_URL"] = url
    database.close()
    with subprocess.Popen(
        [sys.executable, "-m", "silkline", *command], env=environment, cwd=tmp_path, stdin=subprocess.DEVNULL
    ) as process:
        root = psutil.Process(process.pid)
        try:
            eventually("a fetcher and a parser run", lambda: {"fetcher", "parser"} <= roles(root))
            # A process that needs a secret hides it as soon as Python runs in it.
            eventually(
                "the API has started",
                lambda: not_shown(below(root)),
            )
            yield root
        finally:
            process.kill()


def below(root: psutil.Process) -> list[psutil.Process]:
    return list(root.children(recursive=True))


def not_shown(processes: list[psutil.Process]) -> bool:
    return not any(PASSWORD.encode() in shown(process, "environ") for process in processes)


def shown(process: psutil.Process, what: str) -> bytes:
    try:
        return Path(f"/proc/{process.pid}/{what}").read_bytes()
    except OSError:
        return b""


def roles(root: psutil.Process) -> set[str]:
    return {word.decode() for process in below(root) for word in shown(process, "cmdline").split(b"\0")}


def test_no_process_of_a_running_tree_shows_a_secret(tree: psutil.Process) -> None:
    found = below(tree)
    assert len(found) >= 4  # fork server, runner, fetcher, parser
    for process in (tree, *found):
        for what in ("environ", "cmdline"):
            text = shown(process, what)
            assert TOKEN.encode() not in text, (process, what)
            assert PASSWORD.encode() not in text, (process, what)
    for process in found:
        text = shown(process, "environ")
        if b"silkline.api" not in shown(process, "cmdline"):
            assert SUPERVISOR_TAG.encode() in text, process
        assert b"SILKLINE_DATABASE_URL=" not in text, process
        assert b"SILKLINE_API_TOKEN=" not in text, process
    children = [process for process in found if b"silkline.crawl.child_process" in shown(process, "cmdline")]
    assert all(JOB_TAG.encode() in shown(process, "environ") for process in children)


def test_a_runner_is_told_what_libpq_reads_from_the_environment(postgres_url: str, tmp_path: Path) -> None:
    """Without PGHOST a connection to this server would fail."""
    parts = urlsplit(postgres_url)
    host = parse_qs(parts.query)["host"][0] if "host" in parse_qs(parts.query) else parts.hostname or ""
    user = parts.username or "postgres"
    yard = Yard(postgres_url, tmp_path)
    yard.url = f"postgresql://{parts.path}"
    environment = {"PGHOST": host, "PGUSER": user, "PGPORT": str(parts.port or 5432)}
    supervisor = yard.start(environment=environment)
    try:
        (job,) = yard.wait_for_end(yard.add("nothing"))
        assert job.status is Status.COMPLETED, job.error_message
    finally:
        supervisor.kill()
        yard.database.close()


def test_a_reader_of_pages_gets_only_what_it_needs() -> None:
    given = {"PATH": "/bin", "LC_ALL": "C", "AWS_SECRET_ACCESS_KEY": "x", "DATABASE_URL": "y", "MY_KEY": "z"}
    assert scrubbed((), given) == {"PATH": "/bin", "LC_ALL": "C"}
    assert scrubbed(("MY_KEY",), given) == {"PATH": "/bin", "LC_ALL": "C", "MY_KEY": "z"}

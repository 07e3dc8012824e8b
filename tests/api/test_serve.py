"""`silkline serve`: one command, a free port, nothing open to strangers, and an end in good order."""

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from silkline.api.address import PORT
from tests.support.served import Client, Served
from tests.support.supervisors import alive, eventually


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Any]:
    """Starts servers that end with the test."""
    servers: list[Served] = []

    def start(*arguments: str, **settings: Any) -> Served:
        server = Served(
            f"sqlite:///{tmp_path / 'silkline.db'}", tmp_path / f"data{len(servers)}", *arguments, **settings
        )
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.close()


def refused(tmp_path: Path, *arguments: str, **environment: str) -> str:
    """It ended at once, with the exit code for usage and one line that says why."""
    done = subprocess.run(
        [sys.executable, "-m", "silkline", "serve", *arguments],
        env={**os.environ, "SILKLINE_DATA": str(tmp_path), **environment},
        cwd=tmp_path,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, b""), done
    (line,) = done.stderr.decode().splitlines()
    return line


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_others_are_let_in_with_a_token_only(tmp_path: Path, host: str) -> None:
    assert "set SILKLINE_API_TOKEN first" in refused(tmp_path, "--host", host, "--port", "0")


def test_bound_to_every_address_a_token_is_asked_for(serve: Any) -> None:
    client = serve("--host", "0.0.0.0", "--port", "0", api_token="a-token-for-everybody").ready()
    client.get("/v1/jobs").problem(401, "unauthorized")
    assert client.with_token("a-token-for-everybody").get("/v1/jobs").status == 200
    client.get("/v1/jobs", Host=f"evil.test:{client.port}").problem(421, "wrong-host")


def test_port_zero_is_any_free_port_and_the_help_says_so(serve: Any) -> None:
    assert serve("--port", "0").ready().port > 0
    help = subprocess.run([sys.executable, "-m", "silkline", "serve", "--help"], capture_output=True, check=True)
    assert "0 is any free port" in " ".join(help.stdout.decode().split())


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert f"port {port} at 127.0.0.1 is in use" in refused(tmp_path, "--port", str(port))


def test_where_the_usual_port_is_taken_it_takes_another(serve: Any) -> None:
    with contextlib.ExitStack() as stack:

        def start() -> tuple[Served, Client] | None:
            usual = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):  # somebody has it already, which serves as well while it lasts
                usual.bind(("127.0.0.1", PORT))
                usual.listen()
            server = serve("--host", "127.0.0.1")
            client = server.ready()
            if client.port != PORT:
                return server, client
            server.terminate()
            return None

        server, client = eventually("it is taken", start)
        assert f"Port {PORT} is in use; this Silkline listens on port {client.port}." in server.log


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_clean_end_with_a_job_running_and_somebody_listening(serve: Any, number: signal.Signals) -> None:
    server: Served = serve()
    client = server.ready()
    id = client.job(do="work", steps=1_000_000, seconds=0.01)
    client.wait_for(id, "running")
    eventually("it moves", lambda: client.get(f"/v1/jobs/{id}").json["progress"]["done"])
    stream = client.events(f"/v1/jobs/{id}/events")
    next(stream)
    api = server.api_pid()
    assert server.terminate(number) == 0, server.log
    assert not alive(api)
    list(stream)  # it ends; nobody hangs on to a server that is gone
    job = serve(slots=0).ready().get(f"/v1/jobs/{id}").json
    assert (job["status"], job["retries"], job["crashes"]) == ("queued", 0, 0)
    assert job["progress"]["done"] == job["progress"]["discovered"] > 0
    assert "Traceback" not in server.log


def test_the_api_is_started_again_when_it_dies(serve: Any) -> None:
    server: Served = serve()
    client = server.ready()
    id = client.job(do="sleep", seconds=600)
    runner = client.wait_for(id, "running")
    before = server.api_pid()
    os.kill(before, signal.SIGKILL)
    eventually("the API is gone", lambda: not alive(before))
    eventually("the API is back", lambda: _answers(client))
    assert server.api_pid() != before
    after = client.get(f"/v1/jobs/{id}").json
    assert (after["status"], after["attempt"]) == ("running", runner["attempt"]), "the job did not notice"


def test_an_api_that_hangs_is_started_again(serve: Any) -> None:
    """It lives, holds the port, and answers nobody."""
    server: Served = serve(api_probe_interval=0.2, api_hung_after=8)
    client = server.ready()
    before = server.api_pid()
    eventually("its watcher had an answer too", lambda: "the API answers at" in server.log)
    os.kill(before, signal.SIGSTOP)
    eventually("the one that hangs is gone", lambda: not alive(before))
    eventually("another one answers", lambda: _answers(client))
    assert server.api_pid() != before
    assert "the API has not answered for" in server.log


def test_the_api_dies_with_its_supervisor(serve: Any) -> None:
    server: Served = serve()
    client = server.ready()
    api = server.api_pid()
    server.process.kill()
    server.process.wait()
    eventually("the API is gone", lambda: not alive(api))
    eventually("nobody answers", lambda: not _answers(client))


def test_no_secret_stands_in_a_process_list(serve: Any) -> None:
    server: Served = serve(api_token="a-secret-of-the-operator")
    server.ready()
    for pid in (server.process.pid, server.api_pid()):
        assert "a-secret-of-the-operator" not in Path(f"/proc/{pid}/cmdline").read_text()
    assert "a-secret-of-the-operator" not in server.log


def _answers(client: Client) -> bool:
    try:
        with closing(socket.create_connection((client.host, client.port), timeout=5)):
            return client.get("/healthz").status == 200
    except (OSError, http.client.HTTPException):
        return False

"""`silkline serve` as an operator starts it, and a plain HTTP client to talk to it."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.support.supervisors import LIBC, PATIENCE, QUICK, eventually

STATES = ("queued", "in_flight", "done", "unchanged", "failed", "skipped")


class Answer:
    """What came back."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, {name.lower(): value for name, value in headers.items()}, body

    def __repr__(self) -> str:
        return f"{self.status} {self.headers}\n{self.body[:2000]!r}"

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()

    def problem(self, status: int, kind: str, *words: str) -> dict[str, Any]:
        """It is a problem document of this kind that says these words."""
        assert self.status == status, self
        assert self.headers["content-type"] == "application/problem+json", self
        found: dict[str, Any] = self.json
        assert found["type"] == f"urn:silkline:problem:{kind}", self
        assert found["status"] == status
        assert set(found) == {"type", "title", "status", "detail", "retryable"}
        for word in words:
            assert word in found["detail"], self
        return found


class Client:
    """One address, and headers that go with every request."""

    def __init__(self, port: int, host: str = "127.0.0.1", **headers: str) -> None:
        self.host, self.port = host, port
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def with_token(self, token: str) -> "Client":
        return Client(self.port, self.host, **{**self.headers, "Authorization": f"Bearer {token}"})

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        sent = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, sent)
            with connection.getresponse() as answer:  # it holds the socket open until it is closed
                return Answer(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self.ask("POST", path, body, **headers)

    def job(self, **fields: Any) -> str:
        """A new job; its id."""
        answer = self.post("/v1/jobs", {"kind": "diagnostic", **fields})
        assert answer.status == 201, answer
        id: str = answer.json["id"]
        return id

    def wait_for(self, id: str, *statuses: str) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            job: dict[str, Any] = self.get(f"/v1/jobs/{id}").json
            progress = job["progress"]
            assert progress["discovered"] == sum(progress[state] for state in STATES)
            return job if job["status"] in statuses else None

        found: dict[str, Any] = eventually(f"job {id} becomes {statuses}", look)
        return found

    def events(self, path: str, **headers: str) -> Iterator[tuple[str, str, Any]]:
        """Events as (id, name, data) until the server ends the stream."""
        with socket.create_connection((self.host, self.port), timeout=PATIENCE) as connection:
            sent = {**self.headers, "Host": f"{self.host}:{self.port}", "Connection": "close"}
            sent.update({name.replace("_", "-"): value for name, value in headers.items()})
            lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
            connection.sendall(f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode())
            with closing(http.client.HTTPResponse(connection)) as stream:  # it holds the socket open until it is closed
                stream.begin()
                assert stream.status == 200, (stream.status, stream.read())
                assert stream.headers["Content-Type"].startswith("text/event-stream")
                yield from _events(stream)


def _events(stream: http.client.HTTPResponse) -> Iterator[tuple[str, str, Any]]:
    fields: dict[str, str] = {}
    for raw in stream:
        line = raw.decode().rstrip("\n")
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
            continue
        if "event" in fields:
            yield fields["id"], fields["event"], json.loads(fields["data"])
        fields = {}


class Served:
    """One `silkline serve` in a process of its own."""

    def __init__(self, database_url: str, folder: Path, *arguments: str, **settings: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.data = folder
        self._log = folder / "serve.log"
        variables = {f"SILKLINE_{name.upper()}": str(value) for name, value in {**QUICK, **settings}.items()}
        ours = {"SILKLINE_DATABASE_URL": database_url, "SILKLINE_DATA": str(folder)}
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "silkline", "serve", *(arguments or ("--port", "0"))],
                env={**os.environ, **variables, **ours},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                start_new_session=True,
                preexec_fn=lambda: LIBC.prctl(1, signal.SIGKILL),  # it dies with the tests
            )

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def ready(self) -> Client:
        """Wait until it answers."""
        eventually("serve says where it is", lambda: self._port() or self.process.poll() is not None)
        port = self._port()
        assert port, self.log
        client = Client(port)
        eventually("the API answers", lambda: _answers(client) or self.process.poll() is not None)
        assert self.process.poll() is None, self.log
        return client

    def api_pid(self) -> int:
        """The process of the API, below ours."""

        def look() -> int | None:
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            return next((int(pid) for pid in children if "silkline.api" in command_line(int(pid))), None)

        found: int = eventually("the API has a process", look)
        return found

    def terminate(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def _port(self) -> int | None:
        found = re.search(r"Silkline is at http://[^/]*:(\d+)/", self.log)
        return int(found[1]) if found else None


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
    except OSError:
        return ""


def _answers(client: Client) -> bool:
    try:
        return client.get("/healthz").status == 200
    except (OSError, http.client.HTTPException):
        return False

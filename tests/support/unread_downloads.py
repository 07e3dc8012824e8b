"""Downloads that nobody reads: a job with large results, and a connection that asks for them and waits."""

import json
import socket

from silkline.model.database import Database
from silkline.model.job import Job
from silkline.model.ledger import Checkpoint
from silkline.store import urls
from tests.store.given import result, running, settled, url
from tests.support.served import Client
from tests.support.supervisors import PATIENCE

PAGES = 80
PATHS = ("results?format=jsonl", "export?format=csv", "export?format=jsonl")


def large_job(database: Database, pages: int = PAGES, words: int = 25_000) -> Job:
    """A job whose results do not fit into the buffers of a connection."""
    job, ids = running(database, kind="extension", request_url="https://example.com/"), range(1, pages + 1)
    data = json.dumps({"title": "A page", "markdown": "words " * words})
    stored = [result(id, data=data, final_url=f"https://example.com/{id}") for id in ids]
    urls.record(database, job, Checkpoint([url(id) for id in ids], [settled(id) for id in ids], stored))
    return job


def unread(client: Client, path: str) -> socket.socket:
    """A connection that reads only the first bytes of the answer."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(PATIENCE)
    connection.connect((client.host, client.port))
    lines = {"Host": f"{client.host}:{client.port}", **client.headers}
    text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    connection.sendall(f"GET {path} HTTP/1.1\r\n{text}\r\n".encode())
    assert connection.recv(12, socket.MSG_WAITALL) == b"HTTP/1.1 200"
    return connection


def downloaded(client: Client, job: Job) -> list[bytes]:
    """The results as lines; none if the server refuses."""
    answer = client.get(f"/v1/jobs/{job.id}/{PATHS[0]}")
    return answer.body.splitlines() if answer.status == 200 else []

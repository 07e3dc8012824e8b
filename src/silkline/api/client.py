"""The Python client: a Silkline server in a few calls, on nothing but the standard library.

    from silkline.api.client import Client

    with Client("http://127.0.0.1:8700") as silkline:
        print(silkline.fetch("https://example.com/", max_age=3600)["data"]["markdown"])
        job = silkline.submit("site", "https://example.com/", limit=200)
        silkline.wait(job["id"])
        for page in silkline.results(job["id"]):
            print(page["final_url"])

Jobs, results and log lines are the JSON documents of the API, as dictionaries. The client repeats requests that are
safe to repeat while the server is down or busy. New jobs have an idempotency key, so the server stores each only once.
"""

from __future__ import annotations

import http.client
import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self
from urllib.parse import quote, urlencode, urlsplit

from silkline.errors import SilklineError, UsageError

WAIT = 30  # seconds that one request waits for the end of a job
RETRY_FIRST, RETRY_MOST = 0.2, 5.0
UNREACHABLE = "unreachable"
_SETTLED = frozenset({"paused", "completed", "failed", "stopped", "cancelled"})
_LOST = (OSError, http.client.HTTPException)

Document = dict[str, Any]


class RequestFailed(SilklineError):
    """The server refused, or could not be reached: `status` (0: not reached), `kind`, `retryable`, and the message."""

    def __init__(self, status: int, kind: str, detail: str, *, retryable: bool) -> None:
        super().__init__(detail)
        self.status, self.kind, self.retryable = status, kind, retryable


class Event(NamedTuple):
    """`name`: status, progress, logs, end or gone."""

    id: str
    name: str
    data: Document


class Client:
    """One server. Use one client in each thread.

    `patience`: for this many seconds a request is repeated while the server is down. `timeout`: the longest wait for
    data from the server.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8700",
        *,
        token: str | None = None,
        patience: float = 30.0,
        timeout: float = 90.0,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"the address of a Silkline server looks like http://127.0.0.1:8700, not {url!r}")
        self._parts = parts
        self._patience = patience
        self._timeout = timeout
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._connection: http.client.HTTPConnection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    # Asking.

    def fetch(self, url: str, *, wait: float = WAIT, **spec: Any) -> Document:
        """The result of one page, from the cache if `max_age` allows it. Raises `RequestFailed` if the fetch fails.

        `wait`: how long one request waits for the page; further requests follow if it takes longer.
        """
        found = self._new(f"/v1/fetch?timeout={wait:g}", {"url": url, **spec})
        if "result" in found:
            result: Document = found["result"]
            return result
        job = self.wait(found["id"])
        page = next(self.results(job["id"]), None)
        if page is None or not page["success"]:
            why = (page or {}).get("metadata", {}).get("error") or job["message"] or f"the job is {job['status']}"
            raise RequestFailed(502, "fetch-failed", f"{url}: {why}", retryable=False)
        return page

    def submit(self, kind: str, url: str | None = None, **spec: Any) -> Document:
        """Submit a job of this kind. `spec` has the other fields of its spec, such as `urls` for several URLs."""
        return self._new("/v1/jobs", {"kind": kind, **({"url": url} if url else {}), **spec})

    # Looking.

    def job(self, id: str) -> Document:
        return self._get(f"/v1/jobs/{_part(id)}")

    def jobs(self, **filters: Any) -> Iterator[Document]:
        """All jobs, newest first. Filters: `status`, `kind`, and `q` for a part of the URL."""
        return self._pages("/v1/jobs", filters)

    def wait(self, id: str, seconds: float | None = None) -> Document:
        """Wait until the job has ended or paused, or this many seconds. Returns the job."""
        give_up = None if seconds is None else time.monotonic() + seconds
        while True:
            left = WAIT if give_up is None else max(0.0, min(WAIT, give_up - time.monotonic()))
            job = self._get(f"/v1/jobs/{_part(id)}", wait=left)
            if job["status"] in _SETTLED or (give_up is not None and time.monotonic() >= give_up):
                return job

    def events(self, id: str, after: str = "") -> Iterator[Event]:
        """The events of a job until its end. Each event comes exactly once, even if connections break."""
        path, last, lost_at = f"/v1/jobs/{_part(id)}/events", after, 0.0
        while True:
            try:
                for event in self._stream(path, last):
                    last, lost_at = event.id, 0.0
                    yield event
                    if event.name in ("end", "gone"):
                        return
                return
            except RequestFailed as error:
                lost_at = lost_at or time.monotonic()
                if not error.retryable or time.monotonic() - lost_at > self._patience:
                    raise
                time.sleep(RETRY_FIRST)

    def results(self, id: str, *, content: bool = True) -> Iterator[Document]:
        """The results of a job so far, in the order in which they were stored."""
        return self._pages(f"/v1/jobs/{_part(id)}/results", {"content": str(content).lower()})

    def urls(self, id: str, **filters: Any) -> Iterator[Document]:
        """Every URL of the job. Filter: `state`."""
        return self._pages(f"/v1/jobs/{_part(id)}/urls", filters)

    def errors(self, id: str, **filters: Any) -> Iterator[Document]:
        """URLs that failed, each with the pages that link to it. Filters: `state` and `reason`."""
        return self._pages(f"/v1/jobs/{_part(id)}/errors", filters)

    def logs(self, id: str, **filters: Any) -> Iterator[Document]:
        """Log lines. Filters: `level` (this level and higher ones), and `q` for a part of the message."""
        return self._pages(f"/v1/jobs/{_part(id)}/logs", filters)

    def explain(self, id: str, url: str, *, content: bool = False) -> Document:
        """The state of one URL, how the crawl found it, and the pages that link to it. `content`: include the text."""
        more = {"content": "true"} if content else {}
        return self._get(f"/v1/jobs/{_part(id)}/explain", url=url, **more)

    def workers(self) -> list[Document]:
        found: list[Document] = self._get("/v1/workers")["items"]
        return found

    def fleet(self) -> Document:
        """Machines, queue and running jobs, with what they use."""
        return self._get("/v1/fleet")

    # Control. A repeated request has no further effect.

    def pause(self, id: str) -> Document:
        return self._wish(id, "pause")

    def resume(self, id: str, **sizes: float) -> Document:
        """Resume a paused job. `sizes` changes the `fetchers`, `parsers`, `concurrency` or `cpus` of a crawl."""
        return self._ask("POST", f"/v1/jobs/{_part(id)}/resume", sizes or None)

    def stop(self, id: str) -> Document:
        return self._wish(id, "stop")

    def cancel(self, id: str) -> Document:
        return self._wish(id, "cancel")

    def retry(self, id: str, reason: str | None = None) -> Document:
        """Continue a failed or stopped job. With a reason, retry the URLs that failed for this reason."""
        return self._ask("POST", f"/v1/jobs/{_part(id)}/retry", {"reason": reason} if reason else None, again=False)

    def remove(self, id: str) -> None:
        """Remove an ended job with all its data."""
        self._ask("DELETE", f"/v1/jobs/{_part(id)}", again=False)

    # The wire.

    def _new(self, path: str, body: Document) -> Document:
        return self._ask("POST", path, body, {"Idempotency-Key": secrets.token_hex(16)})

    def _wish(self, id: str, verb: str) -> Document:
        return self._ask("POST", f"/v1/jobs/{_part(id)}/{verb}")

    def _get(self, path: str, **query: Any) -> Document:
        return self._ask("GET", f"{path}?{urlencode(query)}" if query else path)

    def _pages(self, path: str, query: dict[str, Any]) -> Iterator[Document]:
        cursor: dict[str, Any] = {}
        while True:
            page = self._get(path, **query, **cursor)
            yield from page["items"]
            if page["next_cursor"] is None:
                return
            cursor = {"cursor": page["next_cursor"]}

    def _ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, *, again: bool = True
    ) -> Document:
        give_up, wait = time.monotonic() + self._patience, RETRY_FIRST
        while True:
            try:
                return self._once(method, path, body, headers or {})
            except RequestFailed as error:
                tired = time.monotonic() + wait > give_up
                if not again or tired or not (error.retryable and error.kind != "fetch-failed"):
                    raise
            time.sleep(wait)
            wait = min(RETRY_MOST, 2 * wait)

    def _once(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Document:
        if self._connection is None:
            self._connection = self._connect()
        with self._reaching():
            self._send(self._connection, method, path, body, headers)
            with self._connection.getresponse() as answer:  # it may hold the socket open until it is closed
                text = answer.read()
        if answer.status >= 400:
            raise _failure(answer.status, text)
        found: Document = json.loads(text) if text else {}
        return found

    def _stream(self, path: str, last: str) -> Iterator[Event]:
        """Events of a separate connection, until the server has sent all of them (204)."""
        connection = self._connect()
        try:
            with self._reaching():
                self._send(connection, "GET", path, None, {"Last-Event-ID": last} if last else {})
                answer = connection.getresponse()
            with answer:
                yield from self._events_of(answer)
        finally:
            connection.close()

    def _events_of(self, answer: http.client.HTTPResponse) -> Iterator[Event]:
        if answer.status >= 400:
            with self._reaching():
                raise _failure(answer.status, answer.read())
        if answer.status == http.client.NO_CONTENT:
            return
        lines = iter(answer)
        while True:
            with self._reaching():
                event = _next_event(lines)
            if event is None:  # the server shut down, or this client was too slow
                raise RequestFailed(0, UNREACHABLE, "the event stream ended before the job did", retryable=True)
            yield event

    def _connect(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        return kind(self._parts.hostname or "", self._parts.port, timeout=self._timeout)

    def _send(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: Any, headers: dict[str, str]
    ) -> None:
        sent = {**self._headers, **headers}
        if body is not None:
            sent["Content-Type"] = "application/json"
        text = json.dumps(body).encode() if body is not None else None
        connection.request(method, self._parts.path.rstrip("/") + path, text, sent)

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except _LOST as error:
            self.close()
            where = f"{self._parts.scheme}://{self._parts.netloc.rpartition('@')[2]}"
            said = str(error) or type(error).__name__
            raise RequestFailed(0, UNREACHABLE, f"{where} cannot be reached: {said}", retryable=True) from error


def _part(id: str) -> str:
    return quote(id, safe="")


def _failure(status: int, text: bytes) -> RequestFailed:
    """The error of a problem document, or of another answer, such as that of a proxy."""
    try:
        said = json.loads(text)
        kind, detail, retryable = said["type"].rpartition(":")[2], said["detail"], bool(said["retryable"])
    except (ValueError, KeyError, TypeError, AttributeError):
        kind, detail, retryable = "unknown", f"HTTP {status}: {text[:200].decode(errors='replace')}", status >= 502
    return RequestFailed(status, kind, detail, retryable=retryable)


def _next_event(lines: Iterator[bytes]) -> Event | None:
    fields: dict[str, str] = {}
    for raw in lines:
        line = raw.decode().rstrip("\r\n")
        if not line and "event" in fields:
            return Event(fields.get("id", ""), fields["event"], json.loads(fields["data"]))
        if not line:
            fields = {}
        name, _, value = line.partition(": ")
        if name:
            fields[name] = value
    return None

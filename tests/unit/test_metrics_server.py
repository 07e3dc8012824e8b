"""The endpoint of a worker: metrics, health and readiness over HTTP, and a token beyond this machine."""

from __future__ import annotations

import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from silkline.api import address
from silkline.config import Settings
from silkline.errors import UsageError
from silkline.login_throttle import EACH
from silkline.metrics import process
from silkline.metrics.instruments import ROBOTS_REFUSALS
from silkline.runner.metrics_text import MetricsText
from silkline.runner.readiness import why_not_ready
from silkline.service import metrics_server
from silkline.service.metrics_server import MOST_AT_ONCE, MetricsListener, MetricsServer
from silkline.store.opening import open_database


@contextmanager
def serving(data: Path, token: str = "", *, upgrade: bool = True) -> Iterator[str]:
    database = open_database(f"sqlite:///{data / 'silkline.db'}", upgrade=upgrade)
    listener = socket.create_server(("127.0.0.1", 0))
    metrics = MetricsText(database, data, watermark=1000, stale_after=60.0)
    server = MetricsServer(MetricsListener(listener, token), metrics.text, lambda: why_not_ready(database))
    server.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.stop()
        database.close()


def get(url: str, token: str = "", host: str = "") -> tuple[int, str, str]:
    headers = {"Authorization": f"Bearer {token}" if token else "", "Host": host}
    request = urllib.request.Request(url, headers={name: value for name, value in headers.items() if value})
    try:
        answer = urllib.request.urlopen(request, timeout=30)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        return answer.status, answer.headers["Content-Type"], answer.read().decode()


def test_a_worker_tells_its_metrics_health_and_readiness(tmp_path: Path) -> None:
    process.detach()
    process.attach(tmp_path, "supervisor")
    ROBOTS_REFUSALS.add(3)
    with serving(tmp_path) as url:
        status, media_type, text = get(f"{url}/metrics")
        assert (status, media_type) == (200, "text/plain; version=0.0.4; charset=utf-8")
        for line in (
            "# TYPE silkline_robots_refusals_total counter",
            "silkline_robots_refusals_total 3.0",
            'silkline_jobs{status="queued"} 0.0',
            'silkline_processes{role="supervisor"} 1.0',
            "silkline_disk_watermark_bytes 1000.0",
        ):
            assert line in text.splitlines()
        assert get(f"{url}/healthz")[::2] == (200, '{"status": "ok"}')
        assert get(f"{url}/readyz?x=1")[::2] == (200, '{"status": "ready"}')
        assert get(f"{url}/v1/jobs")[0] == 404
    process.detach()


def test_a_worker_without_its_tables_is_not_ready_and_tells_what_it_knows(tmp_path: Path) -> None:
    with serving(tmp_path, upgrade=False) as url:
        status, _, text = get(f"{url}/readyz")
        assert (status, json.loads(text)["status"]) == (503, "not ready")
        assert "schema revision 0" in json.loads(text)["detail"]
        assert get(f"{url}/healthz")[0] == 200
        status, _, text = get(f"{url}/metrics")
        assert status == 200
        assert "silkline_disk_free_bytes " in text
        assert "silkline_workers_alive 0" not in text, "the database did not say so"


def test_beyond_this_machine_metrics_want_the_token(tmp_path: Path) -> None:
    with serving(tmp_path, "secret") as url:
        assert get(f"{url}/metrics")[0] == 401
        assert get(f"{url}/metrics", "wrong")[0] == 401
        assert get(f"{url}/metrics", "secret")[0] == 200
        assert get(f"{url}/healthz")[0] == get(f"{url}/readyz")[0] == 200


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/readyz"])
def test_a_name_that_is_not_of_this_machine_is_refused(tmp_path: Path, path: str) -> None:
    with serving(tmp_path) as url:
        for host in ("evil.example", "evil.example:9100", "127.0.0.1.evil.example", "192.0.2.1", "[", "evil@localhost"):
            assert get(url + path, host=host)[0] == 421, host
        for host in ("localhost:9100", "127.0.0.1", "[::1]:9100"):
            assert get(url + path, host=host)[0] == 200, host


def test_a_worker_that_others_can_reach_does_not_start_without_a_token() -> None:
    with pytest.raises(UsageError, match=r"set SILKLINE_API_TOKEN first, or leave --metrics-host out"):
        address.listen("0.0.0.0", 9100, Settings(), option="metrics-")


def test_wrong_tokens_have_to_wait(tmp_path: Path) -> None:
    with serving(tmp_path, "secret") as url:
        statuses = [get(f"{url}/metrics", f"guess{number}")[0] for number in range(EACH)]
        assert statuses == [401] * EACH
        request = urllib.request.Request(f"{url}/metrics", headers={"Authorization": "Bearer secret"})
        with pytest.raises(urllib.error.HTTPError) as refused, urllib.request.urlopen(request, timeout=30):
            pass
        assert (refused.value.status, int(refused.value.headers["Retry-After"]) > 0) == (429, True)
        refused.value.close()
        assert get(f"{url}/metrics")[0] == 401, "without a token there is nothing to wait for"
        assert get(f"{url}/healthz")[0] == 200


def test_a_token_that_was_right_passes_during_an_attack(tmp_path: Path) -> None:
    with serving(tmp_path, "secret") as url:
        assert get(f"{url}/metrics", "secret")[0] == 200
        statuses = [get(f"{url}/metrics", f"guess{number}")[0] for number in range(EACH + 1)]
        assert statuses == [401] * EACH + [429]
        assert get(f"{url}/metrics", "secret")[0] == 200


@contextmanager
def no_deadlines(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        for name in ("seconds", "head_seconds"):
            patch.setattr(metrics_server._Server, name, 3600.0)
        patch.setattr(metrics_server._Handler, "timeout", 3600.0)
        yield


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\n"])
def test_the_oldest_connection_without_a_request_makes_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    with no_deadlines(monkeypatch), serving(tmp_path) as url, ExitStack() as opened:
        port = int(url.rpartition(":")[2])
        silent = []
        for _ in range(MOST_AT_ONCE):
            silent.append(opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60)))
            silent[-1].sendall(sent)
        assert get(f"{url}/healthz")[0] == 200
        assert silent[0].recv(1) == b""
        silent[-1].sendall((b"" if sent else b"GET /healthz HTTP/1.1\r\n") + b"Host: localhost\r\n\r\n")
        assert silent[-1].recv(12) == b"HTTP/1.0 200", "the others stay"


def test_connections_that_are_answered_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    arrived, go_on = threading.Semaphore(0), threading.Event()

    def slow() -> str:
        arrived.release()
        go_on.wait()
        return "the metrics"

    listener = socket.create_server(("127.0.0.1", 0))
    server = MetricsServer(MetricsListener(listener, ""), slow, lambda: None)
    server.start()
    with no_deadlines(monkeypatch), ExitStack() as opened:
        opened.callback(server.stop)
        opened.callback(go_on.set)
        asking = []
        for _ in range(MOST_AT_ONCE):
            asking.append(opened.enter_context(socket.create_connection(listener.getsockname(), timeout=60)))
            asking[-1].sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            arrived.acquire()
        one_more = opened.enter_context(socket.create_connection(listener.getsockname(), timeout=60))
        assert one_more.recv(1) == b"", "it is closed at once"
        go_on.set()
        for connection in asking:
            assert connection.recv(12) == b"HTTP/1.0 200"


def test_connections_without_a_request_give_their_places_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long before the time for a whole connection is over: here it never is."""
    monkeypatch.setattr(metrics_server._Server, "seconds", 3600.0)
    monkeypatch.setattr(metrics_server._Server, "head_seconds", 0.3)
    monkeypatch.setattr(metrics_server._Handler, "timeout", 3600.0)
    with serving(tmp_path) as url:
        port = int(url.rpartition(":")[2])
        silent = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(MOST_AT_ONCE)]
        for connection in silent:
            assert connection.recv(1) == b""
            connection.close()
        assert get(f"{url}/healthz")[0] == 200


def test_who_sends_a_byte_now_and_then_does_not_keep_a_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server hangs up, though the client never was silent for long."""
    monkeypatch.setattr(metrics_server._Server, "seconds", 0.3)
    with serving(tmp_path) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=60) as slow:
            slow.settimeout(0.05)
            slow.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
            while True:
                try:
                    slow.sendall(b"x")
                    if slow.recv(1) == b"":
                        break
                except TimeoutError:
                    continue
                except OSError:
                    break
        assert get(f"{url}/healthz")[0] == 200

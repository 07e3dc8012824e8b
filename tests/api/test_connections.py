"""Real sockets that send too slowly, too much or too often: each is refused with a reason, and others are served."""

import http.client
import json
import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import quote

import pytest

from silkline.api.connections import CHUNKS, HEADERS, PATH, SMALLEST
from silkline.api.request_gate import LONGEST_QUERY
from silkline.model.client_network import network_of
from silkline.store.opening import open_database
from tests.support.served import Answer, Client, Served
from tests.support.supervisors import PATIENCE, eventually
from tests.support.unread_downloads import PAGES, PATHS, downloaded, large_job, unread

TOKEN = "an-operator-token-for-tests"
EACH, STREAMS, STREAMS_EACH = 12, 6, 4
FORM, JSON = "application/x-www-form-urlencoded", "application/json"


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with short deadlines and few connections."""
    folder = tmp_path_factory.mktemp("strict")
    settings = {
        "api_token": TOKEN,
        "slots": 0,
        "api_head_timeout": 0.5,
        "api_body_timeout": 0.5,
        "api_answer_timeout": 0.5,
        "api_connections_each": EACH,
        "api_streams": STREAMS,
        "api_streams_each": STREAMS_EACH,
        "api_downloads_each": 1,
    }
    with closing(Served(f"sqlite:///{folder / 'silkline.db'}", folder, **settings)) as server:
        server.ready()
        yield server


def connect(client: Client) -> socket.socket:
    return socket.create_connection((client.host, client.port), timeout=PATIENCE)


def head(client: Client, request: str, **headers: str) -> bytes:
    lines = {"Host": f"{client.host}:{client.port}", **{name.replace("_", "-"): v for name, v in headers.items()}}
    text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"{request} HTTP/1.1\r\n{text}\r\n".encode()


def answer(connection: socket.socket) -> Answer:
    with closing(http.client.HTTPResponse(connection)) as found:
        found.begin()
        return Answer(found.status, dict(found.getheaders()), found.read())


def until_closed(connection: socket.socket) -> bytes:
    came = b""
    try:
        while data := connection.recv(65536):
            came += data
    except ConnectionResetError:
        pass
    return came


@pytest.mark.parametrize("sent", [b"GET /healthz HTT", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: "])
def test_a_head_that_never_ends_is_given_up(strict: Served, sent: bytes) -> None:
    with connect(strict.ready()) as connection:
        connection.sendall(sent)
        answer(connection).problem(408, "too-slow", "headers of a request must arrive")
        assert until_closed(connection) == b""


def test_a_connection_that_says_nothing_is_closed(strict: Served) -> None:
    with connect(strict.ready()) as connection:
        assert until_closed(connection) == b""


def test_a_second_request_has_a_deadline_too(strict: Served) -> None:
    client = strict.ready()
    with connect(client) as connection:
        connection.sendall(head(client, "GET /healthz"))
        assert answer(connection).status == 200
        connection.sendall(b"GET /hea")
        answer(connection).problem(408, "too-slow", "headers of a request must arrive")


def test_a_body_that_never_comes_is_given_up(strict: Served) -> None:
    client = strict.ready()
    with connect(client) as connection:
        kind = "application/json"
        sent = head(client, "POST /v1/jobs", Authorization=f"Bearer {TOKEN}", Content_Length="99", Content_Type=kind)
        connection.sendall(sent + b'{"kind":')
        answer(connection).problem(408, "too-slow", "a body must arrive")
        assert until_closed(connection) == b""
    assert "Traceback" not in strict.log


def test_a_long_body_is_no_credit_for_silence(strict: Served) -> None:
    """Most of the body comes at once, then nothing: the server does not wait longer because of what came."""
    client, size = strict.ready(), 15 << 20
    with connect(client) as connection:
        sent = head(client, "POST /v1/jobs", Authorization=f"Bearer {TOKEN}", Content_Length=str(size))
        connection.sendall(sent + b" " * (size - 1))
        answer(connection).problem(408, "too-slow", "without a longer pause")


def test_a_caller_that_does_not_read_its_answer_is_let_go(strict: Served) -> None:
    """Many pipelined requests whose answers nobody reads: the connection is closed, not kept for ever."""
    client = strict.ready()
    with connect(client) as connection:
        request = head(client, "GET /openapi.json", Authorization=f"Bearer {TOKEN}")
        connection.settimeout(PATIENCE)

        def refuses_more() -> bool:
            try:
                connection.sendall(request * 20)
            except OSError:
                return True
            return False

        eventually("the server closes the connection", refuses_more)


def test_a_download_that_nobody_reads_is_cut_off(strict: Served) -> None:
    client = strict.ready().with_token(TOKEN)
    with closing(open_database(f"sqlite:///{strict.data / 'silkline.db'}")) as database:
        job = large_job(database)
    with unread(client, f"/v1/jobs/{job.id}/{PATHS[1]}"):
        assert len(eventually("its place becomes free", lambda: downloaded(client, job))) == PAGES


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\n"])
def test_connections_without_a_request_make_room_for_others(strict: Served, sent: bytes) -> None:
    """Far more than one address may have. The oldest of them is closed for each new one."""
    client = strict.ready()
    with ExitStack() as stack:
        for _ in range(EACH * 3):
            stack.enter_context(connect(client)).sendall(sent)
        assert client.get("/healthz").status == 200


def test_one_address_has_so_many_connections(strict: Served) -> None:
    """Those that have begun to send a request stay, until it is too slow."""
    client = strict.ready()
    request = head(client, "POST /v1/jobs", Authorization=f"Bearer {TOKEN}", Content_Length="99")

    def refused() -> Answer | None:
        with ExitStack() as stack:
            for _ in range(EACH):
                stack.enter_context(connect(client)).sendall(request)
            found = client.get("/healthz")
            return found if found.status != 200 else None

    found = eventually("one more is refused", refused)
    found.problem(429, "too-many", "one address may have at most", "connections")
    assert found.headers["retry-after"]
    eventually("there is room again", lambda: client.get("/healthz").status == 200)


def test_a_caller_has_so_many_streams(strict: Served) -> None:
    client = strict.ready().with_token(TOKEN)
    other = client.with_token(client.post("/v1/tokens", {"name": "other"}).json["token"])
    with ExitStack() as stack:
        for _ in range(STREAMS_EACH):
            stack.enter_context(opened_stream(client))
        client.get("/v1/events").problem(429, "too-many", "each caller may have at most")
        for _ in range(STREAMS - STREAMS_EACH):
            stack.enter_context(opened_stream(other))
        other.get("/v1/events").problem(503, "too-many-streams")
        assert client.get("/v1/jobs").status == 200
    eventually("they are counted out", lambda: _stream_status(client) == 200)


def opened_stream(client: Client) -> socket.socket:
    connection = connect(client)
    connection.sendall(head(client, "GET /v1/events", **client.headers))
    assert connection.recv(100).startswith(b"HTTP/1.1 200")
    return connection


def _stream_status(client: Client) -> int:
    with connect(client) as connection:
        connection.sendall(head(client, "GET /v1/events", **client.headers))
        return int(connection.recv(100).split()[1])


# Bodies.


def test_without_a_token_a_body_is_small(strict: Served) -> None:
    client = strict.ready()
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    client.post("/login", b"token=" + b"x" * 8_192, **form).problem(413, "too-large", "8,192")
    with connect(client) as connection:
        connection.sendall(head(client, "POST /login", Transfer_Encoding="chunked", **form))
        connection.sendall((b"1000\r\n" + b"x" * 4096 + b"\r\n") * 3)
        answer(connection).problem(413, "too-large", "8,192")


@pytest.mark.parametrize("path", ["/v1/fetch", "/v1/claims", "/v1/tokens", "/v1/jobs/x/retry", "/v1/jobs/x/finish"])
def test_short_routes_take_short_bodies(strict: Served, path: str) -> None:
    client = strict.ready().with_token(TOKEN)
    body = json.dumps({"x": "y" * 300_000}).encode()
    client.post(path, body, Content_Type="application/json").problem(413, "too-large", "262,144")


def test_an_upload_that_is_broken_off_leaves_no_traceback(strict: Served) -> None:
    client = strict.ready()
    for _ in range(5):
        with connect(client) as connection:
            kind = "application/json"
            lines = {"Authorization": f"Bearer {TOKEN}", "Content_Type": kind, "Content_Length": "100000"}
            connection.sendall(head(client, "POST /v1/jobs", **lines) + b'{"kind": "page", ')
    for _ in range(3):
        with connect(client) as connection:
            connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
            answer(connection).problem(400, "bad-request", "not an HTTP request")
    strict_log = strict.log
    assert "Traceback" not in strict_log
    assert "problem" not in strict_log.lower()


@pytest.mark.parametrize(("path", "token"), [("/login", ""), ("/v1/jobs", ""), ("/v1/jobs", TOKEN)])
def test_a_body_in_tiny_chunks_is_refused(strict: Served, path: str, token: str) -> None:
    client = strict.ready()
    with connect(client) as connection:
        fields = {"Content_Type": "application/x-www-form-urlencoded" if path == "/login" else "application/json"}
        fields |= {"Authorization": f"Bearer {token}"} if token else {}
        start = head(client, f"POST {path}", Transfer_Encoding="chunked", **fields)
        connection.sendall(start + 2 * CHUNKS * b"1\r\nx\r\n")  # at once: else the answer to the head may be first
        answer(connection).problem(400, "bad-request", "64 bytes in each")
        assert until_closed(connection) == b""


def test_a_body_in_small_chunks_arrives(strict: Served) -> None:
    client = strict.ready()
    body = json.dumps({"kind": "page", "url": "https://example.com/", "paused": True, "metadata": {"a": 60_000 * "x"}})
    parts = [body[start : start + SMALLEST].encode() for start in range(0, len(body), SMALLEST)]
    assert len(parts) > 2 * CHUNKS
    with connect(client) as connection:
        fields = {"Authorization": f"Bearer {TOKEN}", "Content_Type": "application/json"}
        connection.sendall(head(client, "POST /v1/jobs", Transfer_Encoding="chunked", **fields))
        connection.sendall(b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n")
        assert answer(connection).json["id"]


@pytest.mark.parametrize("where", ["head", "second head", "trailers"])
def test_a_request_with_very_many_headers_is_refused(strict: Served, where: str) -> None:
    client, lines = strict.ready(), (HEADERS + 1) * b"a:\r\n"
    plain = head(client, "GET /healthz")
    sent = {
        "head": plain[:-2] + lines + b"\r\n",
        "second head": plain + plain[:-2] + lines + b"\r\n",
        "trailers": head(client, "POST /v1/jobs", Transfer_Encoding="chunked") + b"0\r\n" + lines + b"\r\n",
    }
    with connect(client) as connection:
        connection.sendall(sent[where])
        came = until_closed(connection)
    assert re.findall(rb"HTTP/1.1 (\d+)", came) == ([b"200", b"400"] if where == "second head" else [b"400"])
    assert b"at most 200 headers" in came


def test_connections_that_are_refused_keep_nobody_out(tmp_path: Path) -> None:
    settings = {"api_token": TOKEN, "slots": 0, "api_connections": 30, "api_connections_each": EACH}
    with closing(Served(f"sqlite:///{tmp_path / 'silkline.db'}", tmp_path, **settings)) as server, ExitStack() as stack:
        client = server.ready()
        slow = head(client, "POST /v1/jobs", Authorization=f"Bearer {TOKEN}", Content_Length="99")
        for _ in range(EACH):
            stack.enter_context(connect(client)).sendall(slow)
        for _ in range(100):
            stack.enter_context(connect(client)).sendall(slow)
        place = (client.host, client.port)
        with socket.create_connection(place, timeout=PATIENCE, source_address=("127.0.0.2", 0)) as other:
            other.sendall(head(client, "GET /healthz"))
            assert answer(other).status == 200


def waiting(client: Client, request: str, size: int, **headers: str) -> socket.socket:
    """A connection with a request whose body the server waits for."""
    connection = connect(client)
    connection.sendall(head(client, request, Content_Length=str(size), Expect="100-continue", **headers))
    assert connection.recv(1000).startswith(b"HTTP/1.1 100 ")
    return connection


def test_logins_that_never_come_keep_nobody_out(tmp_path: Path) -> None:
    """They make room for others, and end soon. A caller with a token keeps its place and has more time."""
    settings = {"api_token": TOKEN, "slots": 0, "api_connections": EACH}
    with closing(Served(f"sqlite:///{tmp_path / 'silkline.db'}", tmp_path, **settings)) as server, ExitStack() as stack:
        client = server.ready()
        known, job = client.with_token(TOKEN), b'{"kind": "page", "url": "https://example.com/", "paused": true}'
        mine = stack.enter_context(waiting(known, "POST /v1/jobs", len(job), **known.headers, Content_Type=JSON))
        logins = [stack.enter_context(waiting(client, "POST /login", 8_000, Content_Type=FORM)) for _ in range(EACH)]
        for _ in range(EACH // 2):
            assert known.get("/v1/jobs").status == 200
        assert until_closed(logins[0]) == b"", "the oldest one made room"
        answer(logins[-1]).problem(408, "too-slow", "without a token")
        mine.sendall(job)
        assert answer(mine).status == 201


def test_nobody_writes_into_the_log_without_a_token(strict: Served) -> None:
    client, before = strict.ready(), len(strict.log)
    for sent in (b"nonsense\r\n\r\n", head(client, "GET /v1/jobs", Connection="upgrade", Upgrade="websocket")):
        with connect(client) as connection:
            connection.sendall(sent)
            assert answer(connection).status in (400, 401)
    assert client.get("/healthz").status == 200
    assert strict.log[before:] == ""


def test_whom_a_connection_counts_for() -> None:
    assert network_of(("10.0.0.1", 5)) == network_of(("::ffff:10.0.0.1", 6, 0, 0)) == "10.0.0.1"
    assert network_of(("2001:db8::1", 5)) == network_of(("2001:db8::ffff:2", 5)) != network_of(("2001:db8:0:1::1", 5))
    assert network_of(None) == network_of(("", 0)) == "unknown"


def test_the_log_names_no_made_up_lines(strict: Served, tmp_path: Path) -> None:
    """A path with line breaks and escapes cannot write lines of its own into the log."""
    client = strict.ready().with_token(TOKEN)
    assert client.get("/v1/jobs/%0aWARNING%20forged%1b%5b31m").status == 404
    assert "forged" not in strict.log


@pytest.mark.parametrize("path", ["/static/", "/v1/jobs/", "/", "/healthz/"])
@pytest.mark.parametrize("part", ["a/", "../", "%41", "%ff"])
def test_a_very_long_path_is_refused_before_it_is_read(strict: Served, path: str, part: str) -> None:
    for client in (strict.ready(), strict.ready().with_token(TOKEN)):
        answer = client.get(path + part * (60_000 // len(part)), Accept="text/html")
        answer.problem(400, "bad-request", f"at most {PATH:,} bytes")


def test_the_longest_path_and_the_longest_query_have_an_answer(strict: Served) -> None:
    client = strict.ready()
    assert client.get("/static/".ljust(PATH, "a")).status == 404
    target = "/".ljust(PATH, "<")
    led = client.get(target, Accept="text/html")
    assert led.status == 303
    assert client.get(led.headers["location"]).status == 200
    assert len(led.headers["location"]) < LONGEST_QUERY


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/login", "/static/silkline.css", "/v1/jobs", "/nowhere"])
def test_without_a_token_a_query_is_short(strict: Served, path: str) -> None:
    client = strict.ready()
    client.get(f"{path}?next=/{'%2f' * 20_000}").problem(400, "bad-request", "without a token")


def test_with_a_token_a_query_may_have_the_longest_url(strict: Served) -> None:
    client = strict.ready().with_token(TOKEN)
    url = "https://example.com/".ljust(8_192, "<")
    client.get(f"/v1/jobs/none/explain?url={quote(url)}").problem(404, "not-found", "none")

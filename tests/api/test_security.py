"""Each rule of security with somebody who tries to break it."""

import hashlib
import json
import re
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from silkline.api.address import is_loopback
from silkline.api.request_gate import AllowedHosts, scope_needed
from silkline.model.database import Database
from silkline.store import jobs, logs
from silkline.store.opening import open_database
from tests.support.served import Client, Served, command_line

TOKEN = "an-operator-token-for-tests"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that wants a token."""
    folder = tmp_path_factory.mktemp("guarded")
    settings = {"api_token": TOKEN, "slots": 0, "api_hosts": "crawler.example.com", "api_body_limit": 100_000}
    with closing(Served(f"sqlite:///{folder / 'silkline.db'}", folder, **settings)) as server:
        server.ready()
        yield server


# The name under which the server is asked for.


@pytest.mark.parametrize(
    "host",
    [
        "evil.test",
        "evil.test:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost.evil.test:{port}",
        "",
        "127.0.0.1:{port}@evil.test",
    ],
)
def test_a_name_that_is_not_ours_is_refused(client: Client, host: str) -> None:
    for path in ("/", "/v1/jobs", "/healthz", "/static/silkline.css"):
        client.get(path, Host=host.format(port=client.port)).problem(421, "wrong-host")


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}", "[::1]:{port}"])
def test_our_own_names_are_answered(client: Client, host: str) -> None:
    assert client.get("/v1/jobs", Host=host.format(port=client.port)).status == 200


def test_a_request_with_two_hosts_or_none_is_refused(client: Client) -> None:
    for lines in (f"Host: 127.0.0.1:{client.port}\r\nHost: evil.test\r\n", ""):
        assert b" 200 " not in _raw(client, f"GET /v1/jobs HTTP/1.1\r\n{lines}Connection: close\r\n\r\n".encode())


def test_a_request_cannot_hide_another_one(guarded: Served) -> None:
    """Two lengths for one body: a proxy may believe one and we the other."""
    client = guarded.ready()
    head = f"Host: 127.0.0.1:{client.port}\r\nAuthorization: Bearer {TOKEN}\r\n"
    hidden = f"GET /v1/tokens HTTP/1.1\r\n{head}\r\n"
    lengths = "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"
    answer = _raw(client, f"POST /v1/jobs HTTP/1.1\r\n{head}{lengths}\r\n0\r\n\r\n{hidden}".encode())
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b" 400 " in answer.partition(b"\r\n")[0]


def test_names_from_the_settings_are_answered(guarded: Served) -> None:
    client = guarded.ready().with_token(TOKEN)
    assert client.get("/v1/jobs", Host="crawler.example.com").status == 200
    client.get("/v1/jobs", Host="crawler.example.com:81").problem(421, "wrong-host")


def test_bound_to_every_address_only_addresses_and_our_own_name_are_answered() -> None:
    hosts = AllowedHosts("0.0.0.0", 8700, ["named.example.com"])
    assert hosts.allow("192.168.1.7:8700")
    assert hosts.allow("[fe80::1]:8700")
    assert hosts.allow("named.example.com")
    assert hosts.allow(f"{socket.gethostname()}:8700")
    assert not hosts.allow("evil.test:8700")
    assert not hosts.allow("192.168.1.7:80")
    assert not AllowedHosts("192.168.1.7", 8700).allow("192.168.1.8:8700")


@pytest.mark.parametrize(
    ("host", "safe"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.0.1", False),
        ("localhost.evil.test", False),
        ("::ffff:10.0.0.1", False),
    ],
)
def test_what_counts_as_loopback(host: str, safe: bool) -> None:
    assert is_loopback(host) is safe


# Other sites.


@pytest.fixture(scope="module")
def waiting(served: Served) -> str:
    """The newest job, which only an external worker may claim."""
    id: str = served.ready().post("/v1/jobs", {"kind": "extension", "url": "https://a.test/"}).json["id"]
    return id


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.test"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://127.0.0.1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Origin": "https://evil.test", "Sec_Fetch_Site": "none"},
        {"Origin": "chrome-extension://abcdefgh"},
    ],
    ids=str,
)
@pytest.mark.parametrize("path", ["/v1/jobs", "/jobs", "/first", "/v1/tokens", "/v1/claims", "/login"])
def test_what_another_site_sends_is_refused(client: Client, headers: dict[str, str], path: str, waiting: str) -> None:
    client.post(path, {"kind": "diagnostic"}, **headers).problem(403, "cross-site")
    (newest,) = client.get("/v1/jobs?limit=1").json["items"]
    assert (newest["id"], newest["status"]) == (waiting, "queued"), "nothing was made and nothing claimed"


def test_our_own_page_may_send(client: Client) -> None:
    origin = f"http://127.0.0.1:{client.port}"
    answer = client.post("/v1/jobs", {"kind": "diagnostic"}, Origin=origin, Sec_Fetch_Site="same-origin")
    assert answer.status == 201


def test_no_other_site_may_read(client: Client) -> None:
    answer = client.get("/v1/jobs", Origin="https://evil.test")
    assert "access-control-allow-origin" not in answer.headers
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    preflight = client.ask("OPTIONS", "/v1/jobs", Origin="https://evil.test", Access_Control_Request_Method="POST")
    assert "access-control-allow-origin" not in preflight.headers
    assert preflight.status == 405


# Tokens.


def test_without_a_token_nothing_is_told(guarded: Served) -> None:
    client = guarded.ready()
    for path in ("/v1/jobs", "/v1/workers", "/metrics", "/openapi.json", "/v1/events", "/v1/tokens"):
        assert "www-authenticate" in client.get(path).headers
        client.get(path).problem(401, "unauthorized")
    client.post("/v1/jobs", {"kind": "page", "url": "https://example.com"}).problem(401, "unauthorized")
    assert client.get("/healthz").status == client.get("/readyz").status == 200
    page = client.get("/jobs/x/pages", Accept="text/html")
    assert (page.status, page.headers["location"]) == (303, "/login?next=/jobs/x/pages")


@pytest.mark.parametrize(
    "header",
    [
        "Bearer wrong",
        "Bearer",
        "",
        "Bearer ",
        "Basic " + TOKEN,
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        "Bearer silk_0123456789abcdef_" + "a" * 43,
        "Bearer silk_%00_x",
    ],
)
def test_a_wrong_token_is_refused(guarded: Served, client: Client, header: str) -> None:
    guarded.ready().get("/v1/jobs", Authorization=header).problem(401, "unauthorized")
    # Also where none is needed: a client that means to be somebody must not be taken for anybody.
    client.get("/v1/jobs", Authorization=header).problem(401, "unauthorized")


def test_a_token_may_what_its_scope_says(guarded: Served) -> None:
    operator = guarded.ready().with_token(TOKEN)
    tokens = {
        scope: operator.post("/v1/tokens", {"name": scope, "scope": scope}).json for scope in ("read", "write", "admin")
    }
    read, write, admin = (operator.with_token(tokens[scope]["token"]) for scope in ("read", "write", "admin"))
    job = {"kind": "page", "url": "https://example.com", "paused": True}
    assert read.get("/v1/jobs").status == 200
    read.post("/v1/jobs", job).problem(403, "forbidden", "needs the scope write")
    id = write.post("/v1/jobs", job).json["id"]
    read.post(f"/v1/jobs/{id}/cancel").problem(403, "forbidden")
    read.ask("DELETE", f"/v1/jobs/{id}").problem(403, "forbidden")
    read.post("/v1/claims", {}).problem(403, "forbidden", "needs the scope worker")
    write.get("/v1/tokens").problem(403, "forbidden", "needs the scope admin")
    write.post("/v1/tokens", {"name": "more"}).problem(403, "forbidden")
    listed = admin.get("/v1/tokens")
    assert {token["scope"] for token in listed.json["items"]} >= {"read", "write", "admin"}
    for token in tokens.values():
        assert token["token"] not in listed.text
    assert admin.ask("DELETE", f"/v1/tokens/{tokens['read']['id']}").status == 204
    read.get("/v1/jobs").problem(401, "unauthorized")


def contents(path: Path) -> bytes:
    try:
        return path.read_bytes() if path.is_file() else b""
    except FileNotFoundError:  # the server at work
        return b""


def test_secrets_of_tokens_are_stored_nowhere(guarded: Served) -> None:
    token = guarded.ready().with_token(TOKEN).post("/v1/tokens", {"name": "kept"}).json["token"]
    secret = token.split("_", 2)[2]
    stored = b"".join(contents(path) for path in guarded.data.rglob("*"))
    assert secret.encode() not in stored
    assert TOKEN.encode() not in stored
    for pid in (guarded.process.pid, guarded.api_pid()):
        assert TOKEN not in command_line(pid)


def test_a_token_that_ran_out_is_refused(guarded: Served) -> None:
    operator = guarded.ready().with_token(TOKEN)
    made = operator.post("/v1/tokens", {"name": "short", "days": 1e-9}).json
    operator.with_token(made["token"]).get("/v1/jobs").problem(401, "unauthorized")


def test_one_caller_does_not_see_the_answer_of_another(guarded: Served) -> None:
    operator = guarded.ready().with_token(TOKEN)
    other = operator.with_token(operator.post("/v1/tokens", {"name": "other", "scope": "write"}).json["token"])
    body, key = {"kind": "page", "url": "https://example.com", "paused": True}, uuid.uuid4().hex
    first = operator.post("/v1/jobs", body, Idempotency_Key=key)
    second = other.post("/v1/jobs", body, Idempotency_Key=key)
    assert first.json["id"] != second.json["id"]


def test_an_extension_comes_with_a_token(guarded: Served) -> None:
    client = guarded.ready()
    extension = {"Origin": "chrome-extension://abcdefgh", "Sec_Fetch_Site": "cross-site"}
    client.post("/v1/claims", {}, **extension).problem(403, "cross-site")
    assert client.with_token(TOKEN).post("/v1/claims", {}, **extension).json["items"] == []
    client.with_token(TOKEN).post("/v1/claims", {}, Origin="https://evil.test").problem(403, "cross-site")


# The browser's session.


def test_a_browser_signs_in_and_out(guarded: Served) -> None:
    client = guarded.ready()
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    assert client.post("/login", b"token=wrong", **form).status == 401
    signed = client.post("/login", f"token={TOKEN}&next=/workers".encode(), **form)
    assert (signed.status, signed.headers["location"]) == (303, "/workers")
    cookie = signed.headers["set-cookie"]
    for word in ("HttpOnly", "SameSite=strict"):
        assert word in cookie
    assert TOKEN not in cookie
    session = cookie.partition(";")[0]
    assert client.get("/v1/jobs", Cookie=session).status == 200
    client.post("/v1/jobs", {}, Cookie=session, Origin="https://evil.test").problem(403, "cross-site")
    name, _, value = session.partition("=")
    for forged in ("x", "", value[:-1], f"{value}x", value[::-1], f"operator.{value}", "é"):
        client.get("/v1/jobs", Cookie=f"{name}={forged}".encode().decode("latin-1")).problem(401, "unauthorized")
    assert client.post("/logout", Cookie=session).status == 303
    client.get("/v1/jobs", Cookie=session).problem(401, "unauthorized")


def test_a_browser_with_very_many_other_cookies_is_signed_in(guarded: Served) -> None:
    client = guarded.ready()
    session = signed_in(client, TOKEN)
    for cookies in (f"{';' * 50_000}{session}", f"a=b; {session}; {'c=d; ' * 9_000}"):
        assert client.get("/v1/jobs", Cookie=cookies).status == 200
    client.get("/v1/jobs", Cookie=f"other_{session}").problem(401, "unauthorized")


def signed_in(client: Client, token: str) -> str:
    """The cookie of a new session."""
    answer = client.post("/login", f"token={token}".encode(), Content_Type="application/x-www-form-urlencoded")
    assert answer.status == 303, answer
    return answer.headers["set-cookie"].partition(";")[0]


def test_a_session_of_any_scope_can_sign_out(guarded: Served) -> None:
    client = guarded.ready()
    token = client.with_token(TOKEN).post("/v1/tokens", {"name": "w", "scope": "worker"}).json["token"]
    session = signed_in(client, token)
    client.get("/v1/jobs", Cookie=session).problem(403, "forbidden")
    assert client.post("/logout", Cookie=session).status == 303
    client.post("/logout", Cookie=session).problem(401, "unauthorized")


def test_who_copies_the_database_cannot_sign_in(guarded: Served) -> None:
    """Nothing that is stored is the cookie, or becomes one."""
    client = guarded.ready()
    session = signed_in(client, TOKEN)
    stored = b"".join(contents(path) for path in guarded.data.rglob("*"))
    name, _, value = session.partition("=")
    assert value.encode() not in stored
    for found in {*re.findall(rb"[0-9a-f]{64}", stored)}:
        for guess in (found.decode(), found.decode()[:43], hashlib.sha256(found).hexdigest()[:43]):
            client.get("/v1/jobs", Cookie=f"{name}={guess}").problem(401, "unauthorized")


def test_a_session_ends_with_its_token(guarded: Served) -> None:
    client = guarded.ready()
    operator = client.with_token(TOKEN)
    made = operator.post("/v1/tokens", {"name": "browser", "scope": "read"}).json
    session = signed_in(client, made["token"])
    assert client.get("/v1/jobs", Cookie=session).status == 200
    client.post("/v1/jobs", {"kind": "page"}, Cookie=session).problem(403, "forbidden", "needs the scope write")
    assert client.post("/logout", Cookie=session).status == 303, "who may only read may sign out"
    session = signed_in(client, made["token"])
    assert operator.ask("DELETE", f"/v1/tokens/{made['id']}").status == 204
    client.get("/v1/jobs", Cookie=session).problem(401, "unauthorized")


@pytest.mark.parametrize("target", ["https://evil.test/", "//evil.test/", "/\\evil.test", "javascript:alert(1)"])
def test_signing_in_leads_nowhere_else(guarded: Served, target: str) -> None:
    body = f"token={TOKEN}&next={target}".encode()
    answer = guarded.ready().post("/login", body, Content_Type="application/x-www-form-urlencoded")
    assert answer.headers["location"] == "/"


def test_every_path_but_the_public_ones_needs_a_scope() -> None:
    assert [scope_needed("GET", path) for path in ("/", "/jobs/x", "/v1/jobs", "/nowhere", "/static")] == ["read"] * 5
    assert scope_needed("POST", "/v1/nowhere") == scope_needed("PUT", "/x") == scope_needed("BREW", "/") == "write"
    assert scope_needed("GET", "/v1/tokens/x") == "admin"
    assert scope_needed("POST", "/v1/claims") == scope_needed("POST", "/v1/jobs/x/finish") == "worker"
    assert scope_needed("GET", "/v1/jobs/x/results") == "read"
    assert scope_needed("POST", "/v1/jobs/x/y/finish") == scope_needed("POST", "/v1/jobs//finish") == "write"
    assert scope_needed("GET", "/static/../v1/tokens") is None, (
        "such a path is a file's, and files stay in their folder"
    )


def test_files_stay_in_their_folder(guarded: Served) -> None:
    for path in (
        "/static/../v1/tokens",
        "/static/..%2f..%2fapp.py",
        "/static/%2e%2e/pages.py",
        "/static//etc/passwd",
        "/static/vendor",
    ):
        assert guarded.ready().get(path).status in (401, 404), path


# Bodies.


def test_a_body_that_is_announced_too_large_is_not_even_read(guarded: Served) -> None:
    head = f"POST /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1:{guarded.ready().port}\r\nAuthorization: Bearer {TOKEN}\r\n"
    answer = _raw(
        guarded.ready(), f"{head}Content-Type: application/json\r\nContent-Length: 1000000000\r\n\r\n".encode()
    )
    assert b" 413 " in answer.partition(b"\r\n")[0]


@pytest.mark.parametrize("token", [TOKEN, "wrong"])
def test_a_body_without_an_end_is_cut_off(guarded: Served, token: str) -> None:
    """A gigabyte in chunks, with no length announced: the server soon stops reading, whatever it answers."""
    client, sent = guarded.ready(), 0
    with socket.create_connection((client.host, client.port), timeout=60) as connection:
        head = f"POST /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nAuthorization: Bearer {token}\r\n"
        connection.sendall(f"{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        try:
            while sent < 1 << 30:
                connection.sendall(chunk)
                sent += 0x10000
        except OSError:
            pass
        answer = _read(connection)
    assert sent < 64 << 20, "the server took it all"
    assert not answer or (b" 413 " if token == TOKEN else b" 401 ") in answer.partition(b"\r\n")[0]
    assert client.get("/healthz").status == 200


def test_a_body_just_too_large_is_refused_with_the_limit(guarded: Served) -> None:
    client = guarded.ready().with_token(TOKEN)
    body = json.dumps({"kind": "page", "url": "https://example.com", "metadata": {"x": "y" * 100_000}}).encode()
    client.post("/v1/jobs", body, Content_Type="application/json").problem(413, "too-large", "100,000")


# Secrets in specs are write-only.


def test_secrets_of_a_job_are_never_told_again(client: Client, served: Served, database: Database) -> None:
    secret = f"s3cret-{uuid.uuid4().hex}"
    body = {
        "kind": "page",
        "url": "https://example.com/",
        "headers": {"Authorization": f"Bearer {secret}"},
        "cookies": {"session": secret},
        "paused": True,
    }
    posted = client.post("/v1/jobs", body, Idempotency_Key=secret[:20])
    id = posted.json["id"]
    assert posted.json["spec"]["headers"] == {"Authorization": "***"}
    assert jobs.get(database, id).payload["cookies"] == {"session": secret}, "the worker still needs it"
    logs.append(database, [logs.NewLine(id, 1, "info", f"sent Authorization: Bearer {secret}", database.now())])
    texts = [posted.text]
    texts += [client.get(path).text for path in (f"/v1/jobs/{id}", "/v1/jobs?q=example.com", f"/v1/jobs/{id}/logs")]
    texts += [client.get(f"/jobs/{id}{tab}", Accept="text/html").text for tab in ("", "/details", "/logs")]
    texts += [
        json.dumps(data) for _, (_, _, data) in zip(range(2), client.events(f"/v1/jobs/{id}/events"), strict=False)
    ]
    texts.append(client.post("/v1/jobs", {**body, "headers": {"X-Key": f"{secret}\n"}}).text)
    texts.append(client.post("/v1/jobs", {**body, "proxy": f"http://u:{secret}@p.test"}).text)
    texts.append(client.post("/v1/jobs", {**body, "cookies": [secret]}).text)
    texts.append(served.log)
    texts += [command_line(int(path.name)) for path in Path("/proc").iterdir() if path.name.isdecimal()]
    assert [text for text in texts if secret in text] == []


def test_a_store_that_fails_tells_nothing_about_itself(tmp_path: Path) -> None:
    """The message of a failed database names files and servers; the caller gets none of it."""
    url = f"sqlite:///{tmp_path / 'silkline.db'}"
    with closing(Served(url, tmp_path, slots=0, log_format="json")) as server:
        client = server.ready()
        with closing(open_database(url)) as database, database.transaction() as transaction:
            transaction.script("ALTER TABLE crawl_jobs RENAME TO gone")
        answer = client.get("/v1/jobs", X_Request_ID="mine-1")
        answer.problem(500, "internal", "under problem mine-1")
        assert "crawl_jobs" not in answer.text
        lines = [json.loads(line) for line in server.log.splitlines() if line.startswith("{")]
        (told,) = [line for line in lines if line.get("request") == "mine-1" and line["level"] == "error"]
        assert "crawl_jobs" in told["error"]


def test_every_answer_has_the_id_of_its_request(client: Client) -> None:
    assert client.get("/healthz", X_Request_ID="mine.2").headers["x-request-id"] == "mine.2"
    refused = client.get("/v1/jobs", Host="elsewhere.example")
    odd = client.get("/v1/jobs", X_Request_ID="not an id")
    given = [answer.headers["x-request-id"] for answer in (refused, odd, client.get("/v1/jobs/none"))]
    assert len({*given, "not an id"}) == 4, "each request that brings no valid id gets a new one"


def test_requests_side_by_side_do_not_mix(guarded: Served) -> None:
    """Tokens of different scopes at once: each gets its own answer."""
    operator, seen = guarded.ready().with_token(TOKEN), []
    read = operator.with_token(operator.post("/v1/tokens", {"name": "r"}).json["token"])

    def ask(client: Client, expected: int) -> None:
        seen.extend(client.get("/v1/tokens").status == expected for _ in range(10))

    threads = [
        threading.Thread(target=ask, args=each) for each in ((operator, 200), (read, 403), (guarded.ready(), 401))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [True] * 30


def _raw(client: Client, request: bytes) -> bytes:
    with socket.create_connection((client.host, client.port), timeout=60) as connection:
        connection.sendall(request)
        return _read(connection)


def _read(connection: socket.socket) -> bytes:
    answer = b""
    try:
        while chunk := connection.recv(65_536):
            answer += chunk
    except OSError:
        pass
    return answer

"""The browser extension in a real Chromium: it claims a job, opens the page, and posts what a person would see."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any

from playwright.sync_api import Playwright, Worker

from silkline.fetch.guard import METADATA_NAMES, PUBLIC_V6, REFUSED_V4, REFUSED_V6, Guard
from silkline.sample.server import SampleServer
from silkline.sample.site import SampleAnswer
from tests.support.served import Served
from tests.support.supervisors import eventually
from tests.web.conftest import FLAGS, PATIENCE

EXTENSION = Path(__file__).resolve().parents[2] / "extension"
TOKEN = "a-token-for-the-extension"
PUBLIC = "public.example"


@contextmanager
def extension_worker(playwright: Playwright, chromium: Path, profile: Path, *flags: str) -> Iterator[Worker]:
    """The service worker of the extension, in a browser of its own."""
    context = playwright.chromium.launch_persistent_context(
        profile,
        executable_path=chromium,
        args=[
            *FLAGS,
            *flags,
            f"--disable-extensions-except={EXTENSION}",
            f"--load-extension={EXTENSION}",
            "--headless=new",
        ],
        headless=False,
        timeout=PATIENCE,
    )
    try:
        workers = context.service_workers
        worker = workers[0] if workers else context.wait_for_event("serviceworker", timeout=PATIENCE)
        # Its target is there before its script has run: only then is it told when the settings change.
        ready = "Boolean(globalThis.chrome?.storage?.local) && typeof look === 'function'"
        eventually("the extension is ready", lambda: worker.evaluate(ready))
        yield worker
    finally:
        context.close()


def test_a_page_is_fetched_in_the_persons_own_browser(playwright: Playwright, chromium: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'silkline.db'}"
    served = Served(url, tmp_path / "data", slots=0, api_token=TOKEN, api_allow_private=True)
    with closing(served) as server, SampleServer() as site:
        client = server.ready().with_token(TOKEN)
        server_url = f"http://127.0.0.1:{client.port}"
        worker_token = client.post("/v1/tokens", {"name": "browser", "scope": "worker"}).json["token"]
        pages = [f"{site.url}birds/", f"{site.url}birds/puffin"]
        inside = [*pages, site.url.replace("127.0.0.1", "localhost"), site.url.replace("127.0.0.1", "2130706433")]
        refused = client.post("/v1/jobs", {"kind": "extension", "urls": inside}).json["id"]
        with extension_worker(playwright, chromium, tmp_path / "profile") as worker:
            wanted = {"server": server_url, "token": worker_token, "enabled": True}
            worker.evaluate(f"chrome.storage.local.set({json.dumps(wanted)})")
            client.wait_for(refused, "completed", "failed")
            assert not site.requests, "private addresses are refused unless the options allow them"
            worker.evaluate("chrome.storage.local.set({allowPrivate: true})")
            id = client.post("/v1/jobs", {"kind": "extension", "urls": pages}).json["id"]
            job = client.wait_for(id, "completed", "failed")
        assert job["status"] == "completed", job
        assert job["progress"]["done"] == 2
        first = client.get(f"/v1/jobs/{id}/results").json["items"][0]
        blocked = client.get(f"/v1/jobs/{refused}/results").json["items"]
        assert [each["metadata"]["error"] for each in blocked] == ["address_blocked"] * 4
        assert "Birds" in first["data"]["title"]
        assert "# Birds" in first["data"]["markdown"]
        assert f"{site.url}birds/puffin" in first["data"]["links"]
        assert first["metadata"]["fetched_by"] == "extension"


def leading_inside(target: str, origin: str) -> SampleAnswer:
    """Pages under a public name that lead to a private address: at once, later, and with a part of themselves."""
    inside = f"http://127.0.0.1:{origin.rpartition(':')[2]}/secret"
    later = f"onload = () => setTimeout(() => {{ location = '{inside}' }}, 100)"
    bodies = {
        "/secret": "SECRET",
        "/later": f"public <script>{later}</script>",
        "/part": f"public <iframe src='{inside}'></iframe><img src='{inside}'>",
    }
    if target == "/redirect":
        return SampleAnswer(302, "text/html", b"", inside)
    return SampleAnswer(200, "text/html; charset=utf-8", bodies.get(target, "").encode())


def test_no_page_leads_the_browser_to_a_private_address(playwright: Playwright, chromium: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'silkline.db'}"
    served = Served(url, tmp_path / "data", slots=0, api_token=TOKEN)
    with closing(served) as server, SampleServer(respond=leading_inside) as site:
        client = server.ready().with_token(TOKEN)
        worker_token = client.post("/v1/tokens", {"name": "browser", "scope": "worker"}).json["token"]
        public = site.url.replace("127.0.0.1", PUBLIC)
        wanted = {"server": f"http://127.0.0.1:{client.port}", "token": worker_token, "enabled": True}
        resolve = f"--host-resolver-rules=MAP {PUBLIC} 127.0.0.1"
        with extension_worker(playwright, chromium, tmp_path / "profile", resolve) as worker:
            worker.evaluate(f"chrome.storage.local.set({json.dumps(wanted)})")
            asked = [f"{public}{path}" for path in ("redirect", "later", "part")]
            id = client.post("/v1/jobs", {"kind": "extension", "urls": asked}).json["id"]
            client.wait_for(id, "completed", "failed")
            assert "/secret" not in site.requests
            # Without the rules of the browser the page is still not delivered: its address is read with its content.
            worker.evaluate("void (rulesFor = () => [])")
            again = client.post("/v1/jobs", {"kind": "extension", "urls": asked[:2]}).json["id"]
            client.wait_for(again, "completed", "failed")
            assert "/secret" in site.requests
        found = client.get(f"/v1/jobs/{id}/results").json["items"]
        assert [each["metadata"]["error"] for each in found] == ["address_blocked", "address_blocked", None]
        assert found[2]["data"]["text"] == "public"
        found = client.get(f"/v1/jobs/{again}/results").json["items"]
        assert [each["metadata"]["error"] for each in found] == ["address_blocked"] * 2
        assert "SECRET" not in json.dumps(found)


def hostile(target: str, origin: str) -> SampleAnswer:
    """Pages that never end, and pages that are too large to be delivered."""
    link = "const each = document.createElement('a'); each.href = `https://e.example/${number}?${'a'.repeat(LENGTH)}`"
    links = f"for (let number = 0; number < 2000; number++) {{ {link}; document.body.append(each) }}"
    scripts = {
        "/spin": "onload = () => setTimeout(() => { for (;;); }, 150)",
        "/dialog": "onbeforeunload = () => 1; onload = () => setTimeout(() => { for (;;) alert(1) }, 150)",
        "/address": "history.replaceState(null, '', '/address?' + 'a'.repeat(9000))",
        "/title": "document.title = 't'.repeat(17000000)",
        "/links": links.replace("LENGTH", "8000"),
        "/long-links": links.replace("LENGTH", "9000"),
    }
    return SampleAnswer(200, "text/html", f"<body>public<script>{scripts.get(target, '')}</script>".encode())


def test_no_page_holds_or_ends_a_job(playwright: Playwright, chromium: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'silkline.db'}"
    served = Served(url, tmp_path / "data", slots=0, api_token=TOKEN, heartbeat_interval=1.0)
    with closing(served) as server, SampleServer(respond=hostile) as site:
        client = server.ready().with_token(TOKEN)
        worker_token = client.post("/v1/tokens", {"name": "browser", "scope": "worker"}).json["token"]
        public = site.url.replace("127.0.0.1", PUBLIC)
        wanted = {"server": f"http://127.0.0.1:{client.port}", "token": worker_token, "enabled": True}

        def add(*names: str) -> str:
            asked = {"kind": "extension", "urls": [public + name for name in names], "max_retries": 0}
            id: str = client.post("/v1/jobs", asked).json["id"]
            worker.evaluate("void look()")
            return id

        def found(id: str) -> dict[str, dict[str, Any]]:
            items, cursor = [], ""
            while cursor is not None:
                answer = client.get(f"/v1/jobs/{id}/results?{cursor and 'cursor='}{cursor}").json
                items, cursor = [*items, *answer["items"]], answer["next_cursor"]
            return {each["original_url"].removeprefix(public): each for each in items}

        resolve = f"--host-resolver-rules=MAP {PUBLIC} 127.0.0.1"
        with extension_worker(playwright, chromium, tmp_path / "profile", resolve) as worker:
            worker.evaluate(f"chrome.storage.local.set({json.dumps(wanted)})")
            large = add("address", "title", "links", "long-links", "good")
            assert client.wait_for(large, "completed", "failed")["status"] == "completed"
            worker.evaluate("void (LIMITS.page = 4000, LIMITS.close = 2000)")
            endless = add("spin", "dialog", "good")
            assert client.wait_for(endless, "completed", "failed")["status"] == "completed"
            # Only the wish of the user ends this page.
            worker.evaluate("void (LIMITS.page = 3600000)")
            held = add("spin?again", "spin", "good")
            eventually("the page is open", lambda: [*site.requests].count("/spin") == 2)
            client.post(f"/v1/jobs/{held}/cancel")
            client.wait_for(held, "cancelled")
            eventually("the extension is free", lambda: worker.evaluate("!busy"))
            tabs = worker.evaluate("chrome.tabs.query({}).then((tabs) => tabs.map((tab) => tab.url))")
            assert not [each for each in tabs if PUBLIC in each], tabs
            worker.evaluate("readPage = () => ({ url: location.href, title: 7 })")
            refused = add("good", "good?2")
            assert client.wait_for(refused, "completed", "failed")["status"] == "completed"
        pages = found(large)
        errors = {name: each["metadata"]["error"] for name, each in pages.items()}
        expected = {"address": "bad_redirect", "title": None, "links": None, "long-links": None, "good": None}
        assert errors == expected
        assert len(pages["title"]["data"]["title"]) == 10_000
        assert 0 < len(pages["links"]["data"]["links"]) < 200
        assert pages["long-links"]["data"]["links"] == []
        errors = {name: each["metadata"]["error"] for name, each in found(endless).items()}
        assert errors == {"spin": "timeout", "dialog": "timeout", "good": None}
        assert list(found(held)) == ["spin?again"]
        assert [each["metadata"]["error"] for each in found(refused).values()] == ["not_deliverable"] * 2


def addresses() -> Iterator[IPv4Address | IPv6Address]:
    """The first and the last address of each network of the guard, and their neighbours."""
    for network in (*REFUSED_V4, PUBLIC_V6, *REFUSED_V6):
        for end in (network.network_address, network.broadcast_address):
            for number in range(int(end) - 1, int(end) + 2):
                if 0 <= number < 2**end.max_prefixlen:
                    yield type(end)(number)
    others = (
        "::",
        "::1",
        "fe80::1",
        "fd00:ec2::254",
        "fc00::1",
        "ff02::1",
        "64:ff9b::a00:1",
        "64:ff9b:1::a00:1",
        "::7f00:1",
    )
    more = (
        "::ffff:127.0.0.1",
        "::ffff:0:a00:1",
        "2002:7f00:1::",
        "2001:0:1::",
        "2a00::5efe:a00:1",
        "2a00::200:5efe:a00:1",
    )
    yield from map(ip_address, (*others, *more, "2606:4700::1111", "2a00:1450::1", "8.8.8.8", "1.1.1.1"))


def test_the_extension_refuses_the_addresses_that_the_guard_refuses(
    playwright: Playwright, chromium: Path, tmp_path: Path
) -> None:
    known, guard = list(dict.fromkeys(addresses())), Guard()
    hosts = [f"[{each}]" if isinstance(each, IPv6Address) else str(each) for each in known]
    with extension_worker(playwright, chromium, tmp_path / "profile") as worker:
        forms = [f"http://{host}/" for host in hosts], [f"https://u:p@{host}:8443/x?y" for host in hosts]
        for urls in forms:
            refused = worker.evaluate(f"{json.dumps(urls)}.map(isPrivate)")
            expected = [guard.check(str(each), 80) is not None for each in known]
            assert dict(zip(urls, refused, strict=True)) == dict(zip(urls, expected, strict=True))
        names = [*METADATA_NAMES, "localhost", "localhost.", "a.localhost"]
        assert all(worker.evaluate(f"{json.dumps([f'http://{name}/' for name in names])}.map(isPrivate)"))
        honest = ["10.0.0.1.example.com", "localhost.example.com", "mylocalhost", "metadata.example.com", "127.example"]
        assert not any(worker.evaluate(f"{json.dumps([f'http://{name}/' for name in honest])}.map(isPrivate)"))
        supported = "Promise.all(PRIVATE_URLS.map((regex) => chrome.declarativeNetRequest.isRegexSupported({regex})))"
        assert all(each["isSupported"] for each in worker.evaluate(supported))

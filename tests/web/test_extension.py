"""The browser extension in a real Chromium: it claims a job, opens the page, and posts what a person would see."""

import json
from contextlib import closing
from pathlib import Path

from playwright.sync_api import Playwright

from silkline.sample.server import SampleServer
from tests.support.served import Served
from tests.support.supervisors import eventually
from tests.web.conftest import FLAGS, PATIENCE

EXTENSION = Path(__file__).resolve().parents[2] / "extension"
TOKEN = "a-token-for-the-extension"


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
        context = playwright.chromium.launch_persistent_context(
            tmp_path / "profile",
            executable_path=chromium,
            args=[
                *FLAGS,
                f"--disable-extensions-except={EXTENSION}",
                f"--load-extension={EXTENSION}",
                "--headless=new",
            ],
            headless=False,
            timeout=PATIENCE,
        )
        try:
            worker = (
                context.service_workers[0]
                if context.service_workers
                else context.wait_for_event("serviceworker", timeout=PATIENCE)
            )
            # Its target is there before its script has run: only then is it told when the settings change.
            ready = "Boolean(globalThis.chrome?.storage?.local) && typeof look === 'function'"
            eventually("the extension is ready", lambda: worker.evaluate(ready))
            wanted = {"server": server_url, "token": worker_token, "enabled": True}
            worker.evaluate(f"chrome.storage.local.set({json.dumps(wanted)})")
            client.wait_for(refused, "completed", "failed")
            assert not site.requests, "private addresses are refused unless the options allow them"
            worker.evaluate("chrome.storage.local.set({allowPrivate: true})")
            id = client.post("/v1/jobs", {"kind": "extension", "urls": pages}).json["id"]
            job = client.wait_for(id, "completed", "failed")
        finally:
            context.close()
        assert job["status"] == "completed", job
        assert job["progress"]["done"] == 2
        first = client.get(f"/v1/jobs/{id}/results").json["items"][0]
        blocked = client.get(f"/v1/jobs/{refused}/results").json["items"]
        assert [each["metadata"]["error"] for each in blocked] == ["address_blocked"] * 4
        assert "Birds" in first["data"]["title"]
        assert "# Birds" in first["data"]["markdown"]
        assert f"{site.url}birds/puffin" in first["data"]["links"]
        assert first["metadata"]["fetched_by"] == "extension"

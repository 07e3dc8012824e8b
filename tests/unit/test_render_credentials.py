"""Which requests of a page get the headers of the job. tests/crawl/test_render_isolation.py asks a real browser."""

from typing import Any

import pytest

from silkline.fetch.render_credentials import Credentials

OWN, OTHER = "https://own.test", "https://other.test"
JOB = {OWN: (("Authorization", "Bearer x"), ("Cookie", "job=9"))}


@pytest.fixture
def rules() -> Credentials:
    """A page with an own frame, and a frame of another site that has a frame of ours."""
    made = Credentials(f"{OWN}/page", JOB)
    made.frame = "main"
    for frame, parent in (("inside", "main"), ("partner", "main"), ("nested", "partner")):
        made.heard("Page.frameAttached", {"frameId": frame, "parentFrameId": parent})
    for frame, origin in (("main", OWN), ("inside", OWN), ("partner", OTHER), ("nested", OWN)):
        made.heard("Page.frameNavigated", {"frame": {"id": frame, "securityOrigin": origin}})
    return made


def paused(
    frame: str | None = "main", url: str = f"{OWN}/api", method: str = "GET", kind: str = "XHR", **more: Any
) -> dict[str, Any]:
    headers = more.pop("headers", {})
    request = {"url": url, "method": method, "headers": headers}
    return {"requestId": "1", "request": request, "resourceType": kind, "frameId": frame or "", **more}


@pytest.mark.parametrize("frame", ["main", "inside"])
def test_the_page_and_its_own_frames_have_the_headers(rules: Credentials, frame: str) -> None:
    given = {"Referer": f"{OWN}/page", "Cookie": "a=1", "X-Mine": "1", "Origin": OWN}
    added = rules.added(paused(frame, headers=given))
    assert {each["name"]: each["value"] for each in added or ()} == {
        "authorization": "Bearer x",
        "cookie": "job=9; a=1",
        "x-mine": "1",
        "origin": OWN,
    }


@pytest.mark.parametrize(
    "request_of",
    [
        paused("partner"),
        paused("nested"),
        paused("partner", method="POST", kind="Document"),
        paused("nobody"),
        paused(None),
        paused(url=f"{OTHER}/api"),
        paused(url="http://own.test/api"),
        paused(method="OPTIONS"),
        paused(headers={"Origin": "null"}),
        paused(headers={"origin": OTHER}),
    ],
)
def test_all_others_have_none(rules: Credentials, request_of: dict[str, Any]) -> None:
    assert rules.added(request_of) is None


@pytest.mark.parametrize("link", ["networkId", "redirectedRequestId"])
def test_a_request_that_another_site_sends_back_has_none(rules: Credentials, link: str) -> None:
    assert rules.added(paused(url=f"{OTHER}/away", **{link: "1"})) is None
    assert rules.added(paused(**{link: "1"})) is None
    assert rules.added(paused(**{link: "2"})) is not None


def test_a_frame_that_asks_for_another_site_is_not_trusted_from_then_on(rules: Credentials) -> None:
    """Its scripts may run before the browser tells that its document has changed."""
    assert rules.added(paused("inside", f"{OTHER}/", kind="Document")) is None
    assert rules.added(paused("inside", requestId="2")) is None
    rules.heard("Page.frameNavigated", {"frame": {"id": "inside", "securityOrigin": OWN}})
    assert rules.added(paused("inside", requestId="3")) is None


def test_a_page_of_another_site_has_none() -> None:
    rules = Credentials(f"{OTHER}/page", JOB)
    rules.frame = "main"
    assert rules.added(paused()) is None


def test_endless_frames_are_not_all_remembered(rules: Credentials) -> None:
    for number in range(5000):
        rules.heard("Page.frameAttached", {"frameId": f"f{number}", "parentFrameId": "main"})
    assert len(rules._parents) <= 1000
    assert rules.added(paused("f4999")) is None
    for number in range(5000):
        rules.heard("Page.frameDetached", {"frameId": f"f{number}", "reason": "remove"})
    assert len(rules._parents) == 3

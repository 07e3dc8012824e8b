"""Bluesky, answered by a server of our own in the documented shapes."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from silkline.errors import Permanent
from silkline.kinds import json_api, posts
from silkline.kinds.bluesky import WITHOUT_NEW, subject
from silkline.model.fetched import Fetched
from silkline.model.job import Status, Verb
from silkline.model.spec import BlueskySpec
from silkline.sample.server import SampleServer
from silkline.sample.site import SampleAnswer
from silkline.store import jobs, urls
from tests.support.inline import Inline

DID = "did:plc:tern"
AUTHOR = {"did": DID, "handle": "keeper.example", "displayName": "The Keeper"}


def post(number: int, text: str = "", **more: Any) -> dict[str, Any]:
    record = {"text": text or f"Post {number}", "createdAt": "2026-11-03T10:00:00Z", "langs": ["en"]}
    record |= more.pop("record", {})
    uri = f"at://{DID}/app.bsky.feed.post/p{number}"
    return {"uri": uri, "author": AUTHOR, "record": record, "likeCount": number, "replyCount": 0, **more}


class Sky:
    """Answers as XRPC does. `fail` gives the next answers before it comes to itself."""

    def __init__(self) -> None:
        self.fail: list[SampleAnswer] = []
        self.posts = [post(number) for number in range(250)]
        self.thread: dict[str, Any] = {}
        self.server = SampleServer(respond=self._respond)

    def _respond(self, target: str, origin: str) -> SampleAnswer:
        if self.fail:
            return self.fail.pop(0)
        parts = urlsplit(target)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        return self._answer(parts.path.removeprefix("/xrpc/"), asked)

    def _answer(self, method: str, asked: dict[str, str]) -> SampleAnswer:
        start = int(asked.get("cursor", 0))
        some = self.posts[start : start + int(asked.get("limit", 50))]
        after = {"cursor": str(start + len(some))} if start + len(some) < len(self.posts) else {}
        match method:
            case "app.bsky.actor.getProfile" if asked["actor"] in (DID, "keeper.example"):
                return say({**AUTHOR, "description": "I keep the light.", "followersCount": 7, "postsCount": 250})
            case "app.bsky.actor.getProfile":
                return refuse(400, "InvalidRequest", "Profile not found")
            case "app.bsky.feed.getAuthorFeed":
                repost = {"post": post(999), "reason": {"$type": "app.bsky.feed.defs#reasonRepost"}}
                return say({"feed": [repost, *({"post": each} for each in some)], **after})
            case "app.bsky.feed.searchPosts":
                return say({"posts": some, **after})
            case "app.bsky.feed.getPostThread":
                return say({"thread": self.thread}) if self.thread else refuse(400, "NotFound", "Post not found")
        return refuse(501, "MethodNotImplemented", method)


def say(value: Any, status: int = 200) -> SampleAnswer:
    return SampleAnswer(status, "application/json", json.dumps(value).encode())


def refuse(status: int, error: str, message: str = "") -> SampleAnswer:
    return say({"error": error, "message": message}, status)


@pytest.fixture
def sky(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sky]:
    monkeypatch.setattr(json_api.Endpoint.__init__, "__kwdefaults__", {"contact": "", "wait": 0.01})
    monkeypatch.setattr(json_api, "PACE", 0.0)
    sky = Sky()
    with sky.server:
        yield sky


@pytest.fixture
def inline(tmp_path: Path, sky: Sky) -> Iterator[Inline]:
    inline = Inline(tmp_path)
    inline.change_settings(bluesky_url=sky.server.url)
    yield inline
    inline.close()


def test_a_profile_and_all_its_posts(sky: Sky, inline: Inline) -> None:
    profile, *found = inline.run("bluesky", actor="@keeper.example", limit=1000)
    assert inline.job.status == "completed", inline.job
    assert profile.final_url == "https://bsky.app/profile/keeper.example"
    assert profile.data["markdown"] == "# The Keeper\n\nI keep the light."
    assert [each.data["text"] for each in found] == [f"Post {number}" for number in range(250)], "reposts are left out"
    assert found[0].final_url == "https://bsky.app/profile/keeper.example/post/p0"
    counts = urls.counts(inline.database, inline.job.id)
    assert (counts.discovered, counts.done, counts.queued) == (251, 251, 0)


def test_a_limit_and_a_url(sky: Sky, inline: Inline) -> None:
    found = inline.run("bluesky", url="https://bsky.app/profile/keeper.example", limit=120)
    assert len(found) == 121
    assert len([path for path in sky.server.requests if "getAuthorFeed" in path]) == 2


def test_a_search(sky: Sky, inline: Inline) -> None:
    found = inline.run("bluesky", search="lighthouse & fog", limit=10)
    assert len(found) == 10
    assert "q=lighthouse%20%26%20fog" in sky.server.requests[0]
    assert len(inline.run("bluesky", url="https://bsky.app/search?q=fog", limit=3)) == 3


@pytest.mark.parametrize(
    ("next_of", "most"), [(lambda cursor: str(1 - cursor), 3), (lambda cursor: str(cursor + 1), WITHOUT_NEW + 2)]
)
def test_a_list_without_new_posts_ends(
    sky: Sky, inline: Inline, next_of: Callable[[int], str], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server goes round in a circle, or invents cursors without end; each page has the same post."""

    def answer(method: str, asked: dict[str, str]) -> SampleAnswer:
        return say({"posts": [post(1)], "cursor": next_of(int(asked.get("cursor", 0)))})

    monkeypatch.setattr(sky, "_answer", answer)
    found = inline.run("bluesky", search="fog", limit=100)
    assert inline.job.status == "completed", inline.job
    assert [each.data["text"] for each in found] == ["Post 1"]
    assert len(sky.server.requests) <= most


def test_an_account_that_repeated_many_posts_is_read_to_its_end(
    sky: Sky, inline: Inline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages of posts that are only repeated bring nothing new; posts come after them."""
    repeated = {"post": post(999), "reason": {"$type": "app.bsky.feed.defs#reasonRepost"}}
    pages = [[repeated]] * (WITHOUT_NEW - 1) + [[{"post": post(1)}]] + [[repeated]] * 9 + [[{"post": post(2)}]]
    answered = sky._answer

    def answer(method: str, asked: dict[str, str]) -> SampleAnswer:
        if method != "app.bsky.feed.getAuthorFeed":
            return answered(method, asked)
        place = int(asked.get("cursor", 0))
        after = {"cursor": str(place + 1)} if place + 1 < len(pages) else {}
        return say({"feed": pages[place], **after})

    monkeypatch.setattr(sky, "_answer", answer)
    found = inline.run("bluesky", actor="keeper.example", limit=100)
    assert [each.data["text"] for each in found[1:]] == ["Post 1", "Post 2"]


def test_requests_have_a_pace(sky: Sky, inline: Inline, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def sleep(endpoint: json_api.Endpoint, seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(json_api, "PACE", 1_000.0)
    monkeypatch.setattr(json_api.Endpoint, "_sleep", sleep)
    inline.run("bluesky", actor="keeper.example", limit=150)
    assert len(waits) == 3
    assert [0 < seconds <= 1_000 for seconds in waits] == [False, True, True], "the first request need not wait"


def test_a_thread_with_posts_that_are_gone(sky: Sky, inline: Inline) -> None:
    gone = {"$type": "app.bsky.feed.defs#notFoundPost", "uri": f"at://{DID}/app.bsky.feed.post/x1", "notFound": True}
    hidden = {"uri": f"at://{DID}/app.bsky.feed.post/x2", "blocked": True, "author": {"did": DID}}
    reply = {
        "post": post(3, record={"reply": {"parent": {"uri": "at://a/b/p2"}}}),
        "replies": [{"post": post(4)}, gone],
    }
    sky.thread = {"post": post(2), "parent": {"post": post(1)}, "replies": [reply, hidden, {"post": post(5)}]}
    found = inline.run("bluesky", url="https://bsky.app/profile/keeper.example/post/p2")
    assert [each.data["text"] for each in found] == [f"Post {number}" for number in (1, 2, 3, 4, 5)]
    assert found[2].data["reply_to"] == "at://a/b/p2"
    missing = {url.reason: url.url for url in inline.ledger() if url.state == "failed"}
    assert missing == {
        "removed": f"https://bsky.app/profile/{DID}/post/x1",
        "blocked": f"https://bsky.app/profile/{DID}/post/x2",
    }


@pytest.mark.parametrize(
    ("payload", "failure", "words"),
    [
        ({"actor": "nobody.example"}, None, ("nobody.example: there is no such account", "handle")),
        ({"actor": "x"}, refuse(400, "AccountTakedown"), ("taken down",)),
        ({"actor": "x"}, refuse(400, "BlockedByActor"), ("has blocked", "bluesky_url")),
        ({"search": "x"}, refuse(403, "Forbidden"), ("needs a login", "bluesky_url")),
        ({"url": "https://bsky.app/profile/keeper.example/post/p2"}, None, ("the post was removed",)),
        ({"url": "https://bsky.app/about"}, None, ("is no profile, post or search",)),
        ({"actor": "x"}, SampleAnswer(200, "text/html", b"<h1>maintenance</h1>"), ("not JSON",)),
        ({"actor": "x"}, say([1]), ("in another form",)),
        ({"search": "x"}, say({"posts": "x"}), ("in another form", "$.posts")),
        ({"search": "x"}, say({"posts": [post(1)], "cursor": {"a": 1}}), ("in another form", "$.cursor")),
        ({"url": "https://bsky.app/profile/keeper.example/post/p2"}, say({"handle": "x"}), ("in another form", "did")),
        ({"url": f"https://bsky.app/profile/{DID}/post/p2"}, say({"thread": "post"}), ("in another form",)),
        ({"search": "x"}, SampleAnswer(200, "application/json", b"[" * 50_000), ("not JSON",)),
    ],
)
def test_what_cannot_be_had(
    sky: Sky, inline: Inline, payload: dict, failure: SampleAnswer | None, words: tuple
) -> None:
    sky.fail = [failure] if failure else []
    assert inline.run("bluesky", **payload) == []
    inline.assert_failed(*words)


def deep(levels: int, value: Any) -> Any:
    for _ in range(levels):
        value = [value]
    return value


NAMED = "https://bsky.app/profile/keeper.example/post/p99"


@pytest.mark.parametrize(
    ("item", "url"),
    [
        pytest.param(post(99, embed="x"), NAMED, id="embed"),
        pytest.param(post(99, embed={"images": ["x"]}), NAMED, id="images"),
        pytest.param(post(99) | {"record": "x"}, NAMED, id="record"),
        pytest.param(post(99, record={"facets": ["x"]}), NAMED, id="facets"),
        pytest.param(post(99, record={"reply": "x"}), NAMED, id="reply"),
        pytest.param(post(99, record={"langs": deep(500, "\x00")}), NAMED, id="deep"),
        pytest.param(post(99, likeCount=10**100), NAMED, id="a huge number"),
        pytest.param(post(99, author="x"), None, id="author"),
        pytest.param(post(99, uri="at://x/" + "a" * 100_000), None, id="a long name"),
        pytest.param("x", None, id="text"),
        pytest.param(None, None, id="null"),
        pytest.param({"post": None}, None, id="no post"),
    ],
)
def test_an_item_that_cannot_be_read_fails_alone(
    sky: Sky, inline: Inline, caplog: pytest.LogCaptureFixture, item: Any, url: str | None
) -> None:
    """One of them ended every attempt, and none of the other posts was stored."""
    sky.posts = [post(1), item, post(2)]
    found = inline.run("bluesky", search="x", limit=10)
    assert inline.job.status == "completed", inline.job
    assert [each.data["text"] for each in found] == ["Post 1", "Post 2"]
    (failed,) = (row for row in inline.ledger() if row.state == "failed")
    assert (failed.reason, failed.id) == ("bad_response", 2)
    assert failed.url == (url or "https://bsky.app/?unreadable=2")
    assert failed.detail
    assert failed.url in caplog.text


def test_a_profile_that_cannot_be_read_does_not_hide_its_posts(sky: Sky, inline: Inline) -> None:
    sky.posts = [post(1)]
    sky.fail = [say({"handle": ["x"]})]
    (found,) = inline.run("bluesky", actor="keeper.example")
    assert found.data["text"] == "Post 1"
    assert urls.reasons(inline.database, inline.job.id) == [("failed", "bad_response", 1)]


def test_a_thread_with_an_odd_reply_is_read(sky: Sky, inline: Inline) -> None:
    sky.thread = {"post": post(1), "replies": [{"post": "x"}, {"post": post(2), "replies": 7}, {"uri": ["x"]}]}
    found = inline.run("bluesky", url="https://bsky.app/profile/keeper.example/post/p1")
    assert [each.data["text"] for each in found] == ["Post 1", "Post 2"]
    assert inline.job.status == "completed", inline.job


def test_items_that_cannot_be_read_count_towards_the_limit(sky: Sky, inline: Inline) -> None:
    """A service that only sends these would never come to an end."""
    sky.posts = ["x"] * 250
    assert inline.run("bluesky", search="x", limit=120) == []
    assert urls.counts(inline.database, inline.job.id).failed == 120


@pytest.mark.parametrize(
    ("written", "text"),
    [
        pytest.param(b'"\\ud800!"', "?!", id="half a pair"),
        pytest.param(b'"\xff!"', "\ufffd!", id="no UTF-8"),
        pytest.param(b'"!", "a": ' + b"1" * 5_000, "!", id="digits"),
        pytest.param(b'"!", "a": 1e999', "!", id="a large number"),
    ],
)
def test_one_value_that_is_not_valid_costs_only_itself(sky: Sky, inline: Inline, written: bytes, text: str) -> None:
    body = json.dumps({"posts": [post(1), post(2)]}).encode().replace(b'"Post 1"', written)
    sky.fail = [SampleAnswer(200, "application/json", body)]
    found = inline.run("bluesky", search="x")
    assert [each.data["text"] for each in found] == [text, "Post 2"]


@pytest.mark.parametrize("reset", ["\u00b2", "\u0661", "1" * 5_000, "x"])
def test_an_odd_rate_limit_is_no_number_of_seconds(reset: str) -> None:
    limited = Fetched("https://x.example/", 429, headers={"ratelimit-reset": reset})
    seconds = json_api._patience(limited, 1e9)
    assert seconds is None or (reset.isascii() and seconds > 0)


def test_what_may_pass_is_waited_out(sky: Sky, inline: Inline) -> None:
    sky.fail = [refuse(502, "UpstreamFailure"), refuse(429, "RateLimitExceeded"), refuse(503, "x")]
    assert len(inline.run("bluesky", search="x", limit=5)) == 5


def test_a_long_rate_limit_is_for_another_time(sky: Sky, inline: Inline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_api, "_patience", lambda fetched, now: 3600.0)
    sky.fail = [refuse(429, "RateLimitExceeded")]
    inline.run("bluesky", search="x")
    inline.assert_failed("limits how often it may be asked", "3600 s")
    assert len(sky.server.requests) == 1


def test_a_job_goes_on_at_its_cursor(sky: Sky, inline: Inline) -> None:
    sky.fail = []
    respond = sky._answer

    def stop_after_two(method: str, asked: dict[str, str]) -> SampleAnswer:
        if asked.get("cursor") == "200":
            return SampleAnswer(200, "application/json", b"not json")
        return respond(method, asked)

    sky._answer = stop_after_two  # type: ignore[method-assign]
    assert len(inline.run("bluesky", search="x", limit=1000)) == 200
    assert inline.job.status is Status.FAILED
    sky._answer = respond  # type: ignore[method-assign]
    sky.server.requests.clear()
    jobs.wish(inline.database, inline.job.id, Verb.RETRY)
    found = inline.go_on()
    assert [each.data["text"] for each in found] == [f"Post {number}" for number in range(250)]
    assert len(sky.server.requests) == 1


def test_links_in_a_post_count_in_bytes() -> None:
    text = "Grüße von @keeper: siehe example.com #fog"

    def span(part: str) -> dict[str, int]:
        start = text.encode().index(part.encode())
        return {"byteStart": start, "byteEnd": start + len(part.encode())}

    facets = [
        {"index": span("example.com"), "features": [{"uri": "https://example.com/x"}]},
        {"index": span("@keeper"), "features": [{"did": DID}]},
        {"index": span("#fog"), "features": [{"tag": "fog"}]},
        {"index": {"byteStart": 900, "byteEnd": 950}, "features": [{"uri": "https://far.example/"}]},
        {"index": span("siehe"), "features": [{"uri": "javascript:alert(1)"}]},
    ]
    assert posts.linked(text, facets) == (
        f"Grüße von [@keeper](https://bsky.app/profile/{DID}): siehe [example.com](https://example.com/x) "
        "[#fog](https://bsky.app/hashtag/fog)"
    )


def test_a_thread_of_any_length_is_read() -> None:
    node: dict[str, Any] = {"post": post(0)}
    for number in range(1, 5000):
        node = {"post": post(number), "replies": [node]}
    assert sum(1 for _ in posts.thread(node)) == 5000


def test_images_cards_and_quotes() -> None:
    embed = {
        "media": {"images": [{"fullsize": "https://x/1.jpg", "alt": "A lamp"}]},
        "record": {"record": {"uri": "at://q"}},
    }
    assert posts.embedded(embed) == {"images": [{"url": "https://x/1.jpg", "alt": "A lamp"}], "quoted": "at://q"}
    assert posts.embedded({"external": {"uri": "https://e", "title": "T", "thumb": "x"}}) == {
        "external": {"uri": "https://e", "title": "T", "description": None}
    }


def test_subjects() -> None:
    assert subject(BlueskySpec(url=f"https://bsky.app/profile/{DID}/post/abc")) == (DID, "abc", None)
    assert subject(BlueskySpec(actor="@a.example")) == ("a.example", None, None)
    with pytest.raises(Permanent):
        subject(BlueskySpec(url="https://example.com/"))


def test_a_host_that_is_unknown_is_not_a_refusal(sky: Sky, inline: Inline) -> None:
    inline.change_settings(bluesky_url="http://nowhere.invalid")
    inline.run("bluesky", search="puffins")
    assert inline.job.error_message == "Bluesky cannot be reached: there is no such host"


def test_a_server_that_is_down_is_not_a_refusal(sky: Sky, inline: Inline) -> None:
    sky.server.close()
    inline.run("bluesky", search="puffins")
    inline.assert_failed("Bluesky cannot be reached: the connection failed")

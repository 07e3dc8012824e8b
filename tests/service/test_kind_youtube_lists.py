"""Playlists and channels through the real yt-dlp, answered by a server of our own in the shapes that YouTube has."""

import gc
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from silkline.errors import Permanent
from silkline.kinds import captions
from silkline.kinds.captions import WITHOUT_NEW, videos_of
from silkline.sample.server import SampleServer
from silkline.sample.site import SampleAnswer

YOUTUBE = "https://www.youtube.com"
PLAYLIST = f"{YOUTUBE}/playlist?list=PLlights"
CLIENT = {"INNERTUBE_API_KEY": "key-1", "INNERTUBE_CONTEXT": {"client": {"clientName": "WEB", "clientVersion": "2.1"}}}
MORE = {
    "continuationEndpoint": {"continuationCommand": {"token": "more", "request": "CONTINUATION_REQUEST_TYPE_BROWSE"}}
}


def listed(name: str) -> dict[str, Any]:
    return {"playlistVideoRenderer": {"videoId": name, "title": {"runs": [{"text": f"Film {name}"}]}}}


def page(data: dict[str, Any]) -> SampleAnswer:
    body = f"<script>ytcfg.set({json.dumps(CLIENT)});</script><script>var ytInitialData = {json.dumps(data)};</script>"
    return SampleAnswer(200, "text/html; charset=utf-8", body.encode())


def tab(content: dict[str, Any], **more: Any) -> dict[str, Any]:
    tabs = [{"tabRenderer": {"selected": True, "content": content, **more}}]
    return {"twoColumnBrowseResultsRenderer": {"tabs": tabs}}


def playlist() -> SampleAnswer:
    videos = [listed("lightlight1"), listed("lightlight2"), {"continuationItemRenderer": MORE}]
    section = {"itemSectionRenderer": {"contents": [{"playlistVideoListRenderer": {"contents": videos}}]}}
    title = {"playlistMetadataRenderer": {"title": "Lights"}}
    return page({"metadata": title, "contents": tab({"sectionListRenderer": {"contents": [section]}})})


def channel() -> SampleAnswer:
    video = {"videoId": "lightlight3", "title": {"runs": [{"text": "Film"}]}}
    grid = {"richGridRenderer": {"contents": [{"richItemRenderer": {"content": {"videoRenderer": video}}}]}}
    endpoint = {"commandMetadata": {"webCommandMetadata": {"url": "/@ternrock/videos"}}}
    title = {"channelMetadataRenderer": {"title": "Tern Rock", "externalId": "UCabcdefghijklmnopqrstuv"}}
    return page({"metadata": title, "contents": tab(grid, title="Videos", endpoint=endpoint)})


def respond(target: str, origin: str) -> SampleAnswer:
    if target.startswith("/playlist?list=PLgone"):
        said = {"type": "ERROR", "text": {"runs": [{"text": "The playlist does not exist."}]}}
        return page({"alerts": [{"alertRenderer": said}]})
    if target.startswith("/playlist"):
        return playlist()
    if target.startswith("/youtubei/v1/browse"):
        added = [{"appendContinuationItemsAction": {"continuationItems": [listed("lightlight4")]}}]
        return SampleAnswer(200, "application/json", json.dumps({"onResponseReceivedActions": added}).encode())
    return channel() if target.startswith("/@ternrock") else SampleAnswer(404, "text/plain", b"")


@pytest.fixture(autouse=True)
def no_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captions, "PACE", 0.0)


@pytest.fixture
def base() -> Iterator[str]:
    with SampleServer(respond=respond) as server:
        yield server.url


def test_a_playlist_of_several_pages(base: str) -> None:
    assert videos_of(PLAYLIST, None, base) == ["lightlight1", "lightlight2", "lightlight4"]
    assert videos_of(PLAYLIST, 1, base) == ["lightlight1"]


def endless(new: bool) -> Callable[[str, str], SampleAnswer]:
    """A playlist in which each part names another one. Its parts have new videos, until there are many, or never."""
    asked = 0

    def answer(target: str, origin: str) -> SampleAnswer:
        nonlocal asked
        if not target.startswith("/youtubei/v1/browse"):
            return respond(target, origin)
        asked += 1
        more = {"continuationCommand": {"token": f"more{asked}", "request": "CONTINUATION_REQUEST_TYPE_BROWSE"}}
        items = [listed(f"light{asked:06}" if new else "lightlight1")]
        if not new or asked < 2 * WITHOUT_NEW:
            items.append({"continuationItemRenderer": {"continuationEndpoint": more}})
        added = [{"appendContinuationItemsAction": {"continuationItems": items}}]
        return SampleAnswer(200, "application/json", json.dumps({"onResponseReceivedActions": added}).encode())

    return answer


def test_a_list_without_end_is_given_up_when_nothing_new_comes() -> None:
    with SampleServer(respond=endless(new=False)) as server:
        with pytest.raises(Permanent, match=f"{WITHOUT_NEW} answers of YouTube brought no new video"):
            videos_of(PLAYLIST, None, server.url)
        assert len(server.requests) < 2 * WITHOUT_NEW
    with SampleServer(respond=endless(new=True)) as server:
        found = videos_of(PLAYLIST, None, server.url)
        assert found[-1] == f"light{2 * WITHOUT_NEW:06}", "a long list is read to its end"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    "inside", ["", "http://10.255.255.1/", "http://169.254.169.254/latest/", "https://192.168.0.1/"]
)
def test_a_redirect_of_a_list_does_not_lead_inside(inside: str) -> None:
    """An empty address stands for a server of this machine, which must not be asked."""
    with SampleServer() as secret:
        away = SampleAnswer(302, "text/plain", b"", inside or secret.url)
        with (
            SampleServer(respond=lambda target, origin: away) as server,
            pytest.raises(Permanent, match="a redirect led to an address inside the network"),
        ):
            videos_of(PLAYLIST, None, server.url)
        assert secret.requests == []
    gc.collect()  # yt-dlp leaves the socket of a redirect that failed to the collector


@pytest.mark.parametrize("path", ["/@ternrock", "/@ternrock/videos"])
def test_a_channel(base: str, path: str) -> None:
    assert videos_of(YOUTUBE + path, None, base) == ["lightlight3"]


def test_a_list_that_is_not_there(base: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Permanent, match=r"yt-dlp cannot list it: .*The playlist does not exist\."):
        videos_of(f"{YOUTUBE}/playlist?list=PLgone", None, base)
    assert capfd.readouterr() == ("", "")


def test_a_list_of_a_host_that_is_unknown_is_said_without_the_proxy() -> None:
    with pytest.raises(Permanent, match=r"^https://\S+: YouTube cannot be reached: there is no such host$"):
        videos_of(PLAYLIST, 3, "http://nowhere.invalid")

"""YouTube, answered by a server of our own in the shapes that its clients know."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

from silkline.errors import Permanent
from silkline.kinds import captions, video
from silkline.model.job import Verb
from silkline.sample.server import SampleServer
from silkline.sample.site import SampleAnswer
from silkline.store import jobs, urls
from tests.support.inline import Inline

ONE, TWO = "lightlight1", "lightlight2"
DESCRIPTION = "How the lamp works.\n\n0:00 The lamp\n0:20 The lens\n1:05 - The signal\n\nThanks for watching!"
SPOKEN = [
    (0.0, "The lamp is"),
    (5.5, "no larger than your fist."),
    (21.0, "The lens is tall & heavy."),
    (70.0, "Two flashes."),
]


class Tube:
    """Answers as YouTube does; `said` is what the player says of a video, `down` the next answers instead."""

    def __init__(self) -> None:
        self.said: dict[str, dict[str, Any]] = {ONE: self.playable(ONE), TWO: self.playable(TWO)}
        self.down: list[SampleAnswer] = []
        self.server = SampleServer(respond=self._respond)

    def playable(self, name: str, *languages: str, **more: Any) -> dict[str, Any]:
        tracks = [
            {
                "baseUrl": f"https://www.youtube.com/api/timedtext?v={name}&lang={language.removeprefix('auto-')}",
                "name": {"runs": [{"text": language}]},
                "languageCode": language.removeprefix("auto-"),
                **({"kind": "asr"} if language.startswith("auto-") else {}),
            }
            for language in (languages or ("en", "auto-de"))
        ]
        details = {
            "videoId": name,
            "title": f"Film {name}",
            "author": "Tern Rock",
            "channelId": "UC1",
            "lengthSeconds": "90",
        }
        return {
            "playabilityStatus": {"status": "OK"},
            "videoDetails": {**details, "shortDescription": DESCRIPTION},
            "captions": {"playerCaptionsTracklistRenderer": {"captionTracks": tracks}},
            **more,
        }

    def _respond(self, target: str, origin: str) -> SampleAnswer:
        if self.down:
            return self.down.pop(0)
        if target.startswith("/watch"):
            return SampleAnswer(200, "text/html", b'<script>{"INNERTUBE_API_KEY": "key-1"}</script>')
        if target.startswith("/youtubei/v1/player"):
            name = json.loads(self.server.bodies[-1])["videoId"]
            gone = {"playabilityStatus": {"status": "ERROR", "reason": "This video is unavailable"}}
            return SampleAnswer(200, "application/json", json.dumps(self.said.get(name, gone)).encode())
        if target.startswith("/api/timedtext"):
            lines = "".join(f'<text start="{start}" dur="4">{escape(text)}</text>' for start, text in SPOKEN)
            return SampleAnswer(200, "text/xml", f"<transcript>{lines}</transcript>".encode())
        if target.startswith("/oembed"):
            return SampleAnswer(200, "application/json", b'{"title": "From oEmbed", "author_name": "Tern Rock"}')
        return SampleAnswer(404, "text/plain", b"")


@pytest.fixture
def tube() -> Iterator[Tube]:
    tube = Tube()
    with tube.server:
        yield tube


@pytest.fixture
def inline(tmp_path: Path, tube: Tube) -> Iterator[Inline]:
    inline = Inline(tmp_path)
    inline.change_settings(youtube_url=tube.server.url)
    yield inline
    inline.close()


def test_a_transcript_with_its_facts(tube: Tube, inline: Inline) -> None:
    (found,) = inline.run("youtube", url=f"https://youtu.be/{ONE}?t=4")
    assert inline.job.status == "completed", inline.job
    data = found.data
    assert found.final_url == f"https://www.youtube.com/watch?v={ONE}"
    assert (data["title"], data["channel"], data["duration"]) == (f"Film {ONE}", "Tern Rock", 90)
    assert (data["language"], data["generated"], data["languages"]) == ("en", False, ["en", "de"])
    assert data["transcript"] == "The lamp is no larger than your fist. The lens is tall & heavy. Two flashes."
    assert data["segments"][1] == {"start": 5.5, "duration": 4.0, "text": "no larger than your fist."}
    assert [chapter["title"] for chapter in data["chapters"]] == ["The lamp", "The lens", "The signal"]
    assert data["markdown"] == (
        f"# Film {ONE}\n\n## The lamp\n\nThe lamp is no larger than your fist.\n\n"
        "## The lens\n\nThe lens is tall & heavy.\n\n## The signal\n\nTwo flashes."
    )


@pytest.mark.parametrize(
    "inside", ["", "http://10.255.255.1/", "http://169.254.169.254/latest/", "https://192.168.0.1/"]
)
def test_a_redirect_does_not_lead_inside(tube: Tube, inline: Inline, inside: str) -> None:
    """An empty address stands for a server of this machine, which must not be asked."""
    with SampleServer() as secret:
        tube.down.append(SampleAnswer(302, "text/plain", b"", inside or secret.url))
        (found,) = inline.run("youtube", url=video.watch_url(ONE))
        assert secret.requests == []
    assert (found.success, found.metadata["error"]) == (False, "address_blocked")
    inline.assert_failed("a redirect led to an address inside the network")


def test_languages_and_generated_subtitles(tube: Tube, inline: Inline) -> None:
    (found,) = inline.run("youtube", url=video.watch_url(ONE), languages=["fr", "de"])
    assert (found.data["language"], found.data["generated"]) == ("de", True)
    (missing,) = inline.run("youtube", url=video.watch_url(ONE), languages=["de"], generated=False)
    assert (missing.success, missing.metadata["error"]) == (False, "no_transcript")
    inline.assert_failed("none in the languages asked for; there is de, en")


def test_oembed_where_the_player_is_silent(tube: Tube, inline: Inline) -> None:
    tube.said[ONE] = tube.playable(ONE, videoDetails=None)
    (found,) = inline.run("youtube", url=video.watch_url(ONE))
    assert (found.data["title"], found.data["channel"]) == ("From oEmbed", "Tern Rock")


def unplayable(status: str, reason: str) -> dict[str, Any]:
    return {"playabilityStatus": {"status": status, "reason": reason}}


@pytest.mark.parametrize(
    ("said", "reason", "words"),
    [
        (unplayable("ERROR", "This video is unavailable"), "removed", "removed, or never was"),
        (unplayable("LOGIN_REQUIRED", "This video is private"), "private", "This video is private"),
        (unplayable("LOGIN_REQUIRED", "This video may be inappropriate for some users."), "age_restricted", "adults"),
        ({"playabilityStatus": {"status": "OK"}}, "no_transcript", "turned subtitles off"),
    ],
)
def test_why_there_is_no_transcript(tube: Tube, inline: Inline, said: dict, reason: str, words: str) -> None:
    tube.said[ONE] = said
    (found,) = inline.run("youtube", url=video.watch_url(ONE))
    assert (found.success, found.metadata["error"]) == (False, reason)
    inline.assert_failed(words)


def test_some_of_several_is_enough(tube: Tube, inline: Inline) -> None:
    del tube.said[ONE]
    found = inline.run("youtube", urls=[video.watch_url(ONE), video.watch_url(TWO), f"https://youtu.be/{TWO}"])
    assert [each.success for each in found] == [False, True]
    assert inline.job.status == "completed"
    assert urls.reasons(inline.database, inline.job.id) == [("failed", "removed", 1)]


def instead(tube: Tube, start: str, answer: SampleAnswer) -> None:
    """The tube gives this answer to the first request for the first video that starts like this."""
    respond = tube.server.respond
    left = [answer]

    def respond_oddly(target: str, origin: str) -> SampleAnswer:
        about = target + (tube.server.bodies[-1].decode() if start == "/youtubei" and tube.server.bodies else "")
        return left.pop() if left and target.startswith(start) and ONE in about else respond(target, origin)

    tube.server.respond = respond_oddly


PLAYER, CAPTIONS, OEMBED = "/youtubei", "/api/timedtext", "/oembed"
BOMB = b'<!DOCTYPE t [<!ENTITY a "aaaa">]><transcript><text start="0" dur="1">&a;</text></transcript>'


@pytest.mark.parametrize(
    ("start", "body"),
    [
        pytest.param(PLAYER, b"[]", id="a list"),
        pytest.param(PLAYER, b"{x", id="no JSON"),
        pytest.param(PLAYER, b"[" * 5_000 + b"]" * 5_000, id="deep"),
        pytest.param(PLAYER, b'{"playabilityStatus": []}', id="status"),
        pytest.param(PLAYER, b'{"playabilityStatus": {"status": "OK"}, "captions": 5}', id="captions"),
        pytest.param(CAPTIONS, b'<transcript><text start="1"', id="broken XML"),
        pytest.param(CAPTIONS, b"<transcript><text>a</text></transcript>", id="no start"),
        pytest.param(CAPTIONS, b'<transcript><text start="x" dur="4">a</text></transcript>', id="no number"),
        pytest.param(CAPTIONS, BOMB, id="entities"),
    ],
)
def test_a_video_that_cannot_be_read_fails_alone(
    tube: Tube, inline: Inline, caplog: pytest.LogCaptureFixture, start: str, body: bytes
) -> None:
    """Each of them ended every attempt, and no later video was asked for."""
    instead(tube, start, SampleAnswer(200, "application/json" if start == PLAYER else "text/xml", body))
    odd, good = inline.run("youtube", urls=[video.watch_url(ONE), video.watch_url(TWO)])
    assert inline.job.status == "completed", inline.job
    assert (odd.success, odd.metadata["error"], good.success) == (False, "bad_response", True)
    assert "cannot be" in odd.metadata["detail"]
    assert f"{odd.final_url}: {odd.metadata['detail']}" in caplog.text


def test_details_of_another_form_cost_only_their_video(tube: Tube, inline: Inline) -> None:
    tube.said[ONE]["videoDetails"] = ["x"]
    odd, good = inline.run("youtube", urls=[video.watch_url(ONE), video.watch_url(TWO)])
    assert (odd.success, odd.metadata["error"], good.success) == (False, "bad_response", True)


@pytest.mark.parametrize("seconds", ["\u00b2", "\u0661", "1" * 5_000, ["x"], -1])
def test_an_odd_duration_is_left_out(tube: Tube, inline: Inline, seconds: Any) -> None:
    tube.said[ONE]["videoDetails"]["lengthSeconds"] = seconds
    (found,) = inline.run("youtube", url=video.watch_url(ONE))
    assert "duration" not in found.data
    assert found.data["title"] == f"Film {ONE}"


def test_half_a_character_in_a_title_is_replaced(tube: Tube, inline: Inline) -> None:
    tube.said[ONE]["videoDetails"]["title"] = "a\ud800b"
    (found,) = inline.run("youtube", url=video.watch_url(ONE))
    assert found.data["title"] == "a?b"


@pytest.mark.parametrize("body", [b"[1]", b"<html>"])
def test_a_transcript_without_a_title_is_stored(tube: Tube, inline: Inline, body: bytes) -> None:
    tube.said[ONE] = tube.playable(ONE, videoDetails=None)
    instead(tube, OEMBED, SampleAnswer(200, "application/json", body))
    (found,) = inline.run("youtube", url=video.watch_url(ONE))
    assert found.data["title"] == ""
    assert found.data["transcript"].startswith("The lamp")


@pytest.mark.parametrize("status", [429, 500])
def test_a_block_is_waited_out_and_the_job_goes_on(tube: Tube, inline: Inline, status: int) -> None:
    respond = tube._respond

    def blocked_for_two(target: str, origin: str) -> SampleAnswer:
        return SampleAnswer(status, "text/html", b"") if TWO in target else respond(target, origin)

    tube.server.respond = blocked_for_two
    assert len(inline.run("youtube", urls=[video.watch_url(ONE), video.watch_url(TWO)])) == 1
    inline.assert_failed("wait, or ask from another one" if status == 429 else "cannot answer now")
    tube.server.respond = respond
    jobs.wish(inline.database, inline.job.id, Verb.RETRY)
    assert [each.data["title"] for each in inline.go_on()] == [f"Film {ONE}", f"Film {TWO}"]


def test_a_robot_check_is_a_block(tube: Tube, inline: Inline) -> None:
    tube.said[ONE] = unplayable("LOGIN_REQUIRED", "Sign in to confirm you\u2019re not a bot")
    assert inline.run("youtube", url=video.watch_url(ONE)) == []
    inline.assert_failed("takes this machine for a robot")


def test_captions_from_elsewhere_are_not_fetched(tube: Tube, inline: Inline) -> None:
    tube.said[ONE] = tube.playable(ONE)
    track = tube.said[ONE]["captions"]["playerCaptionsTracklistRenderer"]["captionTracks"][0]
    track["baseUrl"] = "http://169.254.169.254/latest/meta-data"
    inline.run("youtube", url=video.watch_url(ONE))
    inline.assert_failed("which is not a host of YouTube")


def test_lists_need_yt_dlp(tube: Tube, inline: Inline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yt_dlp", None)
    inline.run("youtube", url="https://www.youtube.com/@ternrock")
    inline.assert_failed("needs yt-dlp", "pip install 'silkline[youtube]', or name the videos one by one")


LISTING = """
class utils:
    class DownloadError(Exception): pass
class YoutubeDL:
    def __init__(self, options): self.options = options
    def __enter__(self): return self
    def __exit__(self, *_): pass
    def extract_info(self, url, download):
        if "odd" in url: return {"entries": 5}
        if "gone" in url: raise utils.DownloadError("This playlist does not exist")
        videos = [{"id": "lightlight1"}, {"id": "lightlight2"}, None, {"id": "lightlight1"}, {"id": "a\\ud800b&c=1 /#"}]
        return {"entries": [{"id": "UC1", "entries": videos}]}
"""


def test_a_playlist_or_channel(tube: Tube, inline: Inline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "yt_dlp.py").write_text(LISTING)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "yt_dlp", raising=False)
    found = inline.run("youtube", url="https://www.youtube.com/playlist?list=PL1")
    assert [each.data["title"] for each in found] == [f"Film {ONE}", f"Film {TWO}"]
    assert len(inline.run("youtube", url="https://www.youtube.com/@ternrock", limit=1)) == 1
    inline.run("youtube", url="https://www.youtube.com/playlist?list=gone")
    inline.assert_failed("yt-dlp cannot list it: This playlist does not exist")
    inline.run("youtube", url="https://www.youtube.com/playlist?list=odd")
    inline.assert_failed("the list cannot be read")
    sys.modules.pop("yt_dlp", None)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "youtube_transcript_api", None)
    with pytest.raises(Permanent, match=r"pip install 'silkline\[youtube\]'"):
        captions.Captions("https://www.youtube.com")


@pytest.mark.parametrize(
    ("url", "found"),
    [
        (f"https://www.youtube.com/watch?v={ONE}&list=PL1", video.Subject(ONE)),
        (f"https://m.youtube.com/watch?v={ONE}", video.Subject(ONE)),
        (f"https://youtu.be/{ONE}", video.Subject(ONE)),
        (f"https://www.youtube.com/shorts/{ONE}", video.Subject(ONE)),
        (f"https://www.youtube-nocookie.com/embed/{ONE}", video.Subject(ONE)),
        ("https://www.youtube.com/playlist?list=PL1", video.Subject(listed=True)),
        ("https://www.youtube.com/@name/videos", video.Subject(listed=True)),
        ("https://www.youtube.com/channel/UC1", video.Subject(listed=True)),
        ("https://www.youtube.com/about", None),
        ("https://youtu.be/short", None),
        (f"https://example.com/watch?v={ONE}", None),
    ],
)
def test_addresses(url: str, found: video.Subject | None) -> None:
    assert video.subject(url) == found


def test_chapters_follow_the_rule() -> None:
    assert [chapter.start for chapter in video.chapters("0:00 a\n1:00:05 b\n2:00:00 c")] == [0, 3605, 7200]
    for wrong in ("0:00 a\n0:10 b", "0:05 a\n0:10 b\n0:20 c", "0:00 a\n0:20 b\n0:10 c", "at 0:00 we begin"):
        assert video.chapters(wrong) == []


@pytest.mark.parametrize("base", ["http://nowhere.invalid", "https://nowhere.invalid"])
def test_a_host_that_is_unknown_is_said_without_the_proxy(tube: Tube, inline: Inline, base: str) -> None:
    inline.change_settings(youtube_url=base)
    inline.run("youtube", url=video.watch_url(ONE))
    said = f"{video.watch_url(ONE)}: YouTube cannot be reached: there is no such host"
    assert inline.job.error_message == said


def test_a_server_that_is_down_is_said_without_the_proxy(tube: Tube, inline: Inline) -> None:
    tube.server.close()
    inline.run("youtube", url=video.watch_url(ONE))
    assert inline.job.error_message == f"{video.watch_url(ONE)}: YouTube cannot be reached: the connection failed"

"""Requests to YouTube: the transcript of a video with youtube-transcript-api, the videos of a list with yt-dlp.

Both packages are extras. Every request goes to the address in the setting `youtube_url`, through our own proxy, which
checks every hop of a redirect. An error is raised as `CaptionsRefused`, with a reason for the ledger and advice on what
to do.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from silkline.errors import Permanent
from silkline.fetch.guarded_proxy import GuardedProxy
from silkline.kinds.video import ID
from silkline.model import fetched
from silkline.model.fetched import ADDRESS_BLOCKED, BAD_RESPONSE
from silkline.model.reasons import unreachable

YOUTUBE: Final = "https://www.youtube.com"
TIMEOUT: Final = 30.0
PACE: Final = 0.2  # seconds between two requests for the parts of a list
WITHOUT_NEW: Final = 50  # requests in a row that brought no new video of a list
BLOCKED: Final = "blocked"
LED_INSIDE: Final = "a redirect led to an address inside the network, where we do not go"
_WORDS: Final = {
    "TranscriptsDisabled": ("no_transcript", "its owner has turned subtitles off"),
    "NoTranscriptFound": ("no_transcript", "there is none in the languages asked for"),
    "VideoUnavailable": ("removed", "the video was removed, or never was"),
    "InvalidVideoId": ("bad_url", "this is not the id of a video"),
    "AgeRestricted": ("age_restricted", "the video is for adults who are signed in; Silkline cannot sign in"),
    "RequestBlocked": (BLOCKED, "YouTube takes this machine for a robot; wait, or ask from another address"),
    "IpBlocked": (BLOCKED, "YouTube limits how often this address may ask; wait, or ask from another one"),
    "PoTokenRequired": (
        BLOCKED,
        "YouTube requires a token from a browser for this video; a newer youtube-transcript-api may help",
    ),
    "YouTubeDataUnparsable": (
        BAD_RESPONSE,
        "YouTube answers differently now; a newer youtube-transcript-api may help",
    ),
    "FailedToCreateConsentCookie": (BLOCKED, "YouTube asks for consent to cookies and does not accept it"),
}


class CaptionsRefused(Exception):
    """There is no transcript. `passing`: a later try may succeed."""

    def __init__(self, reason: str, words: str, *, passing: bool = False) -> None:
        super().__init__(words)
        self.reason = reason
        self.passing = passing


class Captions:
    """One client of YouTube."""

    def __init__(self, base: str) -> None:
        try:
            import requests
            from youtube_transcript_api import YouTubeTranscriptApi
        except ImportError as error:
            raise Permanent(
                "transcripts need youtube-transcript-api, not installed here: pip install 'silkline[youtube]'"
            ) from error
        self._proxy = GuardedProxy(base)
        self._session = _session(requests.Session, base.rstrip("/"), self._proxy.url)
        self._api = YouTubeTranscriptApi(http_client=self._session)

    def transcript(
        self, video: str, languages: Sequence[str], *, generated: bool
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The details of a video, and its transcript in the first of the languages that it has."""
        from requests import RequestException
        from youtube_transcript_api import CouldNotRetrieveTranscript

        self._session.details = {}
        refused = self._proxy.refused
        self._proxy.take_problem()
        try:
            listed = self._api.list(video)
            find = listed.find_transcript if generated else listed.find_manually_created_transcript
            found = find(list(languages)).fetch()
        except (CouldNotRetrieveTranscript, RequestException) as error:
            if self._proxy.refused > refused:
                raise CaptionsRefused(ADDRESS_BLOCKED, LED_INSIDE) from error
            if problem := self._proxy.take_problem():
                raise CaptionsRefused(problem, unreachable("YouTube", problem), passing=True) from error
            if isinstance(error, CouldNotRetrieveTranscript):
                raise _refusal(error) from error
            raise _no_answer(error) from error
        details = self._session.details or self._embedded(video)
        segments = [{"start": one.start, "duration": one.duration, "text": one.text} for one in found]
        return details, {
            "language": found.language_code,
            "generated": found.is_generated,
            "languages": [each.language_code for each in listed],
            "segments": segments,
        }

    def close(self) -> None:
        self._proxy.close()

    def _embedded(self, video: str) -> dict[str, Any]:
        """Title and channel from oEmbed, if the player gave no details."""
        asked = {"url": f"{YOUTUBE}/watch?v={video}", "format": "json"}
        from requests import RequestException

        try:
            answer = self._session.get(f"{YOUTUBE}/oembed", params=asked)
            told = answer.json() if answer.status_code == 200 else None
        except RequestException:
            return {}
        if not isinstance(told, dict):
            return {}
        return {"title": told.get("title"), "author": told.get("author_name"), "author_url": told.get("author_url")}


def _session(session: Any, base: str, proxy: str) -> Any:
    """A session that sends requests only to the address in the setting, and keeps the video details of the player."""

    class PacedSession(session):  # type: ignore[misc]
        details: dict[str, Any]

        def request(self, method: str, url: str, **more: Any) -> Any:
            answer = super().request(method, _place(url, base), **{"timeout": TIMEOUT, **more})
            if method.upper() == "POST" and answer.headers.get("content-type", "").startswith("application/json"):
                told = answer.json()
                self.details = (told.get("videoDetails") or {}) if isinstance(told, dict) else {}
            return answer

    ours = PacedSession()
    ours.trust_env = False  # use only our proxy, not the one of the environment
    ours.proxies = {"http": proxy, "https": proxy}
    ours.verify = os.environ.get("REQUESTS_CA_BUNDLE") or True
    return ours


def _place(url: str, base: str) -> str:
    """The address to request instead of an address of YouTube."""
    if url.startswith(f"{YOUTUBE}/"):
        url = base + url.removeprefix(YOUTUBE)
    host = urlsplit(url).hostname or ""
    if host != urlsplit(base).hostname and not host.endswith(".youtube.com"):
        raise CaptionsRefused(BAD_RESPONSE, f"YouTube redirects to {host}, which is not a host of YouTube")
    return url


def _no_answer(error: Exception) -> CaptionsRefused:
    """The request failed. An answer that cannot be used is the fault of one video, and would come again."""
    from requests import ConnectionError, Timeout
    from requests.exceptions import ChunkedEncodingError, SSLError

    # The texts of these errors are about our own proxy.
    for kind, reason in (
        (Timeout, fetched.TIMEOUT),
        (ChunkedEncodingError, fetched.TRUNCATED),
        (SSLError, fetched.TLS_FAILED),
        (ConnectionError, fetched.CONNECT_FAILED),
    ):
        if isinstance(error, kind):
            return CaptionsRefused(reason, unreachable("YouTube", reason), passing=True)
    return CaptionsRefused(BAD_RESPONSE, f"the answer of YouTube cannot be used: {error}"[:300])


def _refusal(error: Exception) -> CaptionsRefused:
    kind = type(error).__name__
    if kind == "YouTubeRequestFailed":
        return CaptionsRefused(
            BAD_RESPONSE, f"YouTube cannot answer now: {getattr(error, 'reason', '')}"[:300], passing=True
        )
    if kind == "VideoUnplayable":
        reason = str(getattr(error, "reason", "") or "it cannot be played")
        private = "private" in reason.lower()
        return CaptionsRefused("private" if private else "removed", f"YouTube says: {reason}")
    reason, words = _WORDS.get(kind, ("failed", f"YouTube refuses ({kind})"))
    if kind == "NoTranscriptFound":
        there = sorted({each.language_code for each in getattr(error, "_transcript_data", ())})
        words += f"; there is {', '.join(there)}" if there else ""
    return CaptionsRefused(reason, words, passing=reason == BLOCKED)


def videos_of(url: str, most: int | None, base: str) -> list[str]:
    """The ids of the videos of a playlist or channel, in its order."""
    try:
        import yt_dlp  # type: ignore[import-untyped]
    except ImportError as error:
        raise Permanent(
            f"{url} is a playlist or channel; listing its videos needs yt-dlp, not installed here: "
            "pip install 'silkline[youtube]', or name the videos one by one"
        ) from error
    options: dict[str, Any] = {"extract_flat": "in_playlist", "skip_download": True, "quiet": True, "no_warnings": True}
    # Errors are raised as exceptions; the log of yt-dlp would only repeat them.
    options |= {"logger": logging.Logger("yt-dlp", logging.CRITICAL), "no_color": True}
    options |= {"cachedir": False, "socket_timeout": TIMEOUT, "sleep_interval_requests": PACE}
    if most is not None:
        options["playlistend"] = most
    proxy = GuardedProxy(base)
    options["proxy"] = proxy.url
    try:
        with _loader(yt_dlp, base.rstrip("/"), options) as loader:
            told = loader.extract_info(url, download=False)
    except yt_dlp.utils.DownloadError as error:
        if proxy.refused:
            raise Permanent(f"{url}: {LED_INSIDE}") from error
        if problem := proxy.take_problem():
            raise Permanent(f"{url}: {unreachable('YouTube', problem)}") from error
        raise Permanent(f"{url}: yt-dlp cannot list it: {str(error).removeprefix('ERROR: ')}"[:500]) from error
    except CaptionsRefused as refusal:
        raise Permanent(f"{url}: {refusal}") from refusal
    finally:
        proxy.close()
    return list(dict.fromkeys(_ids(told)))[:most]


def _loader(yt_dlp: Any, base: str, options: dict[str, Any]) -> Any:
    """A yt-dlp that sends requests to the address in the setting, and gives up a list that does not end."""

    class Loader(yt_dlp.YoutubeDL):  # type: ignore[misc]
        def __init__(self) -> None:
            self._seen: set[str] = set()
            self._without_new = 0
            # Lazy: it passes on the videos of each part of a list before it asks for the next part.
            super().__init__({**options, "lazy_playlist": True, "match_filter": self._note})

        def urlopen(self, request: Any) -> Any:
            self._without_new += 1
            if self._without_new > WITHOUT_NEW:
                raise CaptionsRefused(BAD_RESPONSE, f"{WITHOUT_NEW} answers of YouTube brought no new video")
            if isinstance(request, str):
                return super().urlopen(_place(request, base))
            request.url = _place(request.url, base)
            return super().urlopen(request)

        def _note(self, entry: dict[str, Any], **_: Any) -> None:
            """yt-dlp asks for each entry whether to leave it out; none is."""
            name = str(entry.get("id"))
            if name not in self._seen:
                self._seen.add(name)
                self._without_new = 0

    return Loader()


def _ids(told: Any) -> Any:
    """The ids of all videos. A channel is a list of lists: its videos, shorts and streams."""
    waiting = [told]
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, dict) and "entries" in one:
            waiting = [*one["entries"], *waiting]
        elif isinstance(one, dict) and ID.fullmatch(str(one.get("id", ""))):
            yield str(one["id"])

"""Videos of YouTube as the results that are stored. Pure: addresses, captions and descriptions in, values out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

HOSTS: Final = frozenset({"youtube.com", "youtu.be", "youtube-nocookie.com"})
PARAGRAPH: Final = 600
ID: Final = re.compile(r"[\w-]{11}", re.ASCII)
_IN_PATH: Final = re.compile(r"/(?:shorts|live|embed|v)/([\w-]{11})(?:/|$)", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]{1,12}")
_CHANNEL: Final = re.compile(r"/(?:@[^/]+|(?:channel|c|user)/[^/]+)(?:/|$)")
_STAMP: Final = re.compile(r"^\W{0,3}((?:\d{1,2}:)?\d{1,2}:\d{2})\W{0,4}\s*(.+)$")


class Subject(NamedTuple):
    """What an address refers to: a video by its id, or a list of videos (playlist, channel)."""

    video: str | None = None
    listed: bool = False


class Chapter(NamedTuple):
    start: float
    title: str


def subject(url: str) -> Subject | None:
    """What a URL of YouTube refers to. None: it is not of YouTube, or has no transcript."""
    parts = urlsplit(url)
    host = (parts.hostname or "").removeprefix("www.").removeprefix("m.").removeprefix("music.")
    if host not in HOSTS:
        return None
    asked = parse_qs(parts.query)
    named = parts.path[1:12] if host == "youtu.be" else (asked.get("v") or [""])[0]
    if ID.fullmatch(named):
        return Subject(named)
    found = _IN_PATH.match(parts.path)
    if found:
        return Subject(found[1])
    if asked.get("list") or _CHANNEL.match(parts.path):
        return Subject(listed=True)
    return None


def watch_url(video: str) -> str:
    return f"https://www.youtube.com/watch?v={video}"


def chapters(description: str) -> list[Chapter]:
    """The chapters in a description, by YouTube's own rule: at least three, the first at 0:00, in rising order."""
    found = []
    for line in description.splitlines():
        stamp = _STAMP.match(line.strip())
        if stamp:
            found.append(Chapter(_seconds(stamp[1]), stamp[2].strip()))
    starts = [chapter.start for chapter in found]
    proper = len(found) >= 3 and starts[0] == 0 and all(a < b for a, b in pairwise(starts))
    return found if proper else []


def _seconds(stamp: str) -> float:
    total = 0
    for part in stamp.split(":"):
        total = total * 60 + int(part)
    return float(total)


def markdown(title: str, parts: Sequence[Chapter], segments: Iterable[dict[str, Any]]) -> str:
    """The transcript as text to read: a heading for each chapter, and paragraphs of limited length."""
    blocks = [f"# {title}"] if title else []
    waiting = list(parts)
    text = ""
    for segment in segments:
        while waiting and segment["start"] >= waiting[0].start:
            blocks += [text] if text else []
            blocks.append(f"## {waiting.pop(0).title}")
            text = ""
        text = f"{text} {' '.join(segment['text'].split())}".strip()
        if (len(text) > PARAGRAPH and text.endswith((".", "!", "?"))) or len(text) > 2 * PARAGRAPH:
            blocks.append(text)
            text = ""
    return "\n\n".join([*blocks, text] if text else blocks)


def data_of(details: dict[str, Any], transcript: dict[str, Any]) -> dict[str, Any]:
    """A video in the form that is stored."""
    description = str(details.get("shortDescription") or "")
    found = chapters(description)
    title = str(details.get("title") or "")
    channel = details.get("channelId")
    data = {
        "kind": "video",
        "title": title,
        "channel": details.get("author"),
        "channel_url": f"https://www.youtube.com/channel/{channel}" if channel else details.get("author_url"),
        "duration": _number(details.get("lengthSeconds")),
        "description": description or None,
        "chapters": [chapter._asdict() for chapter in found] or None,
        **transcript,
        "transcript": " ".join(" ".join(segment["text"].split()) for segment in transcript["segments"]),
        "markdown": markdown(title, found, transcript["segments"]),
    }
    return {name: value for name, value in data.items() if value is not None}


def _number(value: Any) -> int | None:
    text = str(value)
    return int(text) if _NUMBER.fullmatch(text) else None

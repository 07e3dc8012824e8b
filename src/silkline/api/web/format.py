"""Values as people read them, for the templates."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
NOTHING = "\N{EN DASH}"


def visible(text: Any) -> str:
    """Text whose control characters are seen instead of obeyed: no colours, no turned writing, no false lines."""
    return _UNSEEN.sub(_sign, str(text))


def _sign(found: re.Match[str]) -> str:
    code = ord(found[0])
    return chr(0x2400 + code) if code < 32 else "␡" if code == 127 else f"\\u{code:04x}"


def is_web(url: Any) -> bool:
    """Whether a browser may be given this as a link."""
    if not isinstance(url, str) or _UNSEEN.search(url) or not re.match(r"https?://[^/\s]", url, re.IGNORECASE):
        return False
    try:
        return bool(urlsplit(url).hostname)
    except ValueError:
        return False


def plain(value: Any) -> str:
    """Any JSON value on one line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def size(count: float | None) -> str:
    count = count or 0
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def duration(seconds: float | None) -> str:
    """How long, in at most two units."""
    if seconds is None:
        return NOTHING
    whole = max(0, round(seconds))
    days, rest = divmod(whole, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, left = divmod(rest, 60)
    parts = [f"{count} {unit}" for count, unit in ((days, "d"), (hours, "h"), (minutes, "min"), (left, "s")) if count]
    return " ".join(parts[:2]) or "0 s"


def ago(moment: datetime | None, now: datetime) -> str:
    return f"{duration((now - moment).total_seconds())} ago" if moment else "never"


def segments(progress: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of the progress bar, in hundredths of its width."""
    whole = progress["discovered"] or 1
    parts, x = [], 0.0
    for state in ("done", "unchanged", "failed", "skipped", "in_flight", "queued"):
        width = 100 * progress[state] / whole
        parts.append({"state": state, "x": round(x, 3), "width": round(width, 3)})
        x += width
    return parts


def host_of(url: str | None) -> str:
    return urlsplit(url).netloc if is_web(url) and url else ""


FILTERS = {
    "visible": visible,
    "number": number,
    "plain": plain,
    "size": size,
    "duration": duration,
    "host": host_of,
    "segments": segments,
}
TESTS = {"web": is_web}

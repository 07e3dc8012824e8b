"""Values as people read them, for the templates."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from silkline.model.progress import pages_of
from silkline.store.job_view import ProgressView

LONGEST = 10_000  # characters of a value that nobody gave another limit; a URL has at most 8,192
_UNSEEN = (
    *((0x00, 0x08), (0x0B, 0x1F), (0x7F, 0x9F), (0x061C, 0x061C), (0x180E, 0x180E), (0x200B, 0x200F), (0x2028, 0x202E)),
    *((0x2060, 0x206F), (0xFEFF, 0xFEFF), (0xFFF9, 0xFFFB), (0xE0000, 0xE0FFF)),
)
_HAS_UNSEEN = re.compile("[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in _UNSEEN) + "]")
UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))
NOTHING = "\N{EN DASH}"


def visible(text: Any, most: int = LONGEST) -> str:
    """The first characters of a text, with visible control characters, so that they cannot change colours, direction
    or lines. The text is cut first: each character may become seven.
    """
    shown = str(text)
    if len(shown) > most:
        shown = shown[: most - 1] + "…"
    return shown.translate(_SIGNS) if _HAS_UNSEEN.search(shown) else shown


def _sign(code: int) -> str:
    return chr(0x2400 + code) if code < 32 else "␡" if code == 127 else f"\\u{code:04x}"


_SIGNS = {code: _sign(code) for first, last in _UNSEEN for code in range(first, last + 1)}


def is_web(url: Any) -> bool:
    """Whether this may become a link."""
    if (
        not isinstance(url, str)
        or len(url) > LONGEST
        or _HAS_UNSEEN.search(url)
        or not re.match(r"https?://[^/\s]", url, re.IGNORECASE)
    ):
        return False
    try:
        return bool(urlsplit(url).hostname)
    except ValueError:
        return False


def plain(value: Any) -> str:
    """Any JSON value on one line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def number(value: float | None) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.1f}" if value >= 1 or not value else f"{value:.2f}"


def size(count: float | None) -> str:
    count = count or 0
    for unit in ("B", "kB", "MB", "GB"):
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
    """How long ago, in one unit."""
    if not moment:
        return "never"
    seconds = max(0, round((now - moment).total_seconds()))
    size, unit = next(((size, unit) for size, unit in UNITS if seconds >= size), (1, "s"))
    return f"{seconds // size} {unit} ago"


def took(seconds: float) -> str:
    """How long a page took."""
    return f"{1000 * seconds:.0f} ms" if seconds < 9.9995 else duration(seconds)


def segments(progress: ProgressView) -> list[dict[str, Any]]:
    """The parts of the progress bar, in hundredths of its width."""
    whole = progress.discovered or 1
    parts, x = [], 0.0
    for state in ("done", "unchanged", "failed", "skipped", "in_flight", "queued"):
        urls = getattr(progress, state)
        if state == "unchanged" and not urls:
            continue
        width = 100 * urls / whole
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
    "took": took,
    "host": host_of,
    "segments": segments,
    "pages_of": pages_of,
}
TESTS = {"web": is_web}

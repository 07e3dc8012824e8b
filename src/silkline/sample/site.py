"""The responses of the sample site. Pure: no socket, no clock."""

from __future__ import annotations

import calendar
import gzip
import html
import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from silkline.sample import drawn

REDIRECTS = {
    "/old-home": (301, "/"),
    "/directions": (302, "/visit/getting-there"),
    "/about": (308, "/about/"),
    "/loop/one": (302, "/loop/two"),
    "/loop/two": (302, "/loop/one"),
}
GONE = {"/shop"}
PAGES = {
    "/": "index.html",
    "/journal/?page=2": "journal/older.html",
    "/draft/horn-manual": "draft.html",
    **{f"/{folder}/": f"{folder}/index.html" for folder in ("about", "visit", "light", "birds", "journal")},
    **{f"/about/{name}": f"about/{name}.html" for name in ("history", "keepers")},
    **{f"/visit/{name}": f"visit/{name}.html" for name in ("opening-hours", "tickets", "getting-there")},
    **{f"/light/{name}": f"light/{name}.html" for name in ("lens", "signal", "fog-horn")},
    **{f"/birds/{name}": f"birds/{name}.html" for name in ("arctic-tern", "puffin", "eider")},
    **{
        f"/journal/{name}": f"journal/{name}.html"
        for name in ("the-storm", "a-quiet-week", "new-paint", "the-goose", "first-boat", "the-other-island")
    },
    "/private/accounts": "private/accounts.html",
    "/gallery": "gallery.html",
}
_JOURNAL = tuple(path for path in PAGES if re.fullmatch(r"/journal/[a-z-]+", path))
_NOTE = re.compile(r"<!-- (title|base|robots): (.*?) -->\n")
_FIRST_MONTH = 2026 * 12 + 10


class SampleAnswer(NamedTuple):
    status: int
    content_type: str
    body: bytes
    location: str = ""


def answer(target: str, origin: str) -> SampleAnswer:
    """The response to `GET target`; `origin` is the current address of the site, such as http://127.0.0.1:8123."""
    path = target.partition("?")[0]
    if path in REDIRECTS:
        status, location = REDIRECTS[path]
        return SampleAnswer(status, "text/plain; charset=utf-8", b"It has moved.\n", location)
    if path in GONE:
        return _page("gone", "Gone", "<h1>Gone</h1><p>The shop was closed in 2019 and is not missed.</p>", 410)
    if re.fullmatch(r"/calendar/(next/)*", path):
        return _calendar(path.count("next/"))
    if path in _FILES:
        return _FILES[path](origin)
    name = PAGES.get(target) or PAGES.get(path)
    if name is None:
        return _page("lost", "Not here", "<h1>Not here</h1><p>The sea must have taken it.</p>", 404)
    return _page(name, "", _text(name))


@cache
def _text(name: str) -> str:
    return (files("silkline.sample") / "pages" / name).read_text(encoding="utf-8")


def _page(name: str, title: str, source: str, status: int = 200) -> SampleAnswer:
    notes = dict(_NOTE.findall(source))
    body = _NOTE.sub("", source)
    head = f'<base href="{notes["base"]}">' if "base" in notes else ""
    head += f'<meta name="robots" content="{notes["robots"]}">' if "robots" in notes else ""
    first = re.search(r"<p>(.*?)</p>", body, re.DOTALL)
    words = " ".join(re.sub(r"<[^>]+>", "", first[1]).split()) if first else ""
    shown = {
        "title": notes.get("title", title),
        "description": html.escape(words[:150].rpartition(" ")[0] or words),
        "head": head,
        "body": body,
    }
    layout = re.sub(r"\{(title|description|head|body)\}", lambda found: shown[found[1]], _text("layout.html"))
    return SampleAnswer(status, "text/html; charset=utf-8", layout.encode())


def _calendar(steps: int) -> SampleAnswer:
    """One month of an endless calendar: the relative link to the next month makes the path longer each time."""
    year, month = divmod(_FIRST_MONTH + steps, 12)
    year = min(year, 9999)
    values = {"month": f"{calendar.month_name[month + 1]} {year}", "days": calendar.monthrange(year, month + 1)[1]}
    return _page("calendar", "", re.sub(r"\{(\w+)\}", lambda found: str(values[found[1]]), _text("calendar.html")))


def _robots(origin: str) -> SampleAnswer:
    lines = ("User-agent: *", "Disallow: /private/", "", f"Sitemap: {origin}/sitemap.xml", "")
    return SampleAnswer(200, "text/plain; charset=utf-8", "\n".join(lines).encode())


def _sitemap_index(origin: str) -> SampleAnswer:
    listed = "".join(
        f"<sitemap><loc>{origin}/{name}</loc></sitemap>" for name in ("sitemap-pages.xml", "sitemap-journal.xml.gz")
    )
    return _xml(f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{listed}</sitemapindex>')


def _sitemap_pages(origin: str) -> SampleAnswer:
    paths = [
        path for path in PAGES if path not in _JOURNAL and not path.startswith(("/private", "/draft", "/journal/?"))
    ]
    return _xml(_urlset(origin, [*paths, "/handbook.pdf"]))


def _sitemap_journal(origin: str) -> SampleAnswer:
    packed = gzip.compress(_XML.encode() + _urlset(origin, list(_JOURNAL)).encode(), mtime=0)
    return SampleAnswer(200, "application/gzip", packed)


def _urlset(origin: str, paths: list[str]) -> str:
    listed = "".join(f"<url><loc>{origin}{path}</loc><lastmod>2026-11-03</lastmod></url>" for path in paths)
    return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{listed}</urlset>'


def _feed(origin: str) -> SampleAnswer:
    titles = {path: dict(_NOTE.findall(_text(PAGES[path])))["title"] for path in _JOURNAL}
    items = "".join(f"<item><title>{titles[path]}</title><link>{origin}{path}</link></item>" for path in _JOURNAL)
    return SampleAnswer(
        200,
        "application/rss+xml",
        f'{_XML}<rss version="2.0"><channel><title>Journal of Tern Rock</title><link>{origin}/journal/</link>'
        f"<description>What happens on the rock.</description>{items}</channel></rss>".encode(),
    )


_XML = '<?xml version="1.0" encoding="utf-8"?>\n'


def _xml(text: str) -> SampleAnswer:
    return SampleAnswer(200, "application/xml", (_XML + text).encode())


_FILES: dict[str, Callable[[str], SampleAnswer]] = {
    "/robots.txt": _robots,
    "/sitemap.xml": _sitemap_index,
    "/sitemap-pages.xml": _sitemap_pages,
    "/sitemap-journal.xml.gz": _sitemap_journal,
    "/feed.xml": _feed,
    "/style.css": lambda _: SampleAnswer(200, "text/css; charset=utf-8", _text("style.css").encode()),
    "/handbook.pdf": lambda _: SampleAnswer(200, "application/pdf", drawn.handbook()),
    "/lamp.png": lambda _: SampleAnswer(200, "image/png", drawn.picture(255, 236, 170)),
    "/lens.png": lambda _: SampleAnswer(200, "image/png", drawn.picture(170, 225, 255)),
    "/storm.png": lambda _: SampleAnswer(200, "image/png", drawn.picture(190, 195, 205)),
}

"""Reads a body into facts, links and the JSON that is stored. Runs in a fetcher, or in a parser process.

Pure: a `Body` in, a `Reading` out. Every parse error becomes a reason here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from silkline.crawl.cpu_clock import CpuClock
from silkline.crawl.extraction import Extraction, Inspection, TooMuchForXPaths
from silkline.crawl.plan import Plan
from silkline.metrics.instruments import PARSE_SECONDS
from silkline.metrics.process import role
from silkline.model.page import Page, Wanted
from silkline.model.url import packed_keys
from silkline.parse.html import parse_page
from silkline.parse.pdf import parse_pdf
from silkline.parse.plain import plain_data
from silkline.parse.sitemap import MAX_ADDRESSES, Sitemap, parse_sitemap
from silkline.parse.sniff import sniff

NOT_A_PAGE: Final = "not_a_page"
NOT_TEXT: Final = "not_text"
"""The same for a URL that was requested by name."""
NOINDEX: Final = "noindex"
PARSE_FAILED: Final = "parse_failed"
READ_LATER: Final = "read_later"
"""It was not read, because too much waits to be read. It is fetched again later; this reason is not stored."""
READ_ALONE: Final = "read_alone"
"""It was not read, because it may take too long. It is read in isolation; this reason is not stored."""
LONGEST_DETAIL: Final = 500
"""Characters of an error: a page may choose its text."""
SITEMAP: Final = "sitemap"
SLOW: Final = 0.1
"""CPU seconds from which a reading is slow. An ordinary page takes a few milliseconds."""
_PDF_SECONDS: Final = 3.0  # in a crawl other pages wait for the reader; a single requested PDF may take longer
_PDF_SECONDS_BY_NAME: Final = 20.0
_PDF_SHARE: Final = 0.75
"""The share of the time limit of a reader that a PDF may use."""
_WHAT: Final = {"image": "an image", "other": "a file of another kind"}

_FOLLOWED: Final = frozenset({"a", "area", "frame", "refresh", "canonical", "alternate", "next", "prev"})
_WITH_FACTS: Final = frozenset({"hreflang", "links", "headings"})
_encode = msgspec.json.Encoder().encode


class Body(msgspec.Struct, array_like=True, gc=False):
    """A page as it was fetched."""

    id: int
    url: str
    body: bytes
    content_type: str
    charset: str
    robots_tag: str
    simhash: bool = False
    sitemap: bool = False
    wire_bytes: int = 0
    """Bytes received over the network; 0: not known."""
    base: str = ""
    """The base for relative links, if a script has set another address than `url`."""
    headers: dict[str, str] = {}
    """The headers of the response, if the plan wants them."""
    bare: bool = False
    """A process died while it read this page: read it without fields and page hooks."""


class Reading(msgspec.Struct, array_like=True, gc=False):
    """The content of a page. With a `reason` there is nothing to store, though there may be links to follow.

    `names` holds eight bytes (`packed_keys`) for every address in the page, whether it is to be followed or not.
    """

    id: int
    reason: str | None = None
    detail: str | None = None
    links: list[str] = []
    data: str = "{}"
    simhash: int | None = None
    sitemaps: list[str] = []
    names: bytes = b""
    needs_scripts: bool = False
    sitemap: Sitemap | None = None
    """All entries of a sitemap, for jobs that need them."""
    tally: bytes = b""
    """What the page says about each field, as in `parse.fields`."""
    seconds: float = 0.0
    """CPU time of the reading, if it was slow; otherwise 0. Only for slow_senders.py."""


OnReading = Callable[[Reading], None]


class PageReader:
    """Reads pages as the plan requires. `careful`: give back pages that are too much for the XPaths of the plan
    (`READ_ALONE`)."""

    def __init__(self, plan: Plan, *, careful: bool = False) -> None:
        agent = plan.user_agent.partition("/")[0].lower() or "silkline"
        self._wanted = Wanted(
            content=plan.content,  # type: ignore[arg-type]
            keep=plan.keep,
            drop=plan.drop,
            links_in_text=not plan.no_links,
            images=not plan.no_images,
            link_titles=plan.link_titles,
            outline=plan.content != "none",
            facts=not _WITH_FACTS.isdisjoint(plan.facts),
            agent=agent,
            scripts=plan.rendering is not None and plan.rendering.auto,
        )
        self._with_simhash = msgspec.structs.replace(self._wanted, simhash=True)
        self._extraction = Extraction(plan, careful=careful) if plan.extracts or plan.facts else None
        self._by_name = plan.by_name
        self.clock = CpuClock()
        self._listings = plan.listings
        self._tuning = plan.tuning
        # Below the limit at which the reader is killed: the text that was read until then is kept.
        seconds = _PDF_SECONDS_BY_NAME if plan.by_name else _PDF_SECONDS
        self._pdf_seconds = min(seconds, _PDF_SHARE * plan.tuning.read_seconds)
        # A user who requests one page by name wants that page: `noindex` is for programs that build an index.
        self._obeys = not plan.ignore_robots and not plan.by_name

    def reading_of(self, body: Body) -> Reading:
        try:
            return self._read(body)
        except MemoryError:  # the process has reached its limit: the page is read again in another one
            raise
        except TooMuchForXPaths:
            return Reading(body.id, READ_ALONE)
        except Exception as error:
            return Reading(body.id, PARSE_FAILED, f"{type(error).__name__}: {error}"[:LONGEST_DETAIL])

    def _read(self, body: Body) -> Reading:
        if body.sitemap:
            sitemap = parse_sitemap(body.body, body.url, max_addresses=self._addresses(body))
            return Reading(body.id, SITEMAP, sitemap=sitemap) if self._listings else _sitemap(body, sitemap)
        kind = sniff(body.body, body.content_type, body.charset)
        if kind == "text" or (self._by_name and kind in ("xml", "feed")):
            return self._plain_text(body)
        if kind == "pdf":
            return self._pdf(body)
        if kind != "html":
            return self._no_page(body, kind)
        inspection = None
        if self._extraction is not None:
            inspection = self._extraction.inspection(body.url, body.headers, bare=body.bare)
        page = parse_page(
            body.body,
            body.base or body.url,
            self._with_simhash if body.simhash else self._wanted,
            charset=body.charset or None,
            robots_tags=(body.robots_tag,) if body.robots_tag else (),
            inspect=inspection,
        )
        hidden = self._obeys and page.robots.noindex
        reading = Reading(
            id=body.id,
            reason=NOINDEX if hidden else None,
            links=[] if self._by_name else self._links(page),
            data="{}" if hidden else _encode(self._data(page)).decode(),
            simhash=page.simhash,
            names=b"" if self._by_name else packed_keys([link.url for link in page.links]),
            needs_scripts=page.needs_scripts and not hidden,
        )
        return self._extracted(reading, page, inspection) if inspection is not None and not hidden else reading

    def _extracted(self, reading: Reading, page: Page, inspection: Inspection) -> Reading:
        """The reading with what the inspection of the page found."""
        data = {**self._data(page), **inspection.facts_of(page), **inspection.data}
        links = [] if self._by_name else inspection.links
        return msgspec.structs.replace(
            reading,
            reason=inspection.reason,
            detail=inspection.detail,
            links=[*reading.links, *links],
            names=reading.names + packed_keys(links) if links else reading.names,
            data="{}" if inspection.reason else _encode(data).decode(),
            tally=b"" if inspection.reason else inspection.tally,
        )

    def _links(self, page: Page) -> list[str]:
        if not self._obeys:
            return [link.url for link in page.links if link.kind in _FOLLOWED]
        if page.robots.nofollow:
            return []
        return [link.url for link in page.links if link.kind in _FOLLOWED and not (link.rel and link.nofollow)]

    def _data(self, page: Page) -> dict[str, Any]:
        data: dict[str, Any] = {"title": page.title, "links": len(page.links), "content_hash": page.content_hash}
        if page.markdown:
            data["markdown"] = page.markdown
        if page.text:
            data["text"] = page.text
        if page.html:
            data["html"] = page.html
        if page.extraction is not None:
            data |= msgspec.structs.asdict(page.extraction)
        if page.canonical:
            data["canonical"] = page.canonical
        if page.truncated:
            data["truncated"] = page.truncated
        if self._wanted.outline:
            data["description"] = page.description
            data["language"] = page.language
            data["headings"] = page.headings
            if any(page.anchors):
                data["anchors"] = page.anchors
        return data

    def _no_page(self, body: Body, kind: str) -> Reading:
        if self._by_name:
            declared = f", {body.content_type}" if body.content_type else ""
            return Reading(body.id, NOT_TEXT, _WHAT[kind] + declared)
        return Reading(body.id, NOT_A_PAGE, f"{kind} ({body.content_type or 'no content type'})"[:200])

    def _pdf(self, body: Body) -> Reading:
        if self._wanted.content == "none" and not self._by_name:
            return Reading(body.id, data=_encode({"title": ""}).decode())
        text = parse_pdf(body.body, max_content=self._wanted.max_content, max_seconds=self._pdf_seconds)
        if not text.markdown and self._by_name:
            why = text.problem or "perhaps only images"
            return Reading(body.id, NOT_TEXT, f"a PDF without text ({why})"[:500])
        if not text.markdown and text.problem:
            return Reading(body.id, PARSE_FAILED, f"PDF: {text.problem}"[:LONGEST_DETAIL])
        data: dict[str, Any] = {"title": text.title, "pages": text.pages}
        if self._wanted.content != "none":
            data["text" if self._wanted.content == "text" else "markdown"] = text.markdown
        if text.truncated:
            data["truncated"] = ["content"]
        return Reading(body.id, data=_encode(data).decode())

    def _plain_text(self, body: Body) -> Reading:
        wanted = self._wanted
        data = plain_data(body.body, body.charset, body.content_type, wanted.content, wanted.max_content)
        return Reading(body.id, data=_encode(data).decode())

    def _addresses(self, body: Body) -> int:
        """The characters of all URLs of a sitemap: as for a page, few bytes must not become many rows."""
        if not body.wire_bytes:
            return MAX_ADDRESSES
        return min(MAX_ADDRESSES, self._tuning.page_bytes + self._tuning.page_factor * body.wire_bytes)


def timed_reading(reader: PageReader, body: Body) -> Reading:
    """Read a page in this process, and measure the time: for metrics, and to know who has slow pages.

    Only CPU time makes a page slow: on a busy machine every page takes long.
    """
    began = time.perf_counter()
    reader.clock.begin(began)
    reading = reader.reading_of(body)
    took = time.perf_counter() - began
    PARSE_SECONDS.observe(took, role())
    if took >= SLOW and (used := reader.clock.since(began)) >= SLOW:
        reading.seconds = used
    return reading


def _sitemap(body: Body, sitemap: Sitemap) -> Reading:
    """A list of pages, most important first, or of further sitemaps. There is nothing to store."""
    if sitemap.kind in ("index", "unknown"):
        further = [entry.url for entry in sitemap.entries] if sitemap.kind == "index" else []
        return Reading(body.id, SITEMAP, sitemap.problem or None, sitemaps=further, names=packed_keys(further))
    entries = sorted(sitemap.entries, key=lambda entry: -(0.5 if entry.priority is None else entry.priority))
    listed = [entry.url for entry in entries]
    return Reading(body.id, SITEMAP, sitemap.problem or None, links=listed, names=packed_keys(listed))

"""What a job takes from a page besides its content: fields, facts, and what page hooks add. Pure, except for hooks.

An `Inspection` gets the parsed document of one page, and keeps what it found for the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from turbohtml import Document

from silkline.crawl.page_hooks import HOOK_FAILED, load_hooks, run_hooks
from silkline.crawl.plan import Plan
from silkline.model.hook import HookedPage
from silkline.model.page import Page
from silkline.model.url import canonical
from silkline.parse.fields import MISSING, FieldReader
from silkline.parse.structured import Structured
from silkline.parse.xpath_cost import XPathCost

MAX_IMAGES: Final = 2_000
_MAX_ALT: Final = 1_000
_MAX_IMAGE_CHARACTERS: Final = 1_000_000
SUGGESTIONS: Final = "suggestions"
"""A fact for `silkline fields --suggest`, which no job has."""
READER_DIED: Final = "reader_died"
"""The error of all fields of a page whose reader died while it read them."""


class TooMuchForXPaths(Exception):
    """Some XPath of the job may take too long on this page."""


class Extraction:
    """Prepared once for all pages of a job. `careful`: refuse pages on which XPaths may take too long."""

    def __init__(self, plan: Plan, *, careful: bool = False) -> None:
        self._plan = plan
        self._costly = costly_xpaths(plan) if careful else None
        self._reader = FieldReader(plan.fields, plan.each) if plan.fields else None
        self._hooks = load_hooks(plan.hooks)
        self.facts = frozenset(plan.facts)

    def inspection(self, url: str, headers: Mapping[str, str], *, bare: bool) -> Inspection:
        """For one page. `bare`: a process died while it read the page, so read neither fields nor run hooks."""
        return Inspection(self, url, headers, bare=bare)

    def read_fields(self, document: Document, url: str, base: str, *, bare: bool) -> tuple[dict[str, Any], bytes]:
        if self._reader is None:
            return {}, b""
        if bare:
            error = {"field": "", "error": READER_DIED, "raw": None}
            return {"field_errors": [error]}, bytes([MISSING]) * len(self._plan.fields)
        if self._costly and self._costly.is_too_much(document):
            raise TooMuchForXPaths
        return self._reader.read(document, url, base)

    @property
    def hooks(self) -> Any:
        return self._hooks


def costly_xpaths(plan: Plan) -> XPathCost:
    return XPathCost(field.path for field in plan.fields if field.source == "xpath")


class Inspection:
    """Called once with the document of a page; then it has what was found."""

    def __init__(self, extraction: Extraction, url: str, headers: Mapping[str, str], *, bare: bool) -> None:
        self._extraction = extraction
        self._url = url
        self._headers = headers
        self._bare = bare
        self.data: dict[str, Any] = {}
        self.tally = b""
        self.links: list[str] = []
        self.reason: str | None = None
        self.detail: str | None = None

    def __call__(self, document: Document, title: str, base: str) -> None:
        extraction = self._extraction
        self.data, self.tally = extraction.read_fields(document, self._url, base, bare=self._bare)
        if "images" in extraction.facts:
            self.data["images"] = _images(document, base)
        if "structured" in extraction.facts:
            self.data["structured"] = Structured(document).everything()
        if SUGGESTIONS in extraction.facts:
            from silkline.parse.field_suggestions import suggest

            self.data[SUGGESTIONS] = [
                {**group._asdict(), "fields": [each._asdict() for each in group.fields]}
                for group in suggest(document, base)
            ]
        if "headers" in extraction.facts:
            self.data["headers"] = dict(self._headers)
        if extraction.hooks:
            self._run_hooks(document, title)

    def _run_hooks(self, document: Document, title: str) -> None:
        if self._bare:
            self.reason, self.detail = HOOK_FAILED, "a process died while it read this page with its hooks"
            return
        page = HookedPage(self._url, self._headers, document, {"title": title, **self.data})
        added = run_hooks(self._extraction.hooks, page)
        self.reason, self.detail, self.links = added.reason, added.detail or None, added.links
        self.data |= added.data

    def facts_of(self, page: Page) -> dict[str, Any]:
        """The facts that the parsed page has already."""
        facts = self._extraction.facts
        found: dict[str, Any] = {}
        if "links" in facts:
            found["outlinks"] = [
                {"url": each.url, "text": each.text, "rel": each.rel or ("" if each.kind == "a" else each.kind)}
                for each in page.links
            ]
        if "hreflang" in facts:
            found["hreflang"] = [{"language": language, "url": url} for language, url in page.hreflang]
        if "headings" in facts:
            found["headings"] = page.headings
        return found


def _images(document: Document, base: str) -> list[dict[str, str | None]]:
    """The images of a page with their texts. An address that is not http(s), such as `data:`, is left out."""
    found: list[dict[str, str | None]] = []
    left = _MAX_IMAGE_CHARACTERS
    for element in document.find_all("img", limit=MAX_IMAGES):
        source = element.attr("src") or element.attr("data-src") or ""
        address = canonical(source, base=base) if source and len(source) < 8_192 else None
        if address is not None:
            left -= len(address)  # with a long base, a short address becomes a long one
            if left < 0:
                break
            alt = element.attr("alt")
            found.append({"src": address, "alt": None if alt is None else alt[:_MAX_ALT].replace("\x00", "")})
    return found

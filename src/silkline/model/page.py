"""The facts that parsing finds in a page, as values. No I/O, no parser.

No string contains NUL or lone surrogates, so that both databases and JSON accept it.
"""

from typing import Any, Literal

import msgspec

from silkline.model.url import KEEP_ALL, UrlRules

Kind = Literal["html", "xml", "feed", "text", "pdf", "image", "other"]
Content = Literal["markdown", "full", "text", "html", "none"]
LinkKind = Literal["a", "area", "frame", "refresh", "canonical", "alternate", "feed", "next", "prev"]


class Link(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One link of a page: its canonical URL, and what the page says about it."""

    url: str
    kind: LinkKind = "a"
    rel: str = ""
    text: str = ""
    """The text of the link, if facts are wanted; for an `alternate` its language."""

    @property
    def nofollow(self) -> bool:
        return bool(self.rel) and "nofollow" in self.rel.lower().split()


class RobotsDirectives(msgspec.Struct, frozen=True):
    """The instructions for crawlers in meta tags and X-Robots-Tag headers."""

    noindex: bool = False
    nofollow: bool = False
    directives: tuple[str, ...] = ()
    """All instructions that apply to Silkline, in lower case, for reports."""


class Wanted(msgspec.Struct, frozen=True):
    """What to extract from a page. Less is faster."""

    content: Content = "none"
    outline: bool = False
    """Description, headings and language, besides links, title and robots."""
    facts: bool = False
    """The outline, and also JSON-LD, OpenGraph, other languages and the texts of links."""
    keep: tuple[str, ...] = ()
    """CSS selectors: the content is what they match."""
    drop: tuple[str, ...] = ()
    """CSS selectors: what they match is never content."""
    links_in_text: bool = True
    """Whether Markdown and HTML keep their links; otherwise only the words of the links."""
    images: bool = True
    link_titles: bool = False
    simhash: bool = False
    scripts: bool = False
    """Whether to check if the page needs its scripts."""
    rules: UrlRules = KEEP_ALL
    agent: str = "silkline"
    """The name of Silkline in robots tags, in lower case."""
    max_body: int = 10_000_000
    max_links: int = 10_000
    max_content: int = 2_000_000
    """The maximum number of characters of text or Markdown."""


class Extraction(msgspec.Struct, frozen=True):
    """How the content of a page was chosen."""

    kept: float
    """The share of the visible text that the content has, 0 to 1."""
    words: int
    """The number of words that were kept."""
    rule: str
    """What chose it: the sort of page (text, posts, cards, sections, reference), or full, keep, metadata."""
    confidence: float
    """How good the choice probably is, 0 to 1."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of one HTML page."""

    url: str
    base: str
    """The base of relative links: `<base href>`, or the URL of the page."""
    charset: str = ""
    title: str = ""
    links: list[Link] = []
    robots: RobotsDirectives = RobotsDirectives()
    canonical: str | None = None
    refresh: tuple[float, str] | None = None
    """Seconds and target of a meta refresh."""
    content_hash: int = 0
    """xxh3-64 of the visible text, signed."""
    simhash: int | None = None
    """64 bits, signed; near-duplicates differ in few of them."""
    description: str = ""
    language: str = ""
    headings: list[tuple[int, str]] = []
    anchors: list[str] = []
    """For each heading the fragment that leads to it, or an empty text."""
    hreflang: list[tuple[str, str]] = []
    json_ld: list[Any] = []
    opengraph: dict[str, str] = {}
    markdown: str = ""
    text: str = ""
    html: str = ""
    extraction: Extraction | None = None
    needs_scripts: bool = False
    truncated: tuple[str, ...] = ()
    """What was cut because it exceeds a limit: body, formatting, links, content."""

"""Collects links, title, meta tags and headings in one walk over a document, in document order.

The number of links, the length of a URL and the length of a label have limits. Links have a text only if their words
are wanted. A link or heading that contains another one gets no text. So no text is read twice, and the work is
proportional to the size of the page.
"""

from typing import Final

from turbohtml import Document, Element, Namespace, Node, Text

from silkline.model.page import Link, LinkKind
from silkline.model.url import UrlRules
from silkline.parse.first_children import first_children
from silkline.parse.footnotes import is_certain_label
from silkline.parse.link_resolution import resolve

_MAX_HREF: Final = 16_384
_MAX_LABEL: Final = 1_000
# Of all links together. In JSON a control character takes six bytes.
_MAX_LABELS: Final = 1_000_000
_SHORT_REL: Final = 50
_MAX_META: Final = 4 * _MAX_LABEL
_MAX_HEADINGS: Final = 500
_MAX_METAS: Final = 500
# Each relative link repeats the URL of its page, which may have 8,000 characters.
_MAX_ADDRESSES: Final = 4_000_000
_CHUNK: Final = 500

_ALWAYS: Final = ("a", "area", "iframe", "frame", "link", "meta", "title", "base", "script", "style")
_HEADINGS: Final = ("h1", "h2", "h3", "h4", "h5", "h6")
_PERMALINKS: Final = " \u00b6\u00a7#\U0001f517"
_NEVER_TEXT: Final = " \u00b6\U0001f517"
_AROUND: Final = ("nav", "footer")
_AROUND_ROLES: Final = ("navigation", "contentinfo")
_SECTIONS: Final = ("section", "div", "article")
_FEW: Final = 4
_MAX_ANCHOR: Final = 200
_RELATIONS: Final[dict[str, LinkKind]] = {
    "canonical": "canonical",
    "alternate": "alternate",
    "next": "next",
    "prev": "prev",
    "previous": "prev",
}
# fmt: off
_NO_RELATIONS: Final = frozenset({
    "stylesheet", "preload", "icon", "shortcut icon", "apple-touch-icon", "preconnect", "dns-prefetch",
    "modulepreload",
})
# fmt: on
"""The most frequent relations that are no links to pages."""
_PLAIN_LINK: Final[tuple[LinkKind, str, str]] = ("a", "", "")
# A link to another form of the page is followed if it is a page: in another language, or for another device. Feeds are
# known as such and are not followed; embeddings (oEmbed) and data (JSON, XML, PDF) are no links.
_PAGE_TYPES: Final = ("text/html", "application/xhtml+xml")
_FEED_TYPES: Final = ("application/rss+xml", "application/atom+xml", "application/feed+json")


class Harvest:
    """The facts that the walk found. `truncated` means that there were too many links, or a link that is too long."""

    def __init__(self, document: Document, max_links: int, *, headings: bool, words: bool, notes: bool = False) -> None:
        self.title = ""
        self.base_href: str | None = None
        self.refreshes = False
        self.has_notes = False
        """Whether there is a link in the page that may be a reference to a footnote, if it is looked for."""
        self.truncated = False
        self.scripts: list[Element] = []
        """Scripts and styles, up to the place where there were too many links."""
        self.metas: list[tuple[str, str]] = []
        """Names and contents, as they are in the page."""
        self.headings: list[tuple[int, str]] = []
        self.anchors: list[str] = []
        self._hrefs: list[str] = []
        self._urls: dict[str, str | None] = {}
        self._said: list[tuple[LinkKind, str, str]] = []
        self._around: dict[Node, bool] = {}
        self._links_left = max_links
        self._labels_left = _MAX_LABELS
        add_href, add_said = self._hrefs.append, self._said.append
        # A link in a template is a pattern (`{{url}}`), not an address.
        if next(document.iter_elements("template"), None) is not None:
            document.remove("template")
        for element in document.iter_elements((*_ALWAYS, *_HEADINGS) if headings else _ALWAYS):
            tag = element.tag
            if tag == "script" or tag == "style":
                self.scripts.append(element)
            elif tag == "a":
                href = element.attr("href")
                if href is not None and href[:1] != "#":
                    rel = element.attr("rel")
                    text = label(element.text) if words and element.find("a") is None else ""
                    if rel is None and not text and len(href) <= _MAX_HREF and self._links_left > 0:
                        # Most links: a call for each of them would take a fifth of the time of the walk.
                        self._links_left -= 1
                        add_href(href)
                        add_said(_PLAIN_LINK)
                    else:
                        self._add(href, "a", label(rel), text)
                elif notes and href is not None and len(href) > 1 and is_certain_label(element):
                    self.has_notes, notes = True, False
            else:
                self._pick(tag, element)
            if self._links_left < 0:
                break

    def links(self, base: str, rules: UrlRules) -> list[Link]:
        """The links with their canonical URLs, without links that are not http(s) URLs."""
        urls = self._urls
        different = list(dict.fromkeys(self._hrefs))  # a quarter of the links of a page are repeated
        left = _MAX_ADDRESSES
        for start in range(0, len(different), _CHUNK):
            chunk = different[start : start + _CHUNK]
            resolved = resolve(base, chunk, rules)
            left -= sum(map(len, filter(None, resolved)))
            if left < 0:
                break
            urls.update(zip(chunk, resolved, strict=True))
        known = [urls.get(href, "") for href in self._hrefs]
        if "" not in known and sum(map(len, filter(None, known))) <= _MAX_ADDRESSES:  # all pages but hostile ones
            return [
                Link(url) if said is _PLAIN_LINK else Link(url, *said)
                for url, said in zip(known, self._said, strict=True)
                if url
            ]
        links, left = [], _MAX_ADDRESSES
        for href, said in zip(self._hrefs, self._said, strict=True):
            url = urls.get(href, "")
            if url:
                left -= len(url)
                links.append(Link(url, *said))
            if url == "" or left < 0:
                self.truncated = True
                break
        return links

    def resolved(self) -> dict[str, str | None]:
        """The canonical URL of each address, after a call of `links`."""
        return self._urls

    def meta(self, name: str) -> str:
        """The content of the first meta tag with this name that is not empty."""
        found = next((content for key, content in self.metas if key == name and content.strip()), "")
        return label(found, _MAX_META)

    def named(self, starts: tuple[str, ...]) -> dict[str, str]:
        """The contents of the meta tags whose names start so; of tags with the same name the first."""
        return {key: label(content, _MAX_META) for key, content in reversed(self.metas) if key.startswith(starts)}

    def _pick(self, tag: str, element: Element) -> None:
        if tag == "area":
            self._add(element.attr("href"), "area", label(element.attr("rel")), label(element.attr("alt")))
        elif tag == "meta":
            self._add_meta(element)
        elif tag == "link":
            self._add_relation(element)
        elif tag == "title":
            if not self.title and element.namespace is Namespace.HTML:
                self.title = label(element.text)
        elif tag == "base":
            if self.base_href is None:
                self.base_href = element.attr("href")
        elif tag == "iframe" or tag == "frame":
            self._add(element.attr("src"), "frame")
        elif len(self.headings) < _MAX_HEADINGS:
            inner = next(element.iter_elements(_HEADINGS), None)
            if not self._in_navigation(element):
                self.headings.append((int(tag[1]), _heading_text(element) if inner is None else ""))
                self.anchors.append(_anchor(element))

    def _in_navigation(self, heading: Element) -> bool:
        """Whether the heading is in a menu or a footer of the page. Each element above headings is looked at once."""
        known, chain = self._around, []
        above: Node | None = heading.parent
        while isinstance(above, Element) and above not in known:
            chain.append(above)
            if above.tag in _AROUND or above.attr("role") in _AROUND_ROLES:
                known[above] = True
                break
            above = above.parent
        inside = isinstance(above, Element) and known[above]
        for element in chain:
            known[element] = inside
        return inside

    def _add(self, href: str | None, kind: LinkKind, rel: str = "", text: str = "") -> None:
        if href is None:
            return
        if len(href) > _MAX_HREF:
            self.truncated = True
            return
        self._links_left -= 1
        if self._links_left < 0:
            self.truncated = True
            return
        self._labels_left -= len(rel) + len(text)
        if self._labels_left < 0:
            self.truncated = True
            rel, text = rel[:_SHORT_REL], ""
        self._hrefs.append(href)
        self._said.append((kind, rel, text))

    def _add_relation(self, element: Element) -> None:
        rel = element.attr("rel")
        if rel is None or rel in _NO_RELATIONS:
            return
        rel = label(rel)
        words = rel.lower().split()
        kind = next((_RELATIONS[word] for word in words if word in _RELATIONS), None)
        if kind == "alternate":
            form = (element.attr("type") or "").partition(";")[0].strip().lower()
            if form in _FEED_TYPES or "feed" in words:
                kind = "feed"
            elif (form and form not in _PAGE_TYPES) or "stylesheet" in words:  # another format of this page
                return
        if kind is not None:
            self._add(element.attr("href"), kind, rel, label(element.attr("hreflang") or element.attr("title")))

    def _add_meta(self, element: Element) -> None:
        name = element.attr("name") or element.attr("property")
        if name and len(self.metas) < _MAX_METAS:
            self.metas.append((label(name).lower(), (element.attr("content") or "")[: 4 * _MAX_META]))
        if (element.attr("http-equiv") or "").lower() == "refresh":
            self.refreshes = True


def _heading_text(heading: Element) -> str:
    """The text without the sign of a permalink. A number sign is one only if it is a link: "C#" is a language."""
    text = label(heading.text)
    if not text or (text[0] not in _PERMALINKS and text[-1] not in _PERMALINKS):
        return text
    for anchor in heading.find_all("a", limit=_FEW):
        sign = label(anchor.text)
        if sign and not sign.strip(_PERMALINKS):
            text = text.removesuffix(sign).removeprefix(sign)
    return text.strip(_NEVER_TEXT)


def _anchor(heading: Element) -> str:
    """The fragment that leads to the heading: its name, that of a link in it, or that of the section it starts."""
    name = heading.attr("id")
    if not name and (inner := heading.find("a")) is not None:
        href = inner.attr("href") or ""
        name = inner.attr("id") or inner.attr("name") or (href[1:] if href[:1] == "#" else "")
    above = heading.parent
    if not name and isinstance(above, Element) and above.tag in _SECTIONS and (named := above.attr("id")):
        # Before the heading there may be empty elements, which are targets of links.
        first = next((child for child in first_children(above, 2 * _FEW) if _is_shown(child)), None)
        name = named if first is heading else None
    return name if name and len(name) <= _MAX_ANCHOR and len(name.split()) == 1 else ""


def _is_shown(node: Node) -> bool:
    if isinstance(node, Element):
        return node.tag not in ("a", "span") or next(iter(node.descendants), None) is not None
    return isinstance(node, Text) and bool(node.data.strip())


def label(text: str | None, longest: int = _MAX_LABEL) -> str:
    """A short text on one line."""
    return " ".join(text[: 4 * longest].split())[:longest] if text else ""

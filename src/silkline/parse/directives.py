"""Robots directives of one page, from `<meta name=robots>` and the X-Robots-Tag header.

A directive without a name is for all crawlers. A directive with a name applies if the name is ours. All directives that
apply are combined, as search engines do. The robots.txt of a host is not read here.
"""

from collections.abc import Iterable
from typing import Final

from silkline.model.page import RobotsDirectives

_WITH_VALUE: Final = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_KEPT: Final = 32


def robots(metas: Iterable[tuple[str, str]], headers: Iterable[str], agent: str) -> RobotsDirectives:
    """The directives for `agent` from the meta tags (name, content) and the X-Robots-Tag values."""
    found: list[str] = []
    for name, content in metas:
        if name.lower() in ("robots", agent):
            found += _split(content)
    for header in headers:
        found += _addressed_to(agent, header)
    if not found:
        return _NO_WISHES
    words = frozenset(found)
    return RobotsDirectives(
        noindex=bool(words & {"noindex", "none"}),
        nofollow=bool(words & {"nofollow", "none"}),
        directives=tuple(dict.fromkeys(found))[:_KEPT],
    )


_NO_WISHES: Final = RobotsDirectives()


def _split(content: str) -> list[str]:
    return [word for word in (part.strip().lower()[:100] for part in content[:2000].split(",")) if word]


def _addressed_to(agent: str, header: str) -> list[str]:
    """The directives of one header value for all crawlers or for us, unlike `otherbot: noindex, nofollow`."""
    ours, found = True, []
    for part in _split(header):
        name, colon, rest = part.partition(":")
        if colon and name.strip() not in _WITH_VALUE:
            ours, part = name.strip() == agent, rest.strip()
        if ours and part:
            found.append(part)
    return found

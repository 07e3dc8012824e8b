"""Judges by class and id whether an element is part of the content.

Names are split into words (`articleBody`, `article-body` and `article_body` have the same two words). On most sites,
some words mean elements around the content. They are the words that web developers use, most of them English.
"""

import re
from enum import IntEnum
from functools import lru_cache
from typing import Final


class Suspect(IntEnum):
    """How probable it is, by its name, that an element is not part of the content."""

    NO = 0
    LEAD = 1
    """A teaser of another page, or of this page if it is under the headline."""
    SMALL = 2
    """Information about the content, if it is short."""
    YES = 3
    COMMENTS = 4


# fmt: off
_COMMENTS: Final = frozenset({
    "comment", "comments", "commentlist", "commentaires", "kommentar", "kommentare", "komentarze", "disqus", "respond",
})
_SURE: Final = frozenset({
    "nav", "navi", "navigation", "navbar", "menu", "submenu", "menubar", "breadcrumb", "breadcrumbs", "crumb", "footer",
    "sidebar", "share", "sharing", "shares", "shariff", "sharedaddy", "addthis", "addtoany", "social", "socials",
    "related", "relatedposts", "similar", "reply", "discussion", "forum", "newsletter", "subscribe", "subscription",
    "signup", "cookie", "cookies", "consent", "gdpr", "banner", "advert", "advertisement", "ad", "ads", "adv", "adbox",
    "advertising", "anzeige", "werbung", "sponsor", "sponsored", "promotion", "outbrain", "taboola", "recommend",
    "recommended", "recommendation", "recommendations", "recirc", "trending", "popular", "mostread", "pagination",
    "pager", "paging", "toolbar", "login", "signin", "register", "popup", "modal", "lightbox", "tooltip", "copyright",
    "imprint", "rating", "ratings", "vote", "widget", "widgets", "tagcloud", "authorbox", "btn", "cta", "search",
    "searchform", "cart", "basket", "carousel", "slider", "slideshow", "thumbnails", "postmeta", "feedback", "donate",
    "donation", "noprint", "nomobile", "topbar", "masthead",
})
_SMALL: Final = frozenset({
    "caption", "meta", "metadata", "infos", "author", "authors", "autor", "bio", "byline", "credit", "credits", "print",
    "tags", "keywords", "contact", "abo", "promo", "promoted", "timestamp", "dateline", "overlay",
})
_LEAD: Final = frozenset({"teaser", "teasers"})
_HIDDEN: Final = frozenset({
    "hidden", "hide", "is-hidden", "visually-hidden", "visuallyhidden", "sr-only", "screen-reader-text", "invisible",
    "d-none", "skip-link",
})
# fmt: on
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LONGEST: Final = 400


@lru_cache(maxsize=4096)
def suspicion(names: str) -> Suspect:
    """The verdict on the classes or the id of an element: the worst verdict of all names."""
    worst = Suspect.NO
    for name in names[:_LONGEST].split():
        verdict = _verdict(name)
        if verdict > worst:
            worst = verdict
    return worst


@lru_cache(maxsize=32768)
def _verdict(name: str) -> Suspect:
    """The verdict on one name. Cached, because sites use the same names many times and share many."""
    words = {word.lower() for word in _WORD.findall(name)}
    if words & _COMMENTS:
        return Suspect.COMMENTS
    if words & _SURE or name.lower() in _HIDDEN:
        return Suspect.YES
    if words & _SMALL:
        return Suspect.SMALL
    return Suspect.LEAD if words & _LEAD else Suspect.NO

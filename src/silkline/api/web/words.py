"""Words for values of the ledger on the page. `model.reasons` has the meanings of the reasons."""

from __future__ import annotations

from typing import Final

from silkline.model import reasons

VIAS: Final = {
    "seed": "a seed",
    "robots": "robots.txt",
    "sitemap": "a sitemap",
    "sitemap_index": "a sitemap",
    "redirect": "a redirect",
    "link": "a link",
    "foreign": "another host",
}


def via(found_via: str) -> str:
    return VIAS.get(found_via, found_via)


FILTERS: Final = {"meaning": reasons.on_page, "via": via}

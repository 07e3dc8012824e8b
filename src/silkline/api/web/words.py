"""The machine-readable reasons of the ledger, in a few words each, for people who meet them for the first time."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

REASONS: Final = {
    "bad_url": "not a web address",
    "bad_request": "the request cannot be sent",
    "scheme_blocked": "neither http nor https",
    "address_blocked": "a private address: the operator can allow it with the setting api_allow_private",
    "dns_failed": "its host could not be looked up",
    "dns_timeout": "looking up its host took too long",
    "host_unknown": "there is no such host",
    "host_unavailable": "its host failed too often, or asked for too long a wait",
    "connect_failed": "nobody answers there",
    "connect_timeout": "nobody answered in time",
    "tls_failed": "no secure connection could be made",
    "proxy_failed": "the proxy did not do its part",
    "timeout": "the answer took too long",
    "reset": "the server broke the connection off",
    "truncated": "the answer ended early",
    "bad_response": "the answer is not HTTP",
    "headers_too_large": "the headers are too large",
    "body_too_large": "the answer is too large",
    "bad_encoding": "the answer cannot be unpacked",
    "memory_full": "too many large answers came at once",
    "bad_redirect": "it redirects to no web address",
    "redirect_loop": "it redirects in a circle",
    "too_many_redirects": "it redirects too often",
    "renderer_missing": "its scripts cannot run: there is no browser",
    "render_busy": "no browser was free for it in time",
    "render_crashed": "it brought the browser down",
    "render_failed": "the browser could not show it",
    "render_timeout": "its scripts do not come to an end",
    "render_too_large": "its scripts make it too large",
    "parse_failed": "it could not be read",
    "reader_died": "reading it took too long, took too much memory, or crashed the reader",
    "robots": "robots.txt forbids it",
    "robots_unavailable": "its robots.txt could not be had",
    "out_of_scope": "outside of this crawl",
    "excluded": "excluded by a pattern",
    "too_deep": "deeper than this crawl goes",
    "over_limit": "the crawl had reached its limit of pages",
    "over_duration": "the time of the crawl was up",
    "trap": "looks like a trap without end",
    "redirected": "led elsewhere, which was followed",
    "sitemap": "a sitemap: read for its links",
    "noindex": "asks not to be stored",
    "not_a_page": "neither a page nor a document",
}
VIAS: Final = {
    "seed": "the start",
    "robots": "robots.txt",
    "sitemap": "a sitemap",
    "sitemap_index": "a sitemap",
    "redirect": "a redirect",
    "link": "a link",
}


def meaning(reason: str | None) -> str:
    """What a reason means; empty for one that is not in the book, such as that of a plugin."""
    if reason and reason.startswith("http_") and reason[5:].isdecimal() and len(reason) == 8:
        try:
            return f"the server says: {HTTPStatus(int(reason[5:])).phrase}"
        except ValueError:
            return "the server answers with an error"
    return REASONS.get(reason or "", "")


def via(found_via: str) -> str:
    return VIAS.get(found_via, found_via)


FILTERS: Final = {"meaning": meaning, "via": via}

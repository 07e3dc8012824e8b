"""What each reason of the ledger means, for people: the one text that the command line and the web page show.

Advice depends on where a person reads it, so it stands apart: options for the command line, settings for the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

MEANINGS: Final = {
    "bad_url": "it is not a web address",
    "bad_request": "the request cannot be sent",
    "scheme_blocked": "only http and https are fetched",
    "address_blocked": "its address is private or a metadata service",
    "dns_failed": "its host could not be looked up just now",
    "dns_timeout": "its host could not be looked up in time",
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
    "headers_too_large": "the headers of the answer are too large",
    "body_too_large": "the answer is too large",
    "bad_encoding": "the answer cannot be decompressed",
    "too_many_chunks": "the answer came in too many small pieces",
    "memory_full": "too many large answers came at once",
    "bad_redirect": "it redirects to something that is no web address",
    "redirect_loop": "it redirects in a circle",
    "too_many_redirects": "it redirects too often",
    "renderer_missing": "its scripts cannot run, for there is no browser",
    "render_busy": "no browser was free for it in time",
    "render_crashed": "it brought the browser down",
    "render_failed": "the browser could not show it",
    "render_refused": "the browser did not take the answer of the server",
    "render_timeout": "its scripts do not come to an end",
    "render_too_large": "its scripts make it too large",
    "parse_failed": "it could not be understood",
    "reader_died": "reading it took too long, took too much memory, or crashed the reader",
    "not_text": "there is no text in it",
    "robots": "robots.txt does not allow it",
    "robots_unavailable": "its robots.txt cannot be read, so nothing is fetched",
    "out_of_scope": "it is outside of this crawl",
    "excluded": "a pattern excludes it",
    "too_deep": "it is deeper than this crawl goes",
    "over_limit": "the crawl had reached its limit of pages",
    "over_duration": "the time of the crawl was up",
    "trap": "it looks like a trap without end",
    "redirected": "it led elsewhere, which was followed",
    "sitemap": "it is a sitemap, read for its links",
    "noindex": "it asks not to be stored",
    "not_a_page": "it is neither a page nor a document",
}
OPTIONS: Final = {
    "bad_request": "look at the headers",
    "address_blocked": "allow it with --allow-private ADDRESS",
    "robots": "--ignore-robots asks all the same",
    "robots_unavailable": "--ignore-robots asks all the same",
}
SETTINGS: Final = {"address_blocked": "the operator can allow it with the setting api_allow_private"}


def meaning(reason: str | None, advice: Mapping[str, str]) -> str:
    """What a reason means, and what helps; empty for one that is not ours, such as that of a plugin."""
    reason = reason or ""
    if reason.startswith("http_") and reason[5:].isdecimal() and len(reason) == 8:
        return _status(int(reason[5:]))
    words = MEANINGS.get(reason, "")
    return f"{words}; {advice[reason]}" if words and reason in advice else words


def at_command_line(reason: str, detail: str | None = None) -> str:
    """Why a page could not be had, with the option that helps; the reason itself where it is not ours."""
    words = meaning(reason, OPTIONS) or reason.replace("_", " ")
    return f"{words} ({detail})" if detail else words


def on_page(reason: str | None) -> str:
    """What the web page says beside a reason."""
    return meaning(reason, SETTINGS)


def _status(status: int) -> str:
    try:
        return f"the server answers {status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"the server answers {status}"

"""The meaning of each reason in the ledger, as a text that the command line and the web page both show.

The advice is separate, because it differs: options for the command line, settings for the web page.
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
    "address_busy": "too many hosts with the same address were fetched at the same time",
    "dns_failed": "the lookup of its host failed",
    "dns_timeout": "the lookup of its host took too long",
    "host_unknown": "there is no such host",
    "host_unavailable": "its host failed too often, or asked to wait too long",
    "connect_failed": "the connection failed",
    "connect_timeout": "the connection took too long",
    "tls_failed": "a secure connection could not be made",
    "proxy_failed": "the proxy failed",
    "timeout": "the response took too long",
    "reset": "the server closed the connection",
    "truncated": "the response ended too early",
    "bad_response": "the response is not valid",
    "headers_too_large": "the headers of the response are too large",
    "body_too_large": "the response is too large",
    "bad_encoding": "the response cannot be decompressed",
    "memory_full": "too many large responses came at the same time",
    "bad_redirect": "it redirects to something that is not a web address",
    "too_many_chunks": "the response came in too many small pieces",
    "redirect_loop": "it redirects in a circle",
    "too_many_redirects": "it redirects too often",
    "renderer_missing": "its scripts cannot run, because there is no browser",
    "render_busy": "no browser was free for it in time",
    "render_crashed": "the browser crashed while it rendered the page",
    "render_failed": "the browser could not render it",
    "render_timeout": "its scripts did not end in time",
    "render_refused": "the browser refused the response of the server",
    "render_too_large": "its scripts make it too large",
    "parse_failed": "it could not be parsed",
    "reader_died": "parsing it took too long, took too much memory, or crashed the parser",
    "not_text": "there is no text in it",
    "robots": "robots.txt does not allow it",
    "robots_unavailable": "the robots.txt of its host could not be read, so nothing is fetched from that host",
    "out_of_scope": "it is outside the scope of this crawl",
    "excluded": "an include or exclude rule excludes it",
    "too_deep": "it is deeper than this crawl goes",
    "over_limit": "the crawl reached its limit of pages",
    "over_duration": "the crawl reached its time limit",
    "trap": "it looks like part of an endless trap",
    "redirected": "it redirects to another URL, which was followed",
    "sitemap": "it is a sitemap, read for its links",
    "hook_failed": "a page hook failed on it",
    "hook_refused": "a page hook refused it",
    "html_damaged": "its stored HTML cannot be read",
    "not_kept": "neither its HTML nor a WARC record of it is on this machine",
    "noindex": "it asks not to be stored",
    "not_a_page": "it is neither a page nor a document",
}
OPTIONS: Final = {
    "bad_request": "check the headers",
    "address_blocked": "allow it with --allow-private ADDRESS",
    "robots": "--ignore-robots fetches it anyway",
    "robots_unavailable": "--ignore-robots fetches it anyway",
}
SETTINGS: Final = {"address_blocked": "the operator can allow it with the setting api_allow_private"}


def meaning(reason: str | None, advice: Mapping[str, str]) -> str:
    """What a reason means, and what helps; empty for an unknown reason, such as one of a plug-in."""
    reason = reason or ""
    if reason.startswith("http_") and reason[5:].isdecimal() and len(reason) == 8:
        return _status(int(reason[5:]))
    words = MEANINGS.get(reason, "")
    return f"{words}; {advice[reason]}" if words and reason in advice else words


def at_command_line(reason: str, detail: str | None = None) -> str:
    """Why a page was not fetched, with the option that helps; for an unknown reason, the reason itself."""
    words = meaning(reason, OPTIONS) or reason.replace("_", " ")
    return f"{words} ({detail})" if detail else words


def on_page(reason: str | None) -> str:
    """The text of the web page for a reason."""
    return meaning(reason, SETTINGS)


def unreachable(service: str, reason: str | None, detail: str | None = None) -> str:
    """Why a service could not be reached."""
    words = MEANINGS.get(reason or "", (reason or "").replace("_", " "))
    why = f"{words} ({detail})" if words and detail else words
    return f"{service} cannot be reached: {why}" if why else f"{service} cannot be reached"


def _status(status: int) -> str:
    try:
        return f"the server answered {status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"the server answered {status}"

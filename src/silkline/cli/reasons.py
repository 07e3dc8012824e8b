"""The reasons of the ledger in words, with what a person can do about each."""

from __future__ import annotations

from http import HTTPStatus

_WORDS = {
    "bad_url": "it is not a web address",
    "bad_request": "the request cannot be sent; look at the headers",
    "scheme_blocked": "only http and https are fetched",
    "address_blocked": "its address is private or a metadata service; allow it with --allow-private ADDRESS",
    "dns_failed": "its host could not be looked up just now",
    "dns_timeout": "its host could not be looked up in time",
    "host_unknown": "there is no such host",
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
    "memory_full": "too many large answers came at once",
    "bad_redirect": "it redirects to something that is no address",
    "redirect_loop": "it redirects in a circle",
    "too_many_redirects": "it redirects too often",
    "renderer_missing": "its scripts cannot run, for there is no browser",
    "render_busy": "no browser was free for it in time",
    "render_crashed": "it brought the browser down",
    "render_failed": "the browser could not show it",
    "render_timeout": "its scripts do not come to an end",
    "render_too_large": "its scripts make it too large",
    "reader_died": "it cannot be read within the limits of time and memory",
    "robots": "robots.txt does not allow it; --ignore-robots asks all the same",
    "robots_unavailable": "its robots.txt cannot be read, so nothing is fetched; --ignore-robots asks all the same",
    "not_text": "there is no text in it",
    "parse_failed": "it could not be understood",
}


def in_words(reason: str, detail: str | None = None) -> str:
    """Why a page could not be had, for a person."""
    if reason.startswith("http_") and reason[5:].isdigit():
        return _status(int(reason[5:]), detail)
    words = _WORDS.get(reason, reason.replace("_", " "))
    return f"{words} ({detail})" if detail else words


def _status(status: int, detail: str | None) -> str:
    try:
        phrase = f" {HTTPStatus(status).phrase}"
    except ValueError:
        phrase = ""
    return f"the server answers {status}{phrase}" + (f" ({detail})" if detail else "")

"""Builds the ledger entry and the result of a fetched page. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from silkline.crawl.messages import PageOutcome
from silkline.crawl.page_hooks import HOOK_FAILED
from silkline.crawl.reading import Body, Reading
from silkline.crawl.sitemap_limits import urls_in
from silkline.crawl.url_queue import FrontierUrl
from silkline.model import fetched as reasons
from silkline.model.fetched import Fetched
from silkline.model.ledger import DONE, FAILED, REDIRECTED, SKIPPED, NewResult, Settled
from silkline.model.url import canonical, packed_keys, url_key
from silkline.page_files import told

_PERSONAL_HEADERS: Final = frozenset({"set-cookie", "set-cookie2", "authorization", "proxy-authenticate"})
_encode = msgspec.json.Encoder().encode


def body_of(entry: FrontierUrl, fetched: Fetched, *, simhash: bool, sitemap: bool, headers: bool = False) -> Body:
    """The page in the form for a reader. `headers`: it needs the headers of the response."""
    robots_tag = fetched.headers.get("x-robots-tag", "")
    base, body, charset = as_seen(entry.url, fetched)
    wire_bytes = fetched.wire_bytes if fetched.rendered is None else 0
    return Body(
        entry.id,
        entry.url,
        body,
        fetched.content_type,
        charset,
        robots_tag,
        simhash,
        sitemap,
        wire_bytes,
        base,
        public_headers(fetched.headers) if headers else {},
    )


def public_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of a response, with lower-case names, without those that identify a visitor."""
    return {name: value for name, value in headers.items() if name not in _PERSONAL_HEADERS}


def as_seen(url: str, fetched: Fetched) -> tuple[str, bytes, str]:
    """Base for links, body and charset of a page. If the page was rendered, they come from the browser.

    Scripts can set any address of their origin (`history.replaceState`). So that address is only used as base for
    links, and never as the address of the page in the cache.
    """
    shown = fetched.rendered
    if shown is None or shown.reason is not None:
        return url, fetched.body, fetched.charset
    return canonical(shown.url) or url, shown.body, "utf-8"


def all_wire_bytes(fetched: Fetched) -> int:
    """Bytes received over the network for a page, including by the browser."""
    return fetched.wire_bytes + (fetched.rendered.wire_bytes if fetched.rendered is not None else 0)


def rendering_of(fetched: Fetched) -> dict[str, Any]:
    """The fields of a result about rendering."""
    shown = fetched.rendered
    if shown is None:
        return {}
    if shown.reason is not None:
        return {"rendered": False, "render_failed": shown.reason, "render_detail": shown.detail[:500]}
    about: dict[str, Any] = {
        "rendered": True,
        "render_seconds": round(shown.seconds, 3),
        "render_requests": shown.requests,
        "render_bytes": shown.wire_bytes,
    }
    if shown.cut:
        about["render_cut"] = shown.cut
    if shown.files:
        about["files"] = told(shown.files)
    script_url = canonical(shown.url)
    if script_url is not None and script_url != canonical(fetched.url):
        about["script_url"] = script_url
    return about


def page_of(entry: FrontierUrl, fetched: Fetched, reading: Reading) -> PageOutcome:
    """The end of a URL that was read."""
    attempts = entry.attempts + 1
    if reading.reason is not None:
        state = FAILED if reading.reason in (reasons.READER_DIED, HOOK_FAILED) else SKIPPED
        settled = Settled(entry.id, state, reading.reason, reading.detail, attempts, fetched.status)
        return PageOutcome(settled, None, entry.depth, reading.names)
    settled = Settled(entry.id, DONE, None, None, attempts, fetched.status)
    return PageOutcome(settled, _result(entry, fetched, reading), entry.depth, reading.names, reading.tally)


def redirect_of(entry: FrontierUrl, fetched: Fetched, target: str) -> PageOutcome:
    """The end of a URL that redirects. The target is a separate URL."""
    settled = Settled(entry.id, SKIPPED, REDIRECTED, target, entry.attempts + 1, fetched.status)
    return PageOutcome(settled, None, entry.depth, packed_keys([target]))


def storable(detail: str | None) -> str | None:
    """Text of servers and libraries, shortened, and only with characters that both databases accept."""
    return (detail or "")[:1000].replace("\x00", "\ufffd").encode(errors="replace").decode() or None


def _result(entry: FrontierUrl, fetched: Fetched, reading: Reading) -> NewResult:
    """The result of a page. After redirects it has the URL first requested and the final one."""
    redirects = urls_in(entry.chain) if entry.chain else []
    asked = redirects[0] if redirects else entry.url
    metadata: dict[str, Any] = {
        "http_status": fetched.status,
        "content_type": fetched.content_type,
        "bytes": fetched.wire_bytes,
        "depth": entry.depth,
        "seconds": round(fetched.timings.total, 4),
        "first_byte": round(fetched.timings.first_byte, 4),
    }
    if redirects:
        metadata["redirected_from"] = redirects
    if fetched.rendered is not None:
        metadata.update(rendering_of(fetched))
    key = url_key(entry.url)
    return NewResult(
        url_id=entry.id,
        original_url=asked,
        original_key=key if asked is entry.url else url_key(asked),
        final_url=entry.url,
        final_key=key,
        data=reading.data,
        success=True,
        metadata=_encode(metadata).decode(),
    )

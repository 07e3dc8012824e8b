"""Turns a response or a failure of libcurl into a `Fetched`. Pure, except that it reads a finished handle."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

import pycurl  # type: ignore[import-untyped]

from silkline.fetch.decode import decode
from silkline.fetch.handle import Handle
from silkline.fetch.origin import join, locate
from silkline.fetch.settings import FetchSettings
from silkline.model import fetched
from silkline.model.fetched import Fetched, Request, Timings, http_reason

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
# Possessive, or a row of spaces would take quadratic time. Headers may have hundreds of kilobytes.
_CHARSET: Final = re.compile(r"""charset\s*+=[\s"']*+([^\s"';,]++)""", re.IGNORECASE)
_BLANK: Final = (b"\r\n", b"\n")
# These failures do not matter for an error status or a redirect, because the body is not needed.
_BODY_FAILURES: Final = frozenset({pycurl.E_PARTIAL_FILE, pycurl.E_WRITE_ERROR, pycurl.E_FILESIZE_EXCEEDED})
# Codes of libcurl without a name in pycurl.
_E_HTTP2_STREAM: Final = 92
_E_PROXY: Final = 97
_E_TOO_LARGE: Final = 100

_REASONS: Final = {
    pycurl.E_URL_MALFORMAT: fetched.BAD_URL,
    pycurl.E_COULDNT_RESOLVE_PROXY: fetched.PROXY_FAILED,
    pycurl.E_COULDNT_RESOLVE_HOST: fetched.DNS_FAILED,
    pycurl.E_COULDNT_CONNECT: fetched.CONNECT_FAILED,
    pycurl.E_PARTIAL_FILE: fetched.TRUNCATED,
    pycurl.E_SSL_CONNECT_ERROR: fetched.TLS_FAILED,
    pycurl.E_SSL_ENGINE_NOTFOUND: fetched.TLS_FAILED,
    pycurl.E_GOT_NOTHING: fetched.RESET,
    pycurl.E_SEND_ERROR: fetched.RESET,
    pycurl.E_RECV_ERROR: fetched.RESET,
    pycurl.E_SSL_CERTPROBLEM: fetched.TLS_FAILED,
    pycurl.E_SSL_CIPHER: fetched.TLS_FAILED,
    pycurl.E_PEER_FAILED_VERIFICATION: fetched.TLS_FAILED,
    pycurl.E_BAD_CONTENT_ENCODING: fetched.BAD_ENCODING,
    pycurl.E_FILESIZE_EXCEEDED: fetched.BODY_TOO_LARGE,
    pycurl.E_SSL_CACERT_BADFILE: fetched.TLS_FAILED,
    pycurl.E_SSL_ISSUER_ERROR: fetched.TLS_FAILED,
    pycurl.E_SSL_INVALIDCERTSTATUS: fetched.TLS_FAILED,
    _E_PROXY: fetched.PROXY_FAILED,
    _E_TOO_LARGE: fetched.HEADERS_TOO_LARGE,
    pycurl.E_HTTP2: fetched.RESET,
    _E_HTTP2_STREAM: fetched.RESET,
}


def outcome(handle: Handle, url: str, request: Request, settings: FetchSettings, code: int, message: str) -> Fetched:
    """The outcome of a finished transfer."""
    info = handle.easy.getinfo
    status = info(pycurl.RESPONSE_CODE)
    header_bytes = sum(map(len, handle.lines))
    version, headers = parse_headers(handle.lines)
    if handle.cut and handle.refusal == fetched.BODY_TOO_LARGE:
        code = 0  # we ended the transfer on purpose
    body, location = b"", None
    if header_bytes > settings.max_headers:
        reason: str | None = fetched.HEADERS_TOO_LARGE
        headers = {}
    elif not code and not _head_ended(handle.lines):  # libcurl accepts a connection that closes in the head
        reason, headers, message = fetched.TRUNCATED, {}, "the connection was closed within the response headers"
    elif handle.refusal == fetched.MEMORY_FULL and _is_page(status):  # even if the transfer ended without an error
        reason = fetched.MEMORY_FULL
    elif code and (_is_page(status) or code not in _BODY_FAILURES):
        reason = handle.refusal or _failure(code, message, info, bool(settings.proxy))
    else:
        reason, location = _verdict(status, headers, url, request)
        if location is None and handle.parts and not code:
            body, undecoded = _body(handle, headers, request.max_body or settings.max_body)
            reason = reason or undecoded
    content_type = headers.get("content-type", "")
    charset = _CHARSET.search(content_type) if content_type else None
    return Fetched(
        url=url,
        status=status,
        reason=reason,
        headers=headers,
        body=body,
        content_type=content_type.partition(";")[0].strip().lower(),
        charset=charset[1].lower() if charset else "",
        location=location,
        wire_bytes=header_bytes + handle.size,
        address=info(pycurl.PRIMARY_IP) or "",
        http_version=version,
        timings=Timings(info(pycurl.PRETRANSFER_TIME), info(pycurl.STARTTRANSFER_TIME), info(pycurl.TOTAL_TIME)),
        detail=message,
    )


def parse_headers(lines: Iterable[bytes]) -> tuple[str, dict[str, str]]:
    """The HTTP version and the headers of the last response, without interim responses (1xx) and trailers."""
    version = name = ""
    headers: dict[str, str] = {}
    reading = False
    for raw in lines:
        line = raw.decode("latin-1").rstrip("\r\n")
        if line.startswith("HTTP/"):
            version, headers, name, reading = line[5:].partition(" ")[0], {}, "", True
        elif not line:
            reading = False
        elif not reading:
            continue
        elif line[0] in " \t":
            if name:
                headers[name] += " " + line.strip()
        else:
            key, colon, value = line.partition(":")
            if not colon:
                continue
            name = key.strip().lower()
            value = value.strip()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return version, headers


def _head_ended(lines: Sequence[bytes]) -> bool:
    """Whether the headers of the last response are complete. Lines of trailers may follow them."""
    for line in reversed(lines):
        if line in _BLANK:
            return True
        if line.startswith(b"HTTP/"):
            return False
    return True


def _is_page(status: int) -> bool:
    """Whether the status means a page. 206 (partial content) does not, because we never request a part."""
    return 200 <= status < 300 and status != 206


def _body(handle: Handle, headers: dict[str, str], limit: int) -> tuple[bytes, str | None]:
    encoding = headers.get("content-encoding", "")
    return decode(handle.body(), encoding, limit, cut=handle.cut, partial=handle.refusal is not None)


def _verdict(status: int, headers: dict[str, str], url: str, request: Request) -> tuple[str | None, str | None]:
    """The failure reason and the redirect target, from the status and headers of a complete response."""
    if _is_page(status):
        return None, None
    if status in _REDIRECTS:
        return _redirect(url, headers.get("location", ""))
    if status == 304 and (request.etag or request.last_modified):
        return None, None
    return http_reason(status), None


def _redirect(url: str, reference: str) -> tuple[str | None, str | None]:
    with suppress(UnicodeDecodeError):
        reference = reference.encode("latin-1").decode("utf-8")
    joined = join(url, reference) if reference else ""
    if not joined:
        return fetched.BAD_REDIRECT, None
    target = locate(joined)
    if isinstance(target, str):
        return (target if target == fetched.SCHEME_BLOCKED else fetched.BAD_REDIRECT), joined
    return None, target.url


def _failure(code: int, message: str, info: Any, proxied: bool) -> str:
    if code == pycurl.E_OPERATION_TIMEDOUT:
        # Only the message shows the difference: a failed connection reports times as if it had sent a request.
        return fetched.TIMEOUT if message.startswith("Operation") else fetched.CONNECT_TIMEOUT
    if code == pycurl.E_RECV_ERROR and "arge response headers" in message:
        return fetched.HEADERS_TOO_LARGE
    if code == pycurl.E_RECV_ERROR and "chunk" in message:
        return fetched.BAD_RESPONSE
    if proxied and (code == pycurl.E_COULDNT_CONNECT or info(pycurl.HTTP_CONNECTCODE) not in (0, 200)):
        return fetched.PROXY_FAILED
    return _REASONS.get(code, fetched.BAD_RESPONSE)

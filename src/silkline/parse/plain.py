"""The text of a body that is text already: decoded, and free of what cannot be stored."""

import codecs

from turbohtml.detect import detect


def decode_text(body: bytes, charset: str | None = None, longest: int = 2_000_000) -> str:
    """A plain text, by the order of the web: byte-order mark, HTTP, UTF-8 if it is, what the bytes look like."""
    body = body[: 4 * longest]
    return _decoded(body, charset).replace("\x00", "").replace("\r\n", "\n")[:longest]


def _decoded(body: bytes, charset: str | None) -> str:
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if body.startswith(mark):
            return body.decode(name, "replace")
    if charset:
        try:
            return body.decode(f"whatwg-{charset}", "replace")
        except LookupError:
            pass  # A name that no browser knows is as good as none.
    return body.decode(detect(body[:65_536]).codec or "utf-8", "replace")

"""How the hostile server misbehaves: coroutines that write raw bytes, so that they can break every rule."""

import asyncio
import functools
import gzip
import json
import random
import zlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import brotli  # type: ignore[import-untyped]
import zstandard

from tests.crawl.odd_encodings import BROKEN, CORRECT

RAW_RESPONSES = Path(__file__).parents[1] / "data" / "http-asis"
PAGE = b"<!doctype html><title>A page</title><p>Hello." + b" Words and words." * 50
KIB, MIB = 1024, 1024 * 1024


@dataclass(frozen=True)
class Asked:
    """A request as it came over the wire."""

    method: str
    target: str
    headers: dict[str, str]
    address: str
    """Of the server, that the client connected to."""
    connection: int
    at: float
    reader: asyncio.StreamReader = field(repr=False)

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(urlsplit(self.target).query).items()}

    async def gone(self) -> None:
        """Wait until the client hangs up."""
        with suppress(ConnectionError):
            await self.reader.read()


Route = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


def answer(body: bytes = PAGE, status: str = "200 OK", **headers: str) -> bytes:
    """A proper response. Header names are written with underscores."""
    fields = {"Content-Type": "text/html", "Content-Length": str(len(body))}
    fields |= {name.replace("_", "-").title(): value for name, value in headers.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode("latin-1") + body


ROUTES: dict[str, Route] = {}


def _route(prefix: str) -> Callable[[Route], Route]:
    def keep(route: Route) -> Route:
        ROUTES[prefix] = route
        return route

    return keep


def last_part(asked: Asked) -> str:
    return unquote(asked.path.rpartition("/")[2])


async def not_found(asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(answer(b"not here", "404 Not Found"))


@_route("/ok")
async def ok(asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(answer())


@_route("/echo")
async def echo(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """The request's own headers, as JSON."""
    writer.write(answer(json.dumps(asked.headers).encode(), content_type="application/json"))


@_route("/status")
async def status(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """`/status/503?retry-after=7`: that status, the query as headers."""
    writer.write(answer(b"", f"{last_part(asked)} Because", **asked.query))


@_route("/conditional")
async def conditional(asked: Asked, writer: asyncio.StreamWriter) -> None:
    known = asked.headers.get("if-none-match") == '"v1"' or "if-modified-since" in asked.headers
    if known:
        writer.write(b'HTTP/1.1 304 Not Modified\r\nETag: "v1"\r\n\r\n')
    else:
        writer.write(answer(etag='"v1"', last_modified="Sun, 06 Nov 1994 08:49:37 GMT"))


@_route("/encoded")
async def encoded(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """`/encoded/gzip,br`: the page, encoded in that order."""
    writer.write(answer(encode(PAGE, last_part(asked)), content_encoding=last_part(asked)))


@_route("/bomb")
async def bomb(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """`/bomb/gzip?mib=100`: zeros, encoded in that order."""
    body = _zeros(int(asked.query.get("mib", "100")), last_part(asked))
    writer.write(answer(body, content_encoding=last_part(asked)))


@functools.cache
def _zeros(mib: int, encodings: str) -> bytes:
    """Made once: nobody else gets an answer meanwhile."""
    return encode(bytes(mib * MIB), encodings)


@_route("/odd-encoding")
async def odd_encoding(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """`/odd-encoding/raw-deflate`: a body of odd_encodings.py."""
    encoding, body = (CORRECT | BROKEN)[last_part(asked)]
    writer.write(answer(body, content_encoding=encoding))


@_route("/members")
async def members(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """A gzip body of a great many empty members."""
    writer.write(answer(gzip.compress(b"") * 100_000, content_encoding="gzip"))


@_route("/asis")
async def asis(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """`/asis/NAME`: a raw response of tests/data, byte for byte."""
    writer.write((RAW_RESPONSES / last_part(asked)).read_bytes())
    writer.close()


@_route("/hang")
async def hang(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Accepts the request and says nothing."""
    await asked.gone()


@_route("/hang-in-headers")
async def hang_in_headers(asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Ty")
    await asked.gone()


@_route("/hang-in-body")
async def hang_in_body(asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nsome")
    await asked.gone()


@_route("/drip")
async def drip(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """A byte at a time, without an end: never idle, never done."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.02)


@_route("/drip-headers")
async def drip_headers(asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while not writer.is_closing():
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.02)


@_route("/endless")
async def endless(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """A body that never ends, as fast as it is taken. `?chunked=1`, `?gzip=1`."""
    chunked, zipped = "chunked" in asked.query, "gzip" in asked.query
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n")
    writer.write(b"Transfer-Encoding: chunked\r\n" * chunked + b"Content-Encoding: gzip\r\n" * zipped + b"\r\n")
    squeeze = zlib.compressobj(wbits=31) if zipped else None
    block = bytes(64 * KIB)
    while not writer.is_closing():
        data = squeeze.compress(block) + squeeze.flush(zlib.Z_SYNC_FLUSH) if squeeze else block
        writer.write(b"%x\r\n%b\r\n" % (len(data), data) if chunked else data)
        await writer.drain()


@_route("/chunks")
async def chunks(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """`/chunks/SIZE?n=NUMBER`: so many chunks of that size."""
    size, left = int(last_part(asked)), int(asked.query["n"])
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n")
    chunk = b"%x\r\n%b\r\n" % (size, b"x" * size)
    while left > 0 and not writer.is_closing():
        writer.write(chunk * min(left, 5_000))
        left -= 5_000
        await writer.drain()
    writer.write(b"0\r\n\r\n")


@_route("/large")
async def large(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """`/large/BYTES`: a body of that size, a piece at a time, so that many of them are on their way together."""
    size = int(last_part(asked))
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode())
    while size > 0:
        writer.write(bytes(min(size, 64 * KIB)))
        size -= 64 * KIB
        await writer.drain()
        await asyncio.sleep(0.001)


@_route("/promised")
async def promised(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """`/promised/BYTES`: says so in Content-Length, and sends none of it."""
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {last_part(asked)}\r\n\r\n".encode())
    await asked.gone()


@_route("/huge-headers")
async def huge_headers(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """10 MB of headers: `many` lines, or `one` line."""
    line = b"X-%d: " + b"a" * 1000 + b"\r\n"
    writer.write(b"HTTP/1.1 200 OK\r\n")
    if last_part(asked) == "one":
        writer.write(b"X-One: " + b"a" * 10 * MIB + b"\r\n")
    else:
        for number in range(10_000):
            writer.write(line % number)
            await writer.drain()
    writer.write(b"Content-Length: 2\r\n\r\nhi")


@_route("/large-headers")
async def large_headers(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """`/large-headers/BYTES`: too many for a small limit, few enough for libcurl."""
    writer.write(answer(b"hi", x_padding="a" * int(last_part(asked))))


@_route("/informational")
async def informational(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """`/informational/3` answers of the 1xx kind before the page; `endless` ones instead of it."""
    count = last_part(asked)
    while count == "endless" and not writer.is_closing():
        writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </x.css>; rel=preload\r\n\r\n" * 50)
        await writer.drain()
    writer.write(b"HTTP/1.1 103 Early Hints\r\nLocation: /wrong\r\nX-Early: 1\r\n\r\n" * int(count))
    writer.write(answer())


@_route("/trailers")
async def trailers(asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Content-Type\r\n\r\n")
    writer.write(b"2\r\nhi\r\n0\r\nContent-Type: text/wrong\r\nContent-Encoding: br\r\n\r\n")


@_route("/lengths")
async def lengths(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Two lengths that differ, or a length beside chunks, or one that is no number."""
    heads = {
        "differ": b"Content-Length: 5\r\nContent-Length: 50\r\n",
        "chunked": b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "negative": b"Content-Length: -5\r\n",
        "words": b"Content-Length: many\r\n",
        "huge": b"Content-Length: 99999999999999999999999999\r\n",
    }
    body = b"5\r\nhello\r\n0\r\n\r\n" if last_part(asked) == "chunked" else b"hello"
    writer.write(b"HTTP/1.1 200 OK\r\n" + heads[last_part(asked)] + b"\r\n" + body)
    writer.close()


@_route("/truncated")
async def truncated(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """A body that ends too early: `length`, `chunked`, or inside its `gzip`."""
    if last_part(asked) == "length":
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + PAGE[:500])
    elif last_part(asked) == "chunked":
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100\r\n" + PAGE[:100])
    else:
        writer.write(answer(gzip.compress(PAGE)[:-20], content_encoding="gzip"))
    writer.close()


@_route("/cut-head")
async def cut_head(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """`/cut-head/45`: the connection ends after so many bytes of an answer, which may have another `status`."""
    head = answer(b"", asked.query.get("status", "200 OK"), location="/ok")
    writer.write(head[: int(last_part(asked))])
    writer.close()


@_route("/late")
async def late(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Answers after a while."""
    await asyncio.sleep(0.3)
    writer.write(answer())


@_route("/bad-chunks")
async def bad_chunks(asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnot a number\r\nhello\r\n0\r\n\r\n")
    writer.close()


@_route("/reset")
async def reset(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """A TCP reset: `before` any answer, or `during` the body."""
    if last_part(asked) == "during":
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + PAGE[:500])
        await writer.drain()
    sock = writer.get_extra_info("socket")
    sock.setsockopt(1, 13, (1).to_bytes(4, "little") + bytes(4))  # SO_LINGER of zero seconds
    writer.transport.abort()


@_route("/silence")
async def silence(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Closes without a word."""
    writer.close()


@_route("/garbage")
async def garbage(asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(random.Random("garbage").randbytes(4096).replace(b"HTTP", b"....") + b"\r\n\r\n")
    writer.close()


@_route("/old")
async def old(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """HTTP/0.9: a body and nothing else."""
    writer.write(PAGE)
    writer.close()


@_route("/redirect")
async def redirect(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """`/redirect?to=URL&status=301`"""
    location = asked.query["to"]
    writer.write(answer(b"moved", f"{asked.query.get('status', '302')} Moved", location=location))


@_route("/redirect-nowhere")
async def redirect_nowhere(asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(answer(b"moved", "302 Moved"))


@_route("/redirect-bomb")
async def redirect_bomb(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """A redirect whose body is not worth having."""
    writer.write(b"HTTP/1.1 302 Moved\r\nLocation: /ok\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\nnot gzip!")


@_route("/chain")
async def chain(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """`/chain/3` redirects three times and ends at /ok."""
    left = int(last_part(asked))
    writer.write(answer(b"", "302 Moved", location=f"/chain/{left - 1}" if left > 1 else "/ok"))


@_route("/loop")
async def loop(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """`/loop/a` and `/loop/b` redirect to each other."""
    writer.write(answer(b"", "301 Moved", location="/loop/b" if last_part(asked) == "a" else "/loop/a"))


def encode(body: bytes, encodings: str) -> bytes:
    """Apply content encodings in the order given."""
    ways: dict[str, Callable[[bytes], bytes]] = {
        "gzip": lambda data: gzip.compress(data, 9),
        "deflate": lambda data: zlib.compress(data, 9),
        "br": lambda data: bytes(brotli.compress(data, quality=5)),
        "zstd": zstandard.ZstdCompressor(level=9).compress,
    }
    for encoding in encodings.split(","):
        body = ways[encoding.strip()](body)
    return body

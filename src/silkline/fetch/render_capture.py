"""Makes files of a page that was rendered: its screenshot and its PDF. A file that cannot be made has a reason instead.

The size and the time of each file are limited. The page stays complete without its files.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import Awaitable
from typing import Any, Final

from silkline.fetch.render_cdp import AnswerTooLong, CommandRefused, Conversation
from silkline.fetch.settings import Capture
from silkline.model.fetched import PDF, SCREENSHOT, PageFile

_WINDOW: Final = 800  # pixels; the view in which pages load is taller, so that they load more
_PART: Final = 1 << 20
_LONGEST_PART: Final = 2 * _PART  # in Base64
_AROUND: Final = 1_000  # bytes of a message around its data


class _TooLarge(Exception):
    """The file has more bytes than allowed."""


async def capture(talk: Conversation, session: str, wanted: Capture, width: int) -> tuple[PageFile, ...]:
    """The wanted files of the page of this session. Raises `BrowserGone` if the browser ends."""
    files = []
    if wanted.screenshot:
        files.append(await _made(SCREENSHOT, wanted, _screenshot(talk, session, wanted, width)))
    if wanted.pdf:
        files.append(await _made(PDF, wanted, _pdf(talk, session, wanted)))
    return tuple(files)


async def _made(name: str, wanted: Capture, making: Awaitable[bytes]) -> PageFile:
    try:
        body = await asyncio.wait_for(making, wanted.seconds)
    except TimeoutError:
        return PageFile(name, error=f"it was not ready after {wanted.seconds:g} s")
    except (_TooLarge, AnswerTooLong):
        return PageFile(name, error=f"it has more than {wanted.max_bytes:,} bytes")
    except CommandRefused as error:
        return PageFile(name, error=f"the browser refused: {error}"[:500])
    return PageFile(name, body, len(body))


async def _screenshot(talk: Conversation, session: str, wanted: Capture, width: int) -> bytes:
    height: float = _WINDOW
    if wanted.screenshot == "full":
        size = (await talk.ask("Page.getLayoutMetrics", session, seconds=wanted.seconds))["cssContentSize"]
        height = min(max(size["height"], 1), wanted.max_height)
        width = min(max(int(size["width"]), width), wanted.max_height)
        height = min(height, max(wanted.max_pixels // width, 1))
    longest = wanted.max_bytes * 4 // 3 + _AROUND
    answer = await talk.ask(
        "Page.captureScreenshot",
        session,
        seconds=wanted.seconds,
        longest=longest,
        format="png",
        clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1},
        captureBeyondViewport=True,
    )
    body = b64decode(answer["data"])
    if len(body) > wanted.max_bytes:
        raise _TooLarge
    return body


async def _pdf(talk: Conversation, session: str, wanted: Capture) -> bytes:
    options: dict[str, Any] = {"printBackground": True, "preferCSSPageSize": True, "transferMode": "ReturnAsStream"}
    handle = (await talk.ask("Page.printToPDF", session, seconds=wanted.seconds, **options))["stream"]
    body = bytearray()
    try:
        while True:
            part = await talk.ask(
                "IO.read", session, seconds=wanted.seconds, longest=_LONGEST_PART, handle=handle, size=_PART
            )
            body += b64decode(part["data"]) if part.get("base64Encoded") else part["data"].encode()
            if len(body) > wanted.max_bytes:
                raise _TooLarge
            if part["eof"]:
                return bytes(body)
    finally:
        talk.say("IO.close", session, handle=handle)

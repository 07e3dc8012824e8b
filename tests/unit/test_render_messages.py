"""Messages of a browser whose text a page has chosen. No exception may leave their reading: it would end the job."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.fetch.render_cdp import CommandRefused, Conversation, PipeLine

LONG = 3 << 20


def heard(*messages: bytes, listener: Callable[[str, dict[str, Any]], None] | None = None) -> list[dict[str, Any]]:
    """What a listener gets of these messages. The last one is always readable, and always arrives."""
    seen: list[dict[str, Any]] = []

    async def work() -> None:
        talk = Conversation()
        talk.listen("", lambda method, params: seen.append(params))
        if listener is not None:
            talk.listen("page", listener)
        PipeLine(talk).data_received(b"\0".join([*messages, b'{"method":"last","params":{"last":1}}', b""]))

    asyncio.run(work())
    assert seen.pop() == {"last": 1}
    return seen


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (rb"a\ud800b", "a\ufffdb"),
        (rb"\uDFFF", "\ufffd"),
        (rb"\ud83d\ude00\ud83d", "\U0001f600\ufffd"),
        (rb"\ud83d\ud83d\ude00\ude00", "\ufffd\U0001f600\ufffd"),
        (rb"\\ud800\ud800", "\\ud800\ufffd"),
        (rb"\\\ud800\\\\ud800", "\\\ufffd\\\\ud800"),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_half_a_character_is_replaced(written: bytes, read: str) -> None:
    assert heard(b'{"method":"title","params":{"text":"%b"}}' % written) == [{"text": read}]


@given(st.text(st.sampled_from(["\\", "\ud83d", "\ude00", "u", "d", "8", '"', "\n", "é"])))
def test_whatever_a_page_writes_it_is_read_as_a_browser_would_show_it(text: str) -> None:
    escapes = {"\\": r"\\", '"': r"\"", "\n": r"\n"}
    written = "".join(escapes.get(each) or (each if each.isascii() else f"\\u{ord(each):04x}") for each in text)
    shown = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert heard(b'{"method":"title","params":{"text":"%b"}}' % written.encode()) == [{"text": shown}]


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"[]",
        b"not json",
        b'{"method":1}',
        b'{"method":"x","params":[]}',
        b'{"id":1e400}',
        b'{"id":99,"error":{}}',
        b'{"params":' + b'{"a":' * 100_000,
        b'{"method":"long","params":{"text":"%b"}}' % (rb"\ud800" * (LONG // 6)),
    ],
)
def test_an_event_that_cannot_be_read_is_dropped(message: bytes) -> None:
    assert heard(message) == []


@pytest.mark.parametrize("answer", [b'{"id":1,"result":[]}', b'{"id":1,"result":{"a":"%b\\ud800"}}' % (b"x" * LONG)])
def test_an_answer_that_cannot_be_read_is_a_refusal(answer: bytes) -> None:
    async def work() -> None:
        talk = Conversation()
        asking = asyncio.ensure_future(talk.ask("Page.enable"))
        await asyncio.sleep(0)
        talk.heard(answer)
        await asking

    with pytest.raises(CommandRefused, match="cannot be read"):
        asyncio.run(work())


def test_a_listener_that_fails_does_not_end_the_connection() -> None:
    def fail(method: str, params: dict[str, Any]) -> None:
        raise KeyError(method)

    assert heard(b'{"method":"x","sessionId":"page"}', listener=fail) == []

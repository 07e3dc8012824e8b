"""Messages of a browser whose text a page has chosen. No exception may leave their reading: it would end the job."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.fetch import render_cdp
from silkline.fetch.render_budget import MessageBudget
from silkline.fetch.render_cdp import AnswerTooLong, CommandRefused, Conversation, PipeLine
from silkline.fetch.render_messages import SHORT, Incoming, Message

LONG = 3 << 20
MIB = 1 << 20


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


class Line:
    """A conversation with two pages, `a` and `b`, of which `a` has a budget. Remembers what was decoded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
        self.talk = Conversation()
        self.line = PipeLine(self.talk)
        self.seen: list[str] = []
        self.spent: list[str] = []
        self.decoded = 0
        read = render_cdp.read

        def counted(data: bytes, budget: MessageBudget | None) -> Message | None:
            self.decoded += 1
            return read(data, budget)

        monkeypatch.setattr(render_cdp, "read", counted)
        budget = MessageBudget(most, self.spent.append)
        for name in ("a", "b", ""):
            self.talk.listen(name, lambda method, params: self.seen.append(method))
        for name in ("a", "context-a"):
            self.talk.charge(name, budget)

    def say(self, *messages: bytes) -> None:
        self.line.data_received(b"".join(each + b"\0" for each in messages))

    @property
    def held(self) -> int:
        return len(self.line._incoming._held)


A_PAGES_EVENT = {
    "of its session": b'{"method":"x","params":{"text":"%b"},"sessionId":"a"}',
    "of its session, written in another order": b'{"sessionId":"a","method":"x","params":{"text":"%b"}}',
    "of its target": b'{"method":"x","params":{"info":{"url":"%b","browserContextId":"context-a"}}}',
}
OF_OTHERS = (
    b'{"method":"of b","sessionId":"b"}',
    b'{"method":"of the browser"}',
    # The text of a page looks like the name of another one.
    rb'{"method":"forged","params":{"t":"\"sessionId\":\"a\"}"},"sessionId":"b"}',
)


@pytest.mark.parametrize("kind", A_PAGES_EVENT)
def test_a_page_has_a_budget_of_events(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        line = Line(monkeypatch, most=3 * MIB)
        long = A_PAGES_EVENT[kind] % (b"x" * MIB)
        line.say(*[long] * 5, *OF_OTHERS)
        assert line.seen == ["x", "x", "of b", "of the browser", "forged"]
        assert line.spent == ["more than 3 MB of events"]

    asyncio.run(work())


def test_events_of_a_page_that_is_given_up_or_closed_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        line = Line(monkeypatch, most=3 * MIB)
        session, _, target = (each % (b"x" * MIB) for each in A_PAGES_EVENT.values())
        line.say(*[session, target] * 5)
        assert line.decoded == 2
        line.talk.listen("a", None)
        for name in ("a", "context-a"):
            line.talk.charge(name, None)
        line.say(session, target)
        assert line.decoded == 2
        line.say(*OF_OTHERS)
        assert line.decoded == 5

    asyncio.run(work())


def test_many_small_events_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        line = Line(monkeypatch, most=MIB)
        line.say(*[A_PAGES_EVENT["of its session"] % b""] * 2_000)
        assert line.spent == ["more than 1 MB of events"]
        assert len(line.seen) < 1_200

    asyncio.run(work())


def test_events_that_are_too_long_to_be_held_are_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        line = Line(monkeypatch, most=50 * MIB)
        for _ in range(2):
            line.say(A_PAGES_EVENT["of its session"] % (b"x" * 20 * MIB))
            assert line.spent == []
        line.say(A_PAGES_EVENT["of its target"] % (b"x" * 20 * MIB))
        assert line.spent == ["more than 52 MB of events"]
        assert line.decoded == 0

    asyncio.run(work())


def test_a_page_has_a_budget_of_repairs(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        line = Line(monkeypatch, most=100 * MIB)
        broken = A_PAGES_EVENT["of its session"] % (rb"\ud800" * (MIB // 6))
        line.say(*[broken] * 10, *OF_OTHERS)
        assert line.seen == ["x", "x", "x", "of b", "of the browser", "forged"]
        assert line.spent == ["more than 4 MB of events with invalid characters"]

    asyncio.run(work())


def answer(number: int, size: int) -> bytes:
    return b'{"id":%d,"result":{"text":"%b"},"sessionId":"a"}' % (number, b"x" * size)


def test_only_some_commands_may_have_a_long_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        line = Line(monkeypatch, most=100 * MIB)
        asking = [asyncio.ensure_future(line.talk.ask("x", "a", longest=longest)) for longest in (4 * MIB, 4 * MIB)]
        await asyncio.sleep(0)
        line.say(answer(1, 3 * MIB), answer(2, 5 * MIB))
        assert len((await asking[0])["text"]) == 3 * MIB
        with pytest.raises(AnswerTooLong):
            await asking[1]
        assert (line.decoded, line.spent) == (1, []), "the page has done nothing wrong"
        short = asyncio.ensure_future(line.talk.ask("x", "a"))
        await asyncio.sleep(0)
        line.say(answer(3, 2 * MIB))
        with pytest.raises(AnswerTooLong):
            await short
        assert (line.decoded, line.spent) == (1, ["the page made an answer of the browser too long"])

    asyncio.run(work())


def test_an_answer_that_nobody_waits_for_is_neither_held_nor_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        line = Line(monkeypatch, most=100 * MIB)
        with pytest.raises(TimeoutError):
            await line.talk.ask("x", "a", seconds=0, longest=100 * MIB)
        line.say(answer(1, 10), answer(2, 10))
        line.line.data_received(answer(1, 2 * MIB)[:-1])
        assert (line.held, line.decoded) == (0, 0)
        line.say(b"}", *OF_OTHERS)
        assert line.spent == ["the page made an answer of the browser too long"]
        assert line.seen == ["of b", "of the browser", "forged"]

    asyncio.run(work())


@given(st.binary(max_size=40), st.integers(1, 30))
def test_a_message_that_is_skipped_keeps_its_beginning_and_its_end(end: bytes, part: int) -> None:
    incoming = Incoming(lambda head: SHORT)
    incoming.add(b'{"id":7,' + b"x" * SHORT)
    for start in range(0, len(end), part):
        incoming.add(end[start : start + part])
    skipped: Any = incoming.complete()
    assert skipped.head.startswith(b'{"id":7,xxx')
    assert skipped.tail.endswith(b"xxx" + end)
    assert len(skipped.tail) < 1_000
    incoming.add(b"next")
    assert incoming.complete() == b"next"

"""Bytes of a less trusted process end no process that decodes them, whatever they are."""

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
import zstandard

from silkline.api.web.field_lines import read_lines
from silkline.crawl.kept_pages import KeptPage, PageOpener
from silkline.crawl.messages import links_decoder
from silkline.model.kept_html import NewHtml
from silkline.model.usage import from_text
from silkline.service.runner_process import RunnerProcess

DEEP = 100_000
MSGPACK = {"no msgpack": b"\xc1", "no text": b"\x91\x91\x91\xa1\xff", "lists in lists": b"\x91" * DEEP + b"\xc0"}
JSON = {
    "no JSON": b"{",
    "no text": b'{"message": "\xff"}',
    "lists in lists": b'{"data": {"a": ' + b"[" * DEEP + b"]" * DEEP + b"}}",
    "a surplus list in lists": b'{"x": ' + b"[" * DEEP + b"]" * DEEP + b"}",
    "levels that can be decoded": b'{"message": "m", "data": {"a": ' + b"[" * 400 + b"]" * 400 + b"}}",
}


@pytest.mark.parametrize("data", MSGPACK.values(), ids=MSGPACK)
def test_links_of_a_fetcher(data: bytes) -> None:
    assert links_decoder()(data) == []


KEPT = msgspec.msgpack.encode(KeptPage("", "", "", "", {}, b""))
DAMAGED = {
    "no msgpack": b"\xc1",
    "no text": KEPT[:1] + b"\xa1\xff" + KEPT[2:],
    # One element more than a kept page has. The decoder only skips it.
    "lists in lists": bytes([KEPT[0] + 1]) + KEPT[1:] + b"\x91" * DEEP + b"\xc0",
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_a_page_that_a_fetcher_kept(data: bytes) -> None:
    kept = NewHtml(1, 0, len(data), zstandard.compress(data))
    with pytest.raises(ValueError, match="the page is damaged"):
        PageOpener(lambda id: None).open(kept)


@pytest.mark.parametrize("data", JSON.values(), ids=JSON)
def test_a_message_of_a_runner_to_its_supervisor(data: bytes) -> None:
    said: list[Any] = []
    output = SimpleNamespace(say=lambda level, message, event, data: said.append(message))
    runner = cast(RunnerProcess, SimpleNamespace(output=output))
    RunnerProcess._heard(runner, data)
    assert said == []
    RunnerProcess._heard(runner, b'{"message": "hello"}')
    assert said == ["hello"]


def test_a_form_of_the_web_page() -> None:
    with pytest.raises(ValueError, match="not JSON"):
        read_lines('price = {"css": ' + "[" * DEEP + "]" * DEEP + "}")


def test_the_usage_that_another_worker_stored() -> None:
    assert from_text('{"x": ' + "[" * DEEP + "]" * DEEP + "}") is None

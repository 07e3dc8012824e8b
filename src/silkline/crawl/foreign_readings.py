"""Checks what another process says that it has read: a page may have taken that process over.

What is stored must be JSON that every later reader of results can decode, and text that both databases accept. The
check of a page of 43 KB takes about 50 µs (tests/unit).
"""

from __future__ import annotations

import re
from math import inf
from typing import Final

import msgspec

from silkline.crawl.messages import UNREADABLE
from silkline.crawl.reading import READ_LATER, Reading
from silkline.fetch.robots import MAX_CRAWL_DELAY, Robots
from silkline.fetch.robots_matching import (
    MAX_LETTERS,
    MAX_PATTERN,
    MAX_RULES,
    MAX_WIDENED,
    MAX_WIDENED_START,
    MAX_WILDCARDS,
)
from silkline.model.strict_json import is_deeper_than
from silkline.model.url import MAX_LENGTH

MOST_DEPTH: Final = 200
"""Levels of a result. Code that follows them call by call fails at several hundred."""
_MOST_REASON: Final = 100
_DIGEST_BYTES: Final = 8

_VISIBLE: Final = bytes(range(0x21, 0x7F))
_RULE: Final = re.compile(
    rf"[+-][^ ]{{1,{MAX_PATTERN}}}( .{{1,{MAX_PATTERN}}})?|![0-9]{{1,9}} [^ ]{{0,{MAX_WIDENED_START}}}", re.DOTALL
)
_MOST_LETTERS: Final = MAX_LETTERS + MAX_RULES + (MAX_WIDENED + 1) * (MAX_WIDENED_START + 12)

_decode = msgspec.json.Decoder().decode


def is_sound(answer: Reading | Robots) -> bool:
    """Whether an answer has the form that our own code gives it."""
    if isinstance(answer, Robots):
        delay = answer.crawl_delay
        return _are_rules(answer.group) and (delay is None or 0 <= delay <= MAX_CRAWL_DELAY)
    return (
        _is_object(answer.data)
        and _are_addresses(answer.links)
        and _are_addresses(answer.sitemaps)
        and (answer.sitemap is None or _are_addresses([entry.url for entry in answer.sitemap.entries]))
        and (answer.reason is None or _is_reason(answer.reason))
        and len(answer.names) % _DIGEST_BYTES == 0
        and 0 <= answer.seconds < inf
    )


def _is_reason(reason: str) -> bool:
    """Only the owner of a reader says that a page has to wait: such a page is fetched again and again."""
    return reason != READ_LATER and len(reason) <= _MOST_REASON and reason.isprintable()


def _is_object(data: str) -> bool:
    try:
        value = _decode(data)
    except UNREADABLE:
        return False
    return isinstance(value, dict) and not is_deeper_than(value, MOST_DEPTH)


def _are_addresses(urls: list[str]) -> bool:
    """Whether they can be canonical URLs: these are short, and have only visible ASCII characters."""
    if not urls:
        return True
    together = "".join(urls)
    if len(together) > MAX_LENGTH and max(map(len, urls)) > MAX_LENGTH:
        return False
    return not together.encode(errors="replace").translate(None, _VISIBLE)


def _are_rules(group: str) -> bool:
    """Whether they are lines as `group_text` writes them."""
    lines = group.split("\n") if group else []
    if len(group) > _MOST_LETTERS or len(lines) > MAX_RULES + MAX_WIDENED + 1:
        return False
    wildcards = sum(line.partition(" ")[0].count("*") for line in lines) if "*" in group else 0
    return wildcards <= MAX_WILDCARDS and all(map(_RULE.fullmatch, lines))

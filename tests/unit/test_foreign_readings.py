"""What a parser or an isolated reader says is checked: a page may have taken it over."""

import time
import timeit
from typing import Any

import msgspec
import pytest

from silkline.crawl.foreign_readings import MOST_DEPTH, is_sound
from silkline.crawl.reading import READ_LATER, Reading
from silkline.fetch.robots import DISALLOW_ALL, Robots, read
from silkline.parse.sitemap import Sitemap, SitemapEntry

URL = "https://www.example.com/some/path/to/a/page.html?id=1"


def nested(levels: int) -> str:
    """An object with so many levels, itself included."""
    return '{"a":' + "[" * (levels - 1) + "]" * (levels - 1) + "}"


FORGED: dict[str, Reading | Robots] = {
    "half an object": Reading(1, data='{"title": "x", "broken'),
    "a control character": Reading(1, data='{"title": "\x00"}'),
    "not text": Reading(1, data='{"title": "\\ud800"}'),
    "no JSON number": Reading(1, data='{"n": NaN}'),
    "nothing": Reading(1, data=""),
    "a list": Reading(1, data="[1,2]"),
    "too deep to decode": Reading(1, data=nested(200_000)),
    "too deep to use": Reading(1, data=nested(MOST_DEPTH + 1)),
    "NUL in a link": Reading(1, links=[URL, f"{URL}\x00"]),
    "a link that is too long": Reading(1, links=[URL, URL + "y" * 9000]),
    "a blank in a sitemap": Reading(1, sitemaps=[f"{URL} x"]),
    "another alphabet in a sitemap": Reading(1, sitemap=Sitemap(kind="urlset", entries=[SitemapEntry("http://é/")])),
    "a reason with control characters": Reading(1, "weird\x00\n\x1b[31m"),
    "a page that is to wait": Reading(1, READ_LATER),
    "an endless reason": Reading(1, "r" * 1000),
    "half a name": Reading(1, names=b"abc"),
    "a time that is no number": Reading(1, seconds=float("nan")),
    "a time without an end": Reading(1, seconds=float("inf")),
    "a negative time": Reading(1, seconds=-0.5),
    "rules without a sign": Robots("/private", 1.0),
    "an empty rule": Robots("-/a\n\n-/b", 1.0),
    "a priority that is no number": Robots("!x /", 1.0),
    "too many wildcards": Robots("-/" + "*" * 2000, 1.0),
    "too many rules": Robots("\n".join(["-/a"] * 7000), 1.0),
    "a negative delay": Robots(DISALLOW_ALL, 1.0, -5.0),
    "a delay that is no number": Robots(DISALLOW_ALL, 1.0, float("nan")),
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_what_our_own_code_would_not_say_is_refused(forged: Reading | Robots) -> None:
    assert not is_sound(forged)


def test_what_our_own_code_says_is_accepted() -> None:
    assert is_sound(Reading(1))
    assert is_sound(Reading(1, "hook_failed", "any text \x00", data=nested(MOST_DEPTH), names=bytes(16)))
    assert is_sound(Reading(1, links=[URL] * 10_000, sitemaps=[URL], data='{"title": "\\u0000 é"}', seconds=2.5))
    many = "".join(f"Disallow: /{number}*x{'*' * (number % 3)}\nAllow: /{number}\n" for number in range(9000))
    assert is_sound(read(f"User-agent: *\nCrawl-delay: inf\n{many}".encode(), 1.0))
    assert is_sound(read(b"", 1.0))


def test_what_the_check_costs(record_property: Any) -> None:
    text = "Some words in a [link](https://example.com/x) and more text here.\n\n" * 620
    data = {"title": "x", "markdown": text, "headings": [[1, "h"]] * 40, "anchors": ["a"] * 40, "links": 150}
    reading = Reading(1, links=[URL] * 150, data=msgspec.json.encode(data).decode(), names=bytes(1200))
    times = 200
    best = min(timeit.repeat(lambda: is_sound(reading), number=times, repeat=10, timer=time.process_time)) / times
    record_property("figure", f"{best * 1e6:.0f} µs for a page of {len(reading.data) // 1000} KB with 150 links")

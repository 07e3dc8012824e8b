"""URLs that were made to have the key of a page of somebody else: both are crawled."""

from __future__ import annotations

import pytest

from silkline.crawl.discovery import Discovery
from silkline.crawl.messages import Links
from silkline.crawl.outbox import Outbox
from silkline.crawl.plan import PACES, Plan
from silkline.crawl.seen import seeded_digests
from silkline.model.url import url_key

PAGE = "http://127.0.9.1:9301/g1"
TWIN = (
    "http://127.0.8.1:9301/00----------------------------------------"
    "w034exxxqwertyuipparcxxxqwertyuioe2caxxxqwertyui1tercxxxqwertyui"
)


def new_plan() -> Plan:
    return Plan(fetchers=1, parsers=0, concurrency=1, pace=PACES["max"], user_agent="x", scope="any", content="none")


PLAN = new_plan()


def discovery(plan: Plan) -> tuple[Discovery, Outbox]:
    outbox = Outbox()
    return Discovery(0, plan, outbox), outbox


def test_they_have_the_same_key() -> None:
    assert url_key(PAGE) == url_key(TWIN)


@pytest.mark.parametrize("urls", [[PAGE, TWIN], [TWIN, PAGE]])
def test_both_are_found(urls: list[str]) -> None:
    found, outbox = discovery(PLAN)
    found.links(urls, Links(1, 1, "link", "", []))
    assert [row.url for row in outbox.found] == urls
    assert [row.url_key for row in outbox.found] == 2 * [url_key(PAGE)]


def test_the_other_one_is_found_after_a_restart() -> None:
    found, outbox = discovery(PLAN)
    found.know(seeded_digests([TWIN], PLAN.seen_seed))
    found.links([TWIN, PAGE], Links(1, 1, "link", "", []))
    assert [row.url for row in outbox.found] == [PAGE]


def test_each_attempt_has_another_seed() -> None:
    assert len({new_plan().seen_seed for _ in range(10)}) == 10

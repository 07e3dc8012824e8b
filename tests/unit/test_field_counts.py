"""On how many pages a field was found: counted, continued by the next attempt, and judged at the end."""

import logging

import msgspec
import pytest

from silkline.crawl.field_counts import FieldCounts, check_fields
from silkline.crawl.html_counts import HtmlCounts
from silkline.crawl.plan import Plan
from silkline.crawl.plan_from_spec import plan_of
from silkline.errors import FieldsMissing
from silkline.model.field_counts import FieldCount, field_counts_in
from silkline.model.kept_html import KeptHtml, NewHtml, kept_html_in
from silkline.model.spec import SiteSpec
from silkline.parse.fields import FOUND, MISSING, NOT_ASKED, WRONG

LOG = logging.getLogger("test")


def plan(**options: object) -> Plan:
    fields = {"a": "h1", "b": {"css": "p", "type": "number"}}
    spec = SiteSpec.model_validate({"url": "https://a.example/", "fields": fields, **options})
    return plan_of(spec, fetchers=1, concurrency=1)


def counted(*tallies: bytes) -> FieldCounts:
    counts = FieldCounts(["a", "b"])
    for tally in tallies:
        counts.add(tally)
    return counts


def test_counts_are_continued_by_the_next_attempt() -> None:
    first = counted(bytes([FOUND, WRONG]), bytes([MISSING, NOT_ASKED]))
    second = FieldCounts(["a", "b"])
    second.load(msgspec.json.decode(msgspec.json.encode(first.live())))
    second.add(bytes([FOUND, FOUND]))
    assert second.by_name() == {"a": FieldCount(3, 2, 0), "b": FieldCount(2, 2, 1)}
    assert field_counts_in(second.live()) == second.by_name()
    assert FieldCounts([]).live() == {}


@pytest.mark.parametrize("live", [{}, {"fields": 5}, {"fields": {"a": "x"}}, {"fields": {"a": [1, 2]}}])
def test_strange_values_are_no_counts(live: dict[str, object]) -> None:
    assert field_counts_in(live) == {}


def test_too_few_pages_fail_the_job() -> None:
    enough = counted(*[bytes([FOUND, FOUND])] * 9, bytes([MISSING, WRONG]))
    check_fields(plan(require_fields=0.9), enough, LOG)
    check_fields(plan(), counted(bytes([MISSING, MISSING])), LOG)
    with pytest.raises(FieldsMissing, match=r"fewer than 91% .*a: found on 9 of 10 pages \(90%\); b: .* not converted"):
        check_fields(plan(require_fields=0.91), enough, LOG)
    with pytest.raises(FieldsMissing, match="a: found on 0 of 0 pages"):
        check_fields(plan(require_fields=0.1), counted(bytes([NOT_ASKED, FOUND])), LOG)


def test_only_required_fields_count_if_there_are_some() -> None:
    fields = {"a": {"css": "h1", "required": True}, "b": "p"}
    check_fields(plan(fields=fields, require_fields=1), counted(bytes([FOUND, MISSING])), LOG)


def test_kept_html_is_counted() -> None:
    counts = HtmlCounts()
    assert counts.live() == {}
    counts.load({"html": [1, 10, 100]})
    counts.add(NewHtml(2, 0, 50, b"12345"))
    assert kept_html_in(counts.live()) == KeptHtml(2, 15, 150)
    assert kept_html_in({"html": "much"}) == KeptHtml()

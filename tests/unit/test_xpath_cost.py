"""XPaths that take long on some pages: such a page is read in isolation, and ordinary pages are not."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from turbohtml import parse

from silkline.crawl.guarded_reader import GuardedReader
from silkline.crawl.plan import Plan
from silkline.crawl.plan_from_spec import plan_of
from silkline.crawl.reader_process import ReadPage
from silkline.crawl.reading import READ_ALONE, Body, PageReader, Reading
from silkline.model.spec import SiteSpec
from silkline.parse.xpath_cost import XPathCost
from silkline.reading_marks import ReadingMarks

LINEAR = [
    "//h1/text()",
    "//p[@class='a//b']/span[1]",
    "//p[contains(., '..')]",
    "count(//p)",
    "//div[@id='a']/ul/li[2]/a/@href",
    "//p[a/b]",
    "//p[*/b and ./c]",
    "//p[last()]",
    "//a[contains(@class,'x')]/@href",
    "normalize-space(//h1)",
    "//table//tr[td[1]='Price']/td[2]",
    "//li[position()<3]",
    "concat(//h1, ' ', //h2)",
    "//p[contains(translate(., 'A', 'a'), 'x')]",
    "//p[string-length(normalize-space()) > 20 and position() mod 2 = 1]",
]
LOOKS = [
    "//p[preceding-sibling::h1]",
    "//dt[.='Price']/following-sibling::dd[1]",
    "//p[../h1]",
    "/html/body/p[count(preceding-sibling::p) = 3]",
    "//p/parent::*/p",
]
WHOLE = ["//h2/following::p[1]", "//p[. = /html/body/p]", "//p[. = //q]", "//p[preceding :: h1]"]
ANCESTORS = [
    "//a[not(ancestor::nav)]",
    "//a[ancestor::div[contains(@class,'x')]]/@href",
    "//dt[.='Price']/ancestor::div[1]//a",
]
NESTED = ["/html/body/*[.//a]", "//div[.//div[.//div[.//x]]]"]
UNBOUNDED = [
    "//*[@id=//label/@for]",
    "//p[contains(string(/), 'zz')]",
    "//p[id('x')]",
    "//p[lang('en')]",
    "//p[count(//q) = 3]",
    "//p[. * //q]",
    "//p[a = b]",
    "//p[* < *]",
    "//a/@href = //b/@href",
    "//p[contains(., ../h1)]",
    "//p[translate(., ., .)]",
    "//p[ancestor::body//q]",
    "//p[(ancestor::body)//q]",
    "//p[ancestor::body[contains(., 'x')]]",
    "//p[ancestor::body[normalize-space( ) = 'x']]",
    "//p/ancestor::body[q]",
    "//p[unknown(.)]",
]

PART = "<div><h3>Part</h3><dl><dt>Price</dt><dd>7</dd></dl><p>Some <a href=/x>words</a> of it.</p></div>\n"
ORDINARY = f"<!doctype html><title>T</title><body><h1>H</h1><ul>{'<li><a href=/x>y</a>' * 150}</ul>{PART * 250}"
TABLE = f"<!doctype html><table>{'<tr><td>1<td>2<td>3' * 400}</table>"
FLAT = "<!doctype html><body>" + "<p>a" * 100_000
SMALL = "<!doctype html><body>" + "<p>a" * 2_000
"""8 KB: `count(preceding-sibling::p)` takes 11 s."""
LONG = f"<!doctype html><body class={'x' * 1_000_000}>{'<p>a</p>' * 10_000}"
DEEP = "<!doctype html><body>" + "<div>" * 400


def too_much(path: str, page: str) -> bool:
    cost = XPathCost([path])
    return bool(cost) and cost.is_too_much(parse(page))


@pytest.mark.parametrize("path", LINEAR)
def test_an_xpath_that_goes_down_once_needs_no_check(path: str) -> None:
    assert not XPathCost([path])


@pytest.mark.parametrize("page", [ORDINARY, TABLE], ids=["ordinary", "table"])
@pytest.mark.parametrize("path", [*LOOKS, *NESTED, *ANCESTORS])
def test_ordinary_pages_are_not_too_much(path: str, page: str) -> None:
    assert XPathCost([path])
    assert not too_much(path, page)


@pytest.mark.parametrize(
    ("path", "page"),
    [
        *((path, page) for path in LOOKS for page in (FLAT, SMALL)),
        *((path, FLAT) for path in WHOLE),
        (NESTED[-1], DEEP),
        *((path, LONG) for path in ANCESTORS[1:2]),
        ("//b/ancestor::div", "<div>" * 500 + "<b></b>" * 5_000),
        ("//p[contains(.., 'zz')]", f"<!doctype html><body>{'<p>a</p>' * 250}{'word ' * 4_000_000}"),
        ("//p[following-sibling::p[following-sibling::p[following-sibling::p]]]", TABLE),
        ("//text()[preceding-sibling::text()]", "<p>" + "a<!---->" * 3_000),
    ],
)
def test_a_page_with_very_many_siblings_or_levels_is_too_much(path: str, page: str) -> None:
    assert too_much(path, page)


@pytest.mark.parametrize("path", UNBOUNDED)
def test_an_xpath_without_a_known_bound_is_too_much_for_every_page(path: str) -> None:
    """`//*[@id=//label/@for]` took 8 s on a page of 120 KB that passed the check."""
    assert too_much(path, "<p>")
    assert too_much(f"//h1 | {path}" if "/@href =" not in path else path, ORDINARY)


def test_the_costs_of_all_xpaths_count() -> None:
    assert XPathCost(["//a", LOOKS[0]]).is_too_much(parse(FLAT))
    assert not XPathCost([])


def plan_with(path: str) -> Plan:
    return plan_of(SiteSpec(url="http://a.example/", fields={"x": {"xpath": path}}), fetchers=1, concurrency=4)


def body_of(page: str) -> Body:
    return Body(7, "http://a.example/", page.encode(), "text/html", "utf-8", "")


def test_only_a_reader_in_isolation_tries_the_xpath() -> None:
    plan = plan_with(LOOKS[0])
    assert PageReader(plan, careful=True).reading_of(body_of(SMALL)).reason == READ_ALONE
    assert PageReader(plan).reading_of(body_of(SMALL)).reason is None
    assert PageReader(plan, careful=True).reading_of(body_of(ORDINARY)).reason is None
    bare = body_of(SMALL)
    bare.bare = True
    assert PageReader(plan, careful=True).reading_of(bare).reason is None


class Pool:
    """Reads at once, as a parser does."""

    def __init__(self, plan: Plan) -> None:
        self._pages = PageReader(plan, careful=True)

    def __len__(self) -> int:
        return 0

    def read(self, body: Body, on_done: Any, _elsewhere: Any) -> None:
        on_done(self._pages.reading_of(body))


@pytest.mark.parametrize("with_parsers", [False, True])
def test_a_page_that_is_too_much_gets_one_try_in_isolation(with_parsers: bool, tmp_path: Path) -> None:
    """A field that looks at siblings, and three pages of 400 KB, killed the runner three times."""

    async def work() -> None:
        plan, marks = plan_with(LOOKS[0]), ReadingMarks.create(tmp_path / "marks")
        pool: Any = Pool(plan) if with_parsers else None
        reader = GuardedReader(plan, marks, pool=pool, owns_marks=True)
        asked: list[tuple[ReadPage, bool]] = []
        isolated: Any = reader._isolated
        isolated.submit = lambda task, *_, blamed, **__: asked.append((task, blamed))
        done: list[Reading] = []
        reader.read(body_of(ORDINARY), done.append)
        assert (len(done), asked) == (1, [])
        assert done[0].reason is None
        reader.read(body_of(FLAT), done.append)
        assert len(done) == 1, "it was not read here"
        assert [(task.body.bare, blamed) for task, blamed in asked] == [(False, True)]
        reader.close()

    asyncio.run(work())

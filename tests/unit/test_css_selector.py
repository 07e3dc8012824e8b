"""Selectors of users: what the check accepts the parser accepts, and the message names the place."""

import pytest
from turbohtml import parse

from silkline.model.css_selector import checked_selector

GOOD = [
    "p", "*", "p.a > b", ".a, #c", "p:has(b)", "p:has(> b)", "p:not(.x)", "p:is(.a,.b)", "p:nth-child(2n+1)",
    "li:nth-of-type(odd)", "[data-x]", "[x~='y' i]", '[href^="/a"]', "a b  c", "div:not(.a):first-child", "P.A",
    "a ~ b + c",
]  # fmt: skip
BAD = ["", "p..a", "p:foo", "p::text", "[a=b", "p >", ">p", "p, ", "p:not()", "((((", "p:nth-child(x)", "p)", "a" * 501]


@pytest.mark.parametrize("selector", GOOD)
def test_good_selectors(selector):
    parse("<p>x</p>").select(checked_selector(selector))


@pytest.mark.parametrize("selector", BAD)
def test_bad_selectors(selector):
    with pytest.raises(ValueError, match=r"CSS selector|pseudo-class|longer"):
        checked_selector(selector)

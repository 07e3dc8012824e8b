"""Which stored page may answer for one that is asked for now."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from silkline.model.cached import EXTRACTED, RULE_FIELDS, is_for, is_personal, is_shaped, serves

MARKDOWN = {"title": "A", "markdown": "# A"}


@pytest.mark.parametrize(
    ("data", "metadata", "payload", "content", "render", "will_do"),
    [
        (MARKDOWN, {"content": "markdown"}, {}, "markdown", "never", True),
        (MARKDOWN, {}, {}, "markdown", "never", True),
        (MARKDOWN, {}, {"content": "markdown"}, "none", "never", True),
        (MARKDOWN, {}, {"content": "full"}, "markdown", "never", False),
        (MARKDOWN, {"content": "full"}, {}, "full", "never", True),
        (MARKDOWN, {}, {}, "text", "never", False),
        ({"title": "A"}, {}, {"content": "none"}, "markdown", "never", False),
        ({"title": "A"}, {}, {"content": "none"}, "none", "never", True),
        ({"title": "A"}, {}, {}, "markdown", "never", False),
        ({"text": "a"}, {}, {"content": "text"}, "text", "never", True),
        (MARKDOWN, {}, {"headers": {"Authorization": "x"}}, "markdown", "never", False),
        (MARKDOWN, {}, {"cookies": {"sid": "x"}}, "none", "never", False),
        (MARKDOWN, {}, {}, "markdown", "always", False),
        (MARKDOWN, {"rendered": True}, {}, "markdown", "always", True),
        (
            MARKDOWN,
            {"rendered": False, "render_failed": "render_timeout"},
            {"render": "auto"},
            "markdown",
            "always",
            False,
        ),
        (MARKDOWN, {"rendered": True}, {"render": "always"}, "markdown", "auto", True),
        (MARKDOWN, {}, {"render": "auto"}, "markdown", "auto", True),
        (MARKDOWN, {}, {}, "markdown", "auto", False),
        (
            MARKDOWN,
            {"rendered": False, "render_failed": "render_timeout"},
            {"render": "auto"},
            "markdown",
            "auto",
            False,
        ),
        (MARKDOWN, {"rendered": True}, {"render": "always"}, "markdown", "never", True),
    ],
)
def test_what_serves(data: dict, metadata: dict, payload: dict, content: str, render: str, will_do: bool) -> None:
    assert serves(data, metadata, payload, content=content, render=render) is will_do


def test_other_user_agents_and_robots_rules_get_other_pages() -> None:
    mobile, careless = {"user_agent": "Mobile/1"}, {"ignore_robots": True}
    for stored, asked in (({}, {}), ({"user_agent": None}, {}), (mobile, mobile), ({}, careless), (careless, careless)):
        assert is_for(stored, asked), (stored, asked)
    for stored, asked in ((mobile, {}), ({}, mobile), (careless, {})):
        assert not is_for(stored, asked), (stored, asked)


class Spied(Mapping[str, Any]):
    """A spec that knows which of its fields were read."""

    def __init__(self) -> None:
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("the rule reads single fields")

    def __len__(self) -> int:
        raise AssertionError("the rule reads single fields")


def test_the_fields_of_the_rule_are_those_that_it_reads() -> None:
    """The cache asks the rule with these fields alone, and only for jobs that show all of them."""
    spec = Spied()
    assert not is_personal(spec)
    assert not is_shaped(spec)
    assert is_for(spec, spec)
    assert serves(MARKDOWN, {}, spec, content="markdown", render="never", extracted={})
    assert not serves(MARKDOWN, {}, spec, content="markdown", render="auto", extracted={})
    for name in EXTRACTED:
        assert not serves(MARKDOWN, {}, spec, content="markdown", render="never", extracted={name: ["x"]})
    assert spec.read == RULE_FIELDS


def test_what_is_personal() -> None:
    assert is_personal({"headers": {"X": "1"}})
    assert is_personal({"cookies": {"a": "b"}})
    assert not is_personal({"headers": {}, "user_agent": "x"})
    assert is_personal({"proxy": "http://proxy.test:3128"})


@pytest.mark.parametrize(
    ("job", "allowed", "will_do"),
    [
        (["10.0.0.0/8"], [], False),
        (["10.0.0.0/8"], ["192.168.0.0/16"], False),
        (["10.0.0.0/8", "127.0.0.1"], ["10.0.0.0/8"], False),
        (["10.0.0.0/8"], ["127.0.0.1", "10.0.0.0/8"], True),
        ([], [], True),
        ([], ["10.0.0.0/8"], True),
    ],
)
def test_what_a_job_with_private_addresses_brought_is_for_those_who_may_reach_them(
    job: list[str], allowed: list[str], will_do: bool
) -> None:
    found = serves(MARKDOWN, {}, {"allow_private": job}, content="markdown", render="never", allowed=allowed)
    assert found is will_do

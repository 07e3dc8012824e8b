"""Which stored page may answer for one that is asked for now."""

import pytest

from silkline.model.cached import is_for, is_personal, serves

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

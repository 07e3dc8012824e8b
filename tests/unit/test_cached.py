"""Which stored page may answer for one that is asked for now."""

import pytest

from silkline.model.cached import is_personal, serves

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


def test_what_is_personal() -> None:
    assert is_personal({"headers": {"X": "1"}})
    assert is_personal({"cookies": {"a": "b"}})
    assert not is_personal({"headers": {}, "user_agent": "x"})

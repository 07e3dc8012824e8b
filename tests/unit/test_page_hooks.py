"""Page hooks: what they add, how they refuse, and that no failure of theirs is more than a reason."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from turbohtml import parse

from silkline.crawl import page_hooks
from silkline.crawl.page_hooks import HOOK_FAILED, HOOK_REFUSED, HookResult, installed_hooks, load_hooks, run_hooks
from silkline.errors import Permanent
from silkline.model.hook import Additions, HookedPage
from tests.support.plugins import install

PAGE = HookedPage("https://a.example/x/", {"server": "s"}, parse("<h1>Hi"), {"title": "T"})


def ran(*hooks: Callable[[HookedPage], Any]) -> HookResult:
    return run_hooks([(f"hook{number}", hook) for number, hook in enumerate(hooks)], PAGE)


def test_hooks_add_data_and_links() -> None:
    def first(page: HookedPage) -> Additions:
        return Additions(
            data={"h": page.document.select_one("h1").text, "t": page.data["title"]}, links=["y", "mailto:z"]
        )

    found = ran(first, lambda page: None, lambda page: Additions(data={"s": page.headers["server"]}))
    assert found == HookResult({"h": "Hi", "t": "T", "s": "s"}, ["https://a.example/x/y"])


def test_a_hook_refuses() -> None:
    found = ran(lambda page: Additions(refusal="no lamps"), lambda page: pytest.fail("the page is refused already"))
    assert (found.reason, found.detail) == (HOOK_REFUSED, "hook0: no lamps")


def loop(page: HookedPage) -> None:
    while True:
        try:
            time.sleep(0.01)
        except Exception:
            continue


class MuteError(Exception):
    def __str__(self) -> str:
        raise ValueError


def mute(page: HookedPage) -> None:
    raise MuteError


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        (lambda page: 1 / 0, "ZeroDivisionError"),
        (lambda page: {"a": 1}, "Additions or None, not dict"),
        (lambda page: Additions(data={"a": object()}), "TypeError"),
        (lambda page: Additions(data={"a": "x" * 2_000_000}), "larger than"),
        (lambda page: Additions(data=json.loads('{"a":' + "[" * 100 + "]" * 100 + "}")), "more than 100 levels"),
        (lambda page: Additions(links="https://a.example/"), "links must be a list"),
        (lambda page: sys.setrecursionlimit, "Additions or None"),
        (loop, "longer than 0.1 s"),
        (mute, "MuteError: its text cannot be shown"),
    ],
)
def test_a_failure_is_a_reason(hook: Any, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_hooks, "SECONDS", 0.1)
    found = ran(hook)
    assert found.reason == HOOK_FAILED
    assert found.detail.startswith("hook0: ")
    assert words in found.detail
    assert found.data == {}


def test_installed_hooks_are_found_and_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert installed_hooks() == ()
    source = "def look(page): return None\nvalue = 5\n"
    hooks = {"b": "a_hook:look", "a": "a_hook:look"}
    monkeypatch.syspath_prepend(str(install(tmp_path / "plugins", {"a_hook": source}, {}, hooks)))
    assert installed_hooks() == (("a", "a_hook:look"), ("b", "a_hook:look"))
    assert [name for name, _ in load_hooks(installed_hooks())] == ["a", "b"]
    for place, words in (
        ("no_such:look", "ModuleNotFoundError"),
        ("a_hook:none", "AttributeError"),
        ("a_hook:value", ""),
    ):
        with pytest.raises(Permanent, match=f"page hook 'x' .*{words}"):
            load_hooks([("x", place)])


def test_a_hook_whose_import_sleeps_or_exits_ends_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {"a_hook_that_sleeps": "import time\ntime.sleep(1_000)", "a_hook_that_exits": "import sys\nsys.exit(0)"}
    monkeypatch.syspath_prepend(str(install(tmp_path / "plugins", modules, {})))
    monkeypatch.setattr(page_hooks, "IMPORT_SECONDS", 0.1)
    for name, words in (("sleeps", "took longer than 0.1 s"), ("exits", "SystemExit")):
        with pytest.raises(Permanent, match=f"page hook 'x' cannot be loaded: .*{words}"):
            load_hooks([("x", f"a_hook_that_{name}:look")])

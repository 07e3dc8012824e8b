"""Kinds of jobs: those that come with Silkline, and plugins, good and bad."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from silkline.errors import SpecError
from silkline.kinds import registry
from silkline.model.spec import PageSpec
from tests.support.plugins import install

GOOD = """
from silkline.model.spec import Spec

class Greeting(Spec):
    name: str = "you"

class Greeter:
    spec = Greeting
    def run(self, context):
        return f"hello {context}"

def run(context):
    return None
run.spec = Greeting

def bare(context):
    return None
"""
KINDS = {
    "greet": "a_plugin:run",
    "greeter": "a_plugin:Greeter",
    "bare": "a_plugin:bare",
    "missing": "no_such_module:run",
    "lost": "a_plugin:nothing",
    "heavy": "a_heavy_plugin:run",
    "page": "a_plugin:run",
}


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    modules = {"a_plugin": GOOD, "a_heavy_plugin": "raise RuntimeError('imported')"}
    monkeypatch.syspath_prepend(install(tmp_path / "plugins", modules, KINDS, heavy="a_plugin:Greeting"))
    registry._plugins.cache_clear()
    yield
    registry._plugins.cache_clear()
    sys.modules.pop("a_plugin", None)


@pytest.mark.usefixtures("plugins")
def test_a_plugin_is_a_kind_like_any_other() -> None:
    assert set(KINDS) | set(registry.BUILT_IN) == set(registry.kinds())
    assert {"greet", "page"} <= set(registry.claimable())
    assert "a_plugin" not in sys.modules, "a supervisor reads names and imports nothing"
    for name in ("greet", "greeter"):
        kind = registry.kind_named(name)
        assert registry.check_payload(kind, {}).name == "you"
        with pytest.raises(SpecError, match="unknown field 'nme': did you mean 'name'"):
            registry.check_payload(kind, {"nme": "me"})
    assert registry.load(registry.kind_named("greet"))("x") is None
    assert registry.load(registry.kind_named("greeter"))("x") == "hello x"


@pytest.mark.usefixtures("plugins")
def test_a_spec_announced_apart_spares_the_code() -> None:
    assert registry.check_payload(registry.kind_named("heavy"), {"name": "x"}).name == "x"
    with pytest.raises(RuntimeError, match="imported"):
        registry.load(registry.kind_named("heavy"))


@pytest.mark.usefixtures("plugins")
def test_a_plugin_replaces_nothing() -> None:
    assert registry.spec_of(registry.kind_named("page")) is PageSpec


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bare", "the plugin for kind 'bare' has no spec"),
        ("missing", "cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'"),
        ("lost", "cannot be loaded: AttributeError"),
    ],
)
def test_a_bad_plugin_is_refused_with_the_reason(name: str, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        registry.check_payload(registry.kind_named(name), {})


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SpecError, match=r"unknown kind 'pgae'; did you mean 'page'\? \(known: bluesky, crawl4ai"):
        registry.kind_named("pgae")


def test_every_built_in_kind_has_its_spec_in_the_registry() -> None:
    """So no code has to be imported to check a payload."""
    for kind in (*registry.BUILT_IN.values(), registry.DIAGNOSTIC):
        assert kind.spec is not None
        if not kind.external:
            assert not hasattr(registry.load(kind), "spec")

"""Kinds of jobs: those that come with Silkline, and plugins, good and bad."""

import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from silkline.errors import Permanent, SpecError
from silkline.kinds import plugin_import, registry, specs
from silkline.model.spec import PageSpec, Spec
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
    "sleeps": "a_plugin_that_sleeps:run",
    "crashes": "a_plugin_that_crashes:run",
    "exits": "a_plugin_that_exits:run",
}
BAD = {
    "a_plugin_that_sleeps": "import time\ntime.sleep(1_000)",
    "a_plugin_that_crashes": "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)",
    "a_plugin_that_exits": "import os\nos._exit(3)",
}


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    modules = {"a_plugin": GOOD, "a_heavy_plugin": "raise RuntimeError('imported')", **BAD}
    monkeypatch.syspath_prepend(install(tmp_path / "plugins", modules, KINDS, heavy="a_plugin:Greeting"))
    registry._plugins.cache_clear()
    monkeypatch.setattr(plugin_import, "_passed", set())
    monkeypatch.setattr(plugin_import, "_failed", {})
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
        assert specs.check_payload(kind, {}).name == "you"
        with pytest.raises(SpecError, match="unknown field 'nme': did you mean 'name'"):
            specs.check_payload(kind, {"nme": "me"})
    assert registry.load(registry.kind_named("greet"))("x") is None
    assert registry.load(registry.kind_named("greeter"))("x") == "hello x"


@pytest.mark.usefixtures("plugins")
def test_a_spec_announced_apart_spares_the_code() -> None:
    assert specs.check_payload(registry.kind_named("heavy"), {"name": "x"}).name == "x"
    with pytest.raises(RuntimeError, match="imported"):
        registry.load(registry.kind_named("heavy"))


@pytest.mark.usefixtures("plugins")
def test_a_plugin_replaces_nothing() -> None:
    assert specs.spec_of(registry.kind_named("page")) is PageSpec


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bare", "the plug-in for kind 'bare' has no spec"),
        ("missing", "cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'"),
        ("lost", "cannot be loaded: AttributeError"),
    ],
)
def test_a_bad_plugin_is_refused_with_the_reason(name: str, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        specs.check_payload(registry.kind_named(name), {})


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SpecError, match=r"unknown kind 'pgae'; did you mean 'page'\? \(known: bluesky, crawl4ai"):
        registry.kind_named("pgae")


def test_every_built_in_kind_has_its_spec_apart_from_its_code() -> None:
    """So no code has to be imported to check a payload."""
    for kind in (*registry.BUILT_IN.values(), registry.DIAGNOSTIC):
        assert issubclass(specs.spec_of(kind), Spec)
        if not kind.external:
            assert not hasattr(registry.load(kind), "spec")


def in_a_thread(name: str) -> str:
    """What a server answers for a job of this kind; empty: the job is valid."""
    with ThreadPoolExecutor(1) as threads:
        try:
            threads.submit(specs.check_payload, registry.kind_named(name), {}).result()
        except SpecError as error:
            return str(error)
    return ""


@pytest.mark.usefixtures("plugins")
def test_a_plugin_that_sleeps_or_crashes_at_its_import_harms_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server tries the import in another process first."""
    assert in_a_thread("greet") == ""
    assert f"cannot be loaded: its import ended the process ({-signal.SIGSEGV})" in in_a_thread("crashes")
    assert "cannot be loaded: its import ended the process (3)" in in_a_thread("exits")
    assert "cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'" in in_a_thread("missing")
    monkeypatch.setattr(plugin_import, "TRIAL_SECONDS", 0.5)
    assert "cannot be loaded: its import took longer than 0.5 s" in in_a_thread("sleeps")
    monkeypatch.setattr(plugin_import, "_trial_of", None)
    assert "took longer than" in in_a_thread("sleeps"), "it is not tried again at once"
    assert in_a_thread("greet") == ""
    assert not {"a_plugin_that_sleeps", "a_plugin_that_crashes", "a_plugin_that_exits"} & set(sys.modules)


@pytest.mark.usefixtures("plugins")
def test_few_threads_of_a_server_wait_for_a_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    began, goes_on = threading.Event(), threading.Event()

    def trial(target: str, default: str) -> str:
        began.set()
        goes_on.wait()
        return "it is broken"

    monkeypatch.setattr(plugin_import, "_trial_of", trial)
    monkeypatch.setattr(plugin_import, "_waiting", threading.BoundedSemaphore(1))
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(in_a_thread, "sleeps")
        began.wait()
        assert "it is being imported for other requests; try again in some seconds" in in_a_thread("crashes")
        goes_on.set()
        assert "it is broken" in waiting.result()


@pytest.mark.usefixtures("plugins")
def test_a_command_and_a_runner_wait_for_an_import_for_a_limited_time(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = registry.kind_named("sleeps")
    monkeypatch.setattr(plugin_import, "SECONDS", 0.2)
    monkeypatch.setattr(registry, "SECONDS", 0.2)
    with pytest.raises(SpecError, match=r"cannot be loaded: its import took longer than 0\.2 s"):
        specs.check_payload(kind, {})
    with pytest.raises(Permanent, match=r"cannot be loaded: its import took longer than 0\.2 s"):
        registry.load(kind)

"""Finds, loads and runs the page hooks of plug-ins (model/hook.py), in the processes that read pages.

A hook that raises an exception, returns something else, or takes too long is a reason (`hook_failed`) of its page, not
the end of a process. A hook that does not return even then, because it is not Python code, is ended together with its
process by the limit of that process; then the page is read without hooks, and has the same reason.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from silkline.errors import Permanent
from silkline.model.hook import Additions, Hook, HookedPage
from silkline.model.strict_json import is_deeper_than
from silkline.model.url import canonical
from silkline.time_limit import TookTooLong, interrupted_after

GROUP: Final = "silkline.page"
HOOK_FAILED: Final = "hook_failed"
HOOK_REFUSED: Final = "hook_refused"
SECONDS: Final = 3.0
IMPORT_SECONDS: Final = 30.0
MAX_DATA: Final = 1_000_000
"""Characters of the JSON of all data that hooks add to a page."""
MAX_DEPTH: Final = 100
"""Levels of the data. A reading with more than twice as many is refused (foreign_readings.py)."""
MAX_LINKS: Final = 10_000
_encode = msgspec.json.Encoder().encode


class HookResult(NamedTuple):
    """What all hooks together say about a page."""

    data: dict[str, Any]
    links: list[str]
    reason: str | None = None
    detail: str = ""


def installed_hooks() -> tuple[tuple[str, str], ...]:
    """The name and the place (`module:function`) of every hook that is installed, in the order of their names.

    The entry points of all packages take 60 ms to read, so first search their files for the name of the group.
    """
    if not any(GROUP.encode() in found for found in _entry_point_files()):
        return ()
    return tuple(sorted({(point.name, point.value) for point in entry_points(group=GROUP)}))


def load_hooks(places: Sequence[tuple[str, str]]) -> list[tuple[str, Hook]]:
    """Import the hooks. A hook that cannot be imported ends the job, before any page is fetched."""
    return [(name, _imported(name, place)) for name, place in places]


def run_hooks(hooks: Sequence[tuple[str, Hook]], page: HookedPage) -> HookResult:
    """Run the hooks on one page. The first failure or refusal ends it."""
    data: dict[str, Any] = {}
    links: list[str] = []
    for name, hook in hooks:
        try:
            with interrupted_after(SECONDS):
                added = hook(page)
            if added is None:
                continue
            if not isinstance(added, Additions):
                raise TypeError(f"a hook returns Additions or None, not {type(added).__name__}")
            if added.refusal:
                return HookResult({}, links, HOOK_REFUSED, f"{name}: {added.refusal}"[:500])
            data |= _checked(added.data)
            links += _addresses(added.links, page.url)
        except MemoryError:
            raise
        except TookTooLong:
            return HookResult({}, links, HOOK_FAILED, f"{name}: it took longer than {SECONDS:g} s")
        except Exception as error:
            return HookResult({}, links, HOOK_FAILED, f"{name}: {type(error).__name__}: {_text_of(error)}"[:500])
    return HookResult(data, links)


def _text_of(error: BaseException) -> str:
    """The text of an error of a hook, which may fail itself."""
    try:
        return str(error)
    except Exception:
        return "its text cannot be shown"


def _checked(data: Any) -> dict[str, Any]:
    """The data as plain JSON."""
    text = _encode(dict(data))
    if len(text) > MAX_DATA:
        raise ValueError(f"the data is larger than {MAX_DATA:,} bytes")
    plain: dict[str, Any] = msgspec.json.decode(text)
    if is_deeper_than(plain, MAX_DEPTH):
        raise ValueError(f"the data is nested in more than {MAX_DEPTH} levels")
    return plain


def _addresses(links: Sequence[str], url: str) -> list[str]:
    if isinstance(links, str) or len(links) > MAX_LINKS:
        raise ValueError(f"links must be a list of at most {MAX_LINKS:,} URLs")
    return [address for link in links if (address := canonical(link, base=url)) is not None]


def _imported(name: str, place: str) -> Hook:
    module, _, attribute = place.partition(":")
    try:
        with interrupted_after(IMPORT_SECONDS):
            found: Any = importlib.import_module(module.strip())
            for part in attribute.strip().split("."):
                found = getattr(found, part)
    except TookTooLong:
        text = f"the page hook {name!r} cannot be loaded: its import took longer than {IMPORT_SECONDS:g} s"
        raise Permanent(text) from None
    except (Exception, SystemExit) as error:
        raise Permanent(f"the page hook {name!r} cannot be loaded: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise Permanent(f"the page hook {name!r} is not a function")
    hook: Hook = found
    return hook


def _entry_point_files() -> Iterator[bytes]:
    for folder in dict.fromkeys(sys.path):
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208 - 5 times as fast, and most paths have hundreds
        except OSError:
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                try:
                    yield Path(folder, name, "entry_points.txt").read_bytes()
                except OSError:
                    continue

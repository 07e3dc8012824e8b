"""Imports the code of a plug-in with a time limit, so that no process waits for ever for a module that sleeps.

A command or a runner imports it in its main thread, which can be interrupted. A server calls from a thread, which
cannot. There the import is tried first in a child process, which may hang or crash. Only code that passed is imported,
and few threads wait for it at the same time.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
import time
from typing import Any, Final

from silkline.time_limit import TookTooLong, can_interrupt, interrupted_after

SECONDS: Final = 30.0
"""In the main thread."""
TRIAL_SECONDS: Final = 10.0
FAILED_FOR: Final = 30.0
"""How long a failed trial counts, in seconds: the operator may have repaired the plug-in."""
MOST_WAITING: Final = 4
_TRIAL: Final = "import sys; from silkline.kinds.plugin_import import found_at; found_at(*sys.argv[1:])"
_trial = threading.Lock()
_waiting = threading.BoundedSemaphore(MOST_WAITING)
_passed: set[str] = set()
_failed: dict[str, tuple[float, str]] = {}


class ImportFailed(Exception):
    """The code cannot be imported; the text says why."""


def import_target(target: str, default: str) -> Any:
    """The object at `module:attribute`. Raises `ImportFailed`."""
    if not can_interrupt():
        _try_apart(target, default)
    try:
        with interrupted_after(SECONDS):
            return found_at(target, default)
    except TookTooLong:
        raise ImportFailed(f"its import took longer than {SECONDS:g} s") from None
    except (Exception, SystemExit) as error:
        raise ImportFailed(f"{type(error).__name__}: {error}") from error


def found_at(target: str, default: str) -> Any:
    """Import without a limit."""
    module, _, attribute = target.partition(":")
    found: Any = importlib.import_module(module.strip())
    for name in (attribute.strip() or default).split("."):
        found = getattr(found, name)
    return found


def _try_apart(target: str, default: str) -> None:
    """Import in a child process, once for each target."""
    if target in _passed:
        return
    if not _waiting.acquire(blocking=False):
        raise ImportFailed("it is being imported for other requests; try again in some seconds")
    try:
        with _trial:
            since, why = _failed.get(target, (0.0, ""))
            if target in _passed:
                return
            if not why or time.monotonic() - since > FAILED_FOR:
                why = _trial_of(target, default)
                if not why:
                    _passed.add(target)
                    return
                _failed[target] = (time.monotonic(), why)
        raise ImportFailed(why)
    finally:
        _waiting.release()


def _trial_of(target: str, default: str) -> str:
    """Why the import fails; empty: it does not."""
    command = [sys.executable, "-P", "-c", _TRIAL, target, default]
    # The child finds the modules that this process finds.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        ended = subprocess.run(  # noqa: S603 - the operator installed the plug-in
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=TRIAL_SECONDS,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"its import took longer than {TRIAL_SECONDS:g} s"
    except OSError as error:
        return f"no process could be started to import it: {error}"
    if ended.returncode == 0:
        return ""
    said = ended.stderr.decode(errors="replace").strip().rpartition("\n")[2][:300]
    return said or f"its import ended the process ({ended.returncode})"

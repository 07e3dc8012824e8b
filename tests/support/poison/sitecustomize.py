"""Makes every process that has this folder in PYTHONPATH hurt itself when it reads poison. For tests only.

Poison is a word in the body of a page or robots.txt, so that a test can put it anywhere, and no limit of the parsers
takes it away. `POISON:loop` never ends and never lets another thread run; `POISON:memory` takes all it gets;
`POISON:crash` ends the process by a signal; `POISON:error` raises what nobody expects. `POISON:once:PATH` loops until
the file is there, so that a test can kill the process meanwhile, and is a good page afterwards. `POISON:forge` takes
the process over: it reads all further pages, and says something wrong about them.
"""

import contextlib
import importlib.abc
import importlib.machinery
import os
import re
import signal
import sys
import time
from pathlib import Path

_POISON = re.compile(rb"POISON:(\w+)(?::([\w./-]+))?")


def hurt(body: bytes) -> None:
    """Whatever the body says."""
    found = _POISON.search(body)
    what = found[1].decode() if found else ""
    if what == "loop":
        re.match(r"(a|aa)+$", "a" * 100_000 + "b")
    elif what == "memory":
        kept = []
        while True:
            kept.append(b"x" * (8 << 20))
    elif what == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif what == "error":
        raise SystemError("poison")
    elif what == "forge":
        reading = sys.modules["silkline.crawl.reading"]
        reading.PageReader.reading_of = lambda self, body: reading.Reading(body.id, data="[1,2]")
    elif what == "once" and found is not None:
        with contextlib.suppress(PermissionError):  # a confined reader sees no file, and finds a good page
            while not Path(found[2].decode()).exists():
                time.sleep(0.01)


def _wrapped(function):
    def poisoned(body, *arguments, **options):
        hurt(body)
        return function(body, *arguments, **options)

    return poisoned


_READERS = {"silkline.parse.html": "parse_page", "silkline.fetch.robots": "read"}


class Poisoner(importlib.abc.MetaPathFinder):
    """Wraps the functions that read bytes from the web, when their modules are imported."""

    def find_spec(self, name, path=None, target=None):
        if name not in _READERS:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            setattr(module, _READERS[name], _wrapped(getattr(module, _READERS[name])))

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Poisoner())

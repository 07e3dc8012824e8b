"""Finds the Chromium of this machine. It imports little, because `silkline doctor` uses it too.

`chromium-headless-shell` is preferred: it is Chromium without its windows, and needs half the CPU for a page.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

WHAT_TO_INSTALL: Final = (
    "no Chromium was found. Install it (Debian: `apt install chromium-headless-shell`; anywhere: `playwright install "
    "chromium`), or set SILKLINE_RENDERER_URL to a browser that runs elsewhere"
)
_SHELL: Final = "headless"
_NAMES: Final = (
    *("chromium-headless-shell", "chrome-headless-shell"),
    *("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome"),
)
# Debian's commands are shell scripts that add their own options and start these programs.
_PLACES: Final = ("/usr/lib/chromium/chromium-headless-shell", "/usr/lib/chromium/chromium")
_PLAYWRIGHT: Final = ("chromium_headless_shell-*/chrome-*linux*/*headless*shell", "chromium-*/chrome-linux*/chrome")


def find_browser() -> str | None:
    """The path of a Chromium on this machine: from the system, else from playwright. Without windows, if possible."""
    found = list(_browsers())
    return next((each for each in found if is_shell(each)), found[0] if found else None)


def is_shell(program: str) -> bool:
    """Whether a browser is the light one, without windows."""
    return _SHELL in Path(program).name


def _browsers() -> Iterator[str]:
    cache = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache" / "ms-playwright")
    yield from (place for place in _PLACES if os.access(place, os.X_OK))
    yield from filter(None, map(shutil.which, _NAMES))
    for pattern in _PLAYWRIGHT:
        yield from (str(each) for each in sorted(cache.glob(pattern), reverse=True) if os.access(each, os.X_OK))

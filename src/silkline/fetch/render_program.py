"""Finds the Chromium of this machine. It imports little, because `silkline doctor` uses it too."""

import os
import shutil
from pathlib import Path
from typing import Final

WHAT_TO_INSTALL: Final = (
    "no Chromium was found. Install it (Debian and Ubuntu: `apt install chromium`; anywhere: `playwright install "
    "chromium`), or set SILKLINE_RENDERER_URL to a browser that runs elsewhere"
)
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
# Debian's `chromium` is a shell script that adds its own options and starts this program.
_PLACES: Final = ("/usr/lib/chromium/chromium",)


def find_browser() -> str | None:
    """The path of a Chromium on this machine: from the system, else from playwright."""
    cache = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache" / "ms-playwright")
    for place in _PLACES:
        if os.access(place, os.X_OK):
            return place
    for name in _NAMES:
        if found := shutil.which(name):
            return found
    for pattern in ("chromium-*/chrome-linux*/chrome", "chromium_headless_shell-*/chrome-*linux*/*headless*shell"):
        for program in sorted(cache.glob(pattern), reverse=True):
            if os.access(program, os.X_OK):
                return str(program)
    return None

"""Which Chromium there is on this machine. Light, for `silkline doctor` asks too."""

import os
import shutil
from pathlib import Path
from typing import Final

WHAT_TO_INSTALL: Final = (
    "no Chromium was found. Install it (Debian and Ubuntu: `apt install chromium`; anywhere: `playwright install "
    "chromium`), or set SILKLINE_RENDERER_URL to a browser that runs elsewhere"
)
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
# Debian's `chromium` is a shell script around this one, which adds options of its own.
_PLACES: Final = ("/usr/lib/chromium/chromium",)


def find_browser() -> str | None:
    """The program of a Chromium on this machine: the system's, else one that playwright has installed."""
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

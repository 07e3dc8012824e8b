"""Controls the environment and the command line of our processes, which other users can read (`ps e`, /proc).

A process that reads the web is started only with the variables that it needs. It gets everything else over a socket. A
supervisor needs the secrets that it was started with, so it overwrites them in the memory that the kernel shows.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

_KEPT: Final = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TZDIR", "TMPDIR", "TMP", "TEMP", "VIRTUAL_ENV"),
        *("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"),
        *("LD_LIBRARY_PATH", "LD_PRELOAD", "GLIBC_TUNABLES", "RES_OPTIONS", "LOCALDOMAIN"),
        *("FONTCONFIG_PATH", "FONTCONFIG_FILE", "PLAYWRIGHT_BROWSERS_PATH"),
        *("SILKLINE_WORKER_MARK", "SILKLINE_JOB_MARK"),
    }
)
_KEPT_FAMILIES: Final = ("LC_", "PYTHON", "MALLOC_")
# libpq and Kerberos read these variables. One of them may contain the password of the database.
_OF_DATABASE: Final = ("PG", "KRB5")
# Indexes of fields in /proc/PID/stat, counted from the state of the process: proc_pid_stat(5), 48 to 51.
_ARGUMENTS, _ENVIRONMENT = 45, 47


def scrubbed(also: Iterable[str] = (), environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment for a process that reads the web: the variables that it needs, and those named in `also`."""
    wanted = {*_KEPT, *also}
    return {name: value for name, value in environ.items() if name in wanted or name.startswith(_KEPT_FAMILIES)}


def of_database(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that a connection to PostgreSQL may depend on."""
    return {name: value for name, value in environ.items() if name.startswith(_OF_DATABASE)}


def hide(secrets: Iterable[str]) -> None:
    """Overwrite these texts in the memory that the kernel shows. `os.environ` and libraries still have them."""
    known = {os.fsencode(secret) for secret in secrets if secret}
    for name, value in os.environ.items():
        if os.fsencode(value) in known:
            os.environ[name] = value  # makes a copy for the C library; the original is overwritten below
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        for start, end in ((_ARGUMENTS, _ARGUMENTS + 1), (_ENVIRONMENT, _ENVIRONMENT + 1)):
            _overwrite(int(fields[start]), int(fields[end]), known)
    except (OSError, IndexError, ValueError):  # the file does not exist, or the kernel is older: hide nothing
        return


def _overwrite(start: int, end: int, secrets: Iterable[bytes]) -> None:
    if not 0 < start < end:
        return
    shown = ctypes.string_at(start, end - start)
    for secret in secrets:
        for found in re.finditer(rb"(?<=[=\0])" + re.escape(secret) + rb"(?=\0)", shown):
            ctypes.memset(start + found.start(), ord("*"), len(secret))

"""Called by `make test` before pytest: installs the programs that the tests need and this machine lacks, when it may.

As root on a machine with apt-get it installs them; for anyone else it says what to install and fails. The tests of an
optional program are left out without it.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import partial

from tests.support import programs
from tests.support.programs import Missing

Need = tuple[str, Callable[[], object]]
OPTIONAL = {"pgbouncer"}


def needs(environment: dict[str, str]) -> list[Need]:
    """Debian's name of each program, and the question that raises `Missing` when it is not there."""
    wanted: list[Need] = [("chromium", programs.chromium), ("pgbouncer", programs.pgbouncer)]
    if not environment.get("SILKLINE_TEST_POSTGRES_URL"):
        wanted.append(("postgresql", programs.postgres_bin))
    return wanted


def missing(wanted: Iterable[Need]) -> dict[str, str]:
    lacking = {}
    for package, find in wanted:
        try:
            find()
        except Missing as reason:
            lacking[package] = str(reason)
    return lacking


def install(packages: Iterable[str]) -> None:
    print(f"make test: installing {', '.join(packages)} with apt-get, since you are root", flush=True)
    # RUNLEVEL=1 keeps Debian's start scripts from starting the servers: the tests start their own.
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    quietly = partial(subprocess.run, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
    command = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *packages]
    if quietly(command).returncode != 0:
        print("make test: that failed; fetching apt's package lists and trying once more", flush=True)
        quietly(["apt-get", "update", "--quiet"])
        quietly(command)


def main() -> int:
    may_install = os.geteuid() == 0 and shutil.which("apt-get") is not None
    lacking = missing(needs(dict(os.environ)))
    if lacking and may_install:
        install(lacking)
        lacking = missing(needs(dict(os.environ)))
    for reason in lacking.values():
        print(f"make test: this machine lacks {reason}", file=sys.stderr)
    return 1 if lacking.keys() - OPTIONAL else 0


if __name__ == "__main__":
    sys.exit(main())

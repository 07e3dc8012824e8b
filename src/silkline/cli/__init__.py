"""The command line: parse, call one function, render. Data goes to stdout, messages to stderr.

`group` lists the commands and imports the module of a command only when that command runs. `exits` turns errors into
exit codes; no other module does. `session` holds the options that all commands share. `terminal` is the only module
that prints.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """The entry point of `silkline`."""
    _open_closed_streams()
    try:
        from silkline.cli.exits import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def _open_closed_streams() -> None:
    """Open /dev/null for each standard stream that the caller closed; the next opened file would get its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nothing = os.open(os.devnull, os.O_RDWR)
            if nothing != number:
                os.dup2(nothing, number)
                os.close(nothing)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))

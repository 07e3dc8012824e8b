"""The command line: parse, call one function, render. Data goes to stdout, messages to stderr.

`group` knows every command by name and imports it only when it is used; `exits` turns errors into exit codes, in one
place; `session` holds what all commands share; `terminal` is the only module that prints.
"""

from __future__ import annotations

import sys


def main() -> None:
    """The entry point of `silkline`."""
    try:
        from silkline.cli.exits import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)

"""`python -m silkline.runner`: one attempt in a fresh interpreter, where no fork server is wanted.

Started by service/launcher.py with three descriptors and one `wire.Launch` as JSON in the arguments.
"""

from __future__ import annotations

import sys

import msgspec

from silkline.runner import protocol
from silkline.runner.server import live

if __name__ == "__main__":
    live(msgspec.json.decode(sys.argv[1], type=protocol.Launch), [int(number) for number in sys.argv[2:5]])

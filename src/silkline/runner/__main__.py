"""`python -m silkline.runner`: one attempt in a new interpreter, for the setting `fork_server = false`.

service/launcher.py starts it. The arguments are a `protocol.Launch` as JSON, and its descriptors.
"""

from __future__ import annotations

import sys

import msgspec

from silkline.runner import protocol
from silkline.runner.server import run_runner

if __name__ == "__main__":
    run_runner(msgspec.json.decode(sys.argv[1], type=protocol.Launch), [int(number) for number in sys.argv[2:]])

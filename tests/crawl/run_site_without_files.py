"""The same as run_site.py, but once the crawl has connections, every file that is left is taken away for a while."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from tests.crawl.run_site import main

HELD = 2.0  # seconds; long enough for many requests to find no socket


def hog() -> None:
    while sum(1 for _ in Path("/proc/self/fd").iterdir()) < 40:
        time.sleep(0.01)
    taken = []
    until = time.monotonic() + HELD
    while time.monotonic() < until:
        try:
            taken.append(os.dup(2))
        except OSError:
            time.sleep(0.005)
    for descriptor in taken:
        os.close(descriptor)
    print(f"took {len(taken)} files", file=sys.stderr, flush=True)


if __name__ == "__main__":
    threading.Thread(target=hog, daemon=True).start()
    main(*sys.argv[1:])

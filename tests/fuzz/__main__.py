"""Feeds every reader with bombs and mutated inputs for as long as asked, and keeps the inputs that broke a limit.

`make fuzz` runs it for an hour; `FUZZ_SECONDS=60 make fuzz` for a minute. `FUZZ_SEED` repeats a run. What was found
lies in `build/fuzz`: the input, and beside it what went wrong. A finding becomes a generator among the bombs, so that
the tests try it from then on.
"""

import hashlib
import os
import sys
import time
from pathlib import Path
from random import Random

from tests.fuzz.limited_child import LimitedChild
from tests.fuzz.mutations import mutated
from tests.fuzz.readers import READERS

PLACE = Path("build/fuzz")


def main() -> int:
    seconds = float(os.environ.get("FUZZ_SECONDS", "3600"))
    seed = int(os.environ.get("FUZZ_SEED") or time.time())
    print(f"fuzzing for {seconds:.0f} s, FUZZ_SEED={seed}", flush=True)
    random, end = Random(seed), time.monotonic() + seconds
    tried, found = 0, 0
    slowest: dict[str, float] = {}
    with LimitedChild(READERS) as child:
        while time.monotonic() < end:
            reader = random.choice(list(READERS))
            body = mutated(reader, random)
            measured = child.measure(reader, body)
            tried += 1
            slowest[reader] = max(slowest.get(reader, 0.0), measured.seconds)
            faults = measured.faults(len(body))
            if faults:
                found += 1
                print(f"{reader}: {'; '.join(faults)} ({_keep(reader, body, faults)})", flush=True)
    print(f"{tried} inputs tried, {found} broke a limit")
    print("slowest: " + ", ".join(f"{name} {most:.2f} s" for name, most in sorted(slowest.items())))
    return 1 if found else 0


def _keep(reader: str, body: bytes, faults: list[str]) -> Path:
    PLACE.mkdir(parents=True, exist_ok=True)
    path = PLACE / f"{reader}-{hashlib.sha256(body).hexdigest()[:12]}.bin"
    path.write_bytes(body)
    path.with_suffix(".txt").write_text("\n".join(faults) + "\n")
    return path


if __name__ == "__main__":
    sys.exit(main())

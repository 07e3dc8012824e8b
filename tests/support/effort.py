"""How much a run of the tests should try: minutes (`make test`), or as long as it takes (`make chaos`)."""

import os

LONG = os.environ.get("SILKLINE_CHAOS") == "long"


def examples(short: int, long: int) -> int:
    """How many examples a property is tried with."""
    return long if LONG else short

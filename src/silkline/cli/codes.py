"""The exit codes, and which one an error or the end of a job gives.

| code | meaning |
|---|---|
| 0 | done; where a job is waited for: it completed |
| 1 | failed or refused: the job's state does not allow it, the database cannot be used |
| 2 | usage: an unknown option, setting or field, a broken payload |
| 3 | the job waits to go on: Ctrl-C paused it, or SIGTERM put it back into the queue |
| 4 | the job was stopped or cancelled |
| 5 | not found |
| 130 | a command other than `crawl` and `resume` was interrupted by Ctrl-C |
| 141 | whoever read the output went away, as with `head` |
"""

from __future__ import annotations

from silkline.errors import NotFound, SilklineError, UsageError

OK, FAILED, USAGE, PAUSED, STOPPED, NOT_FOUND, INTERRUPTED, NO_READER = 0, 1, 2, 3, 4, 5, 130, 141
_OF_STATUS = {"completed": OK, "failed": FAILED, "stopped": STOPPED, "cancelled": STOPPED}


def of_error(error: SilklineError) -> int:
    match error:
        case UsageError():
            return USAGE
        case NotFound():
            return NOT_FOUND
        case _:
            return FAILED


def of_status(status: str) -> int:
    """What a command that waited for a job ends with."""
    return _OF_STATUS.get(status, PAUSED)

"""The exit codes, and the exit code for each error and each end of a job.

| code | meaning |
|---|---|
| 0 | success; if the command waited for a job: the job completed |
| 1 | failed or refused: the job failed, its state does not allow the command, or the database cannot be used |
| 2 | usage: an unknown option, setting or field, or an invalid payload |
| 3 | the job can be resumed: Ctrl-C paused it, or SIGTERM put it back into the queue |
| 4 | the job was stopped or cancelled |
| 5 | not found |
| 130 | Ctrl-C interrupted a command other than `crawl` and `resume` |
| 141 | the program that read the output ended, for example `head` |
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
    """The exit code of a command that waited for a job."""
    return _OF_STATUS.get(status, PAUSED)

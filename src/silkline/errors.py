"""The exception tree. Expected outcomes (a 404, a timeout, robots) are values, never exceptions.

SilklineError
├── UsageError            the caller asked for something that cannot be: exit code 2, HTTP 422
│   └── SpecError         a job's payload is wrong
├── NotFound              no such job, page or URL: exit code 5, HTTP 404
├── Refused               the job's state does not allow this: exit code 1, HTTP 409
├── LeaseLost             this attempt no longer owns the job: stop writing, at once
├── JobFailure            how a job's code ends its own attempt
│   ├── Temporary         try again later: exit code 75
│   └── Permanent         bad input, never try again: exit code 65
│       └── SeedsFailed   nothing was stored, because the seeds could not be fetched
└── StoreError            the database did not do what was asked
    ├── Unavailable       it cannot be reached, or is busy for too long: try again
    ├── DiskFull          no space left where the data lives: pause, then try again
    └── SchemaTooNew      written by a newer Silkline: upgrade the program
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """What is wrong with one field of a payload. `field` is empty where the payload as a whole is wrong."""

    field: str
    message: str
    given: str = ""  # what stood there, where that may be shown


class SilklineError(Exception):
    """Something went wrong in Silkline."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (self.__doc__ or "").strip().splitlines()[0])


class UsageError(SilklineError):
    """The request cannot be understood."""


class SpecError(UsageError):
    """The job's payload is not valid."""

    def __init__(self, message: str = "", problems: tuple[FieldProblem, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems


class NotFound(SilklineError):
    """There is no such thing."""


class Refused(SilklineError):
    """The job's state does not allow this."""


class LeaseLost(SilklineError):
    """This attempt no longer owns the job."""


class JobFailure(SilklineError):
    """The job could not be done. `reason` is for machines, where there is a word for it."""

    reason = ""


class Temporary(JobFailure):
    """The job failed for a reason that may pass; it is tried again later."""


class Permanent(JobFailure):
    """The job failed for a reason that will not pass; it is not tried again."""


class SeedsFailed(Permanent):
    """Nothing was stored, because the seeds could not be fetched."""

    reason = "every seed failed"


class StoreError(SilklineError):
    """The database did not do what was asked."""


class Unavailable(StoreError):
    """The database cannot be reached."""


class DiskFull(StoreError):
    """There is no space left where the database lives."""


class SchemaTooNew(StoreError):
    """The database was written by a newer Silkline; upgrade the program."""

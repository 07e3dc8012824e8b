"""The exception tree. Expected outcomes (a 404, a timeout, robots) are values, never exceptions.

SilklineError
├── UsageError            the request is not valid: exit code 2, HTTP 422
│   └── SpecError         the payload of a job is not valid
├── NotFound              no such job, page or URL: exit code 5, HTTP 404
├── Refused               the job's state does not allow this: exit code 1, HTTP 409
│   └── UrlsLeft          a job cannot be completed while URLs of it are queued
├── LeaseLost             this attempt no longer owns the job: stop writing at once
├── NothingToDo           a shard gives its slot back: it waits for the other shards of its crawl
├── JobFailure            raised by the code of a kind to end its attempt
│   ├── Temporary         try again later: exit code 75
│   └── Permanent         the input is wrong, do not try again: exit code 65
│       ├── SeedsFailed   nothing was stored, because the seeds could not be fetched
│       └── FieldsMissing fewer pages than required have a field
└── StoreError            the database reported an error
    ├── Unavailable       it cannot be reached, or is busy for too long: try again
    │   └── DatabaseRemoved its file was removed or replaced
    ├── CommitsLost       it lost commits that it had confirmed: start again from the ledger
    ├── DiskFull          no space left on the disk of the data: pause, then try again
    └── SchemaTooNew      a newer Silkline wrote the database: upgrade the program
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """An error in one field of a payload. `field` is empty if the error is about the whole payload."""

    field: str
    message: str
    given: str = ""  # the value of the field, unless it is secret


class SilklineError(Exception):
    """Something went wrong in Silkline."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (self.__doc__ or "").strip().splitlines()[0])


class UsageError(SilklineError):
    """The request is not valid."""


class SpecError(UsageError):
    """The job's payload is not valid."""

    def __init__(self, message: str = "", problems: tuple[FieldProblem, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems


class NotFound(SilklineError):
    """Not found."""


class Refused(SilklineError):
    """The job's state does not allow this."""


class UrlsLeft(Refused):
    """URLs of the job are still queued."""


class NothingToDo(SilklineError):
    """The shard has nothing to do until links of other shards arrive."""


class LeaseLost(SilklineError):
    """This attempt no longer owns the job."""


class JobFailure(SilklineError):
    """The job failed. `reason` is a word for programs; it may be empty."""

    reason = ""


class Temporary(JobFailure):
    """The job failed for a temporary reason; it is tried again later."""


class Permanent(JobFailure):
    """The job failed for a permanent reason; it is not tried again."""


class SeedsFailed(Permanent):
    """Nothing was stored, because the seeds could not be fetched."""

    reason = "every seed failed"


class FieldsMissing(Permanent):
    """Fewer pages than required have a field."""

    reason = "fields missing"


class StoreError(SilklineError):
    """The database reported an error."""


class Unavailable(StoreError):
    """The database cannot be reached."""


class DatabaseRemoved(Unavailable):
    """The database file was removed or replaced."""


class CommitsLost(StoreError):
    """The database lost commits that it had confirmed."""


class DiskFull(StoreError):
    """There is no space left on the disk of the database."""


class SchemaTooNew(StoreError):
    """A newer Silkline wrote the database; upgrade this Silkline."""

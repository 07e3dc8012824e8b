"""One attempt of one job: loads the job by id and lease, runs the code of its kind, and reports how it ended."""

from __future__ import annotations

import logging
import os
import socket
import sys
import traceback
from pathlib import Path

from silkline.errors import (
    CommitsLost,
    DiskFull,
    LeaseLost,
    NothingToDo,
    Permanent,
    SilklineError,
    Temporary,
    Unavailable,
    UsageError,
)
from silkline.kinds import registry, specs
from silkline.metrics.instruments import tell_cpu
from silkline.metrics.process import attach
from silkline.model.job import End
from silkline.model.kind import Context
from silkline.model.sharding import IDLE
from silkline.private_files import is_disk_full
from silkline.runner import protocol
from silkline.runner.context import Channel, ChannelLog, JobProgress
from silkline.store import jobs
from silkline.store.opening import open_database

LONGEST_IDLE = 3600.0  # seconds until an idle shard starts by itself; normally it is started when there is work
DATABASE_WAIT = 5.0  # seconds until the next try after the disk was full or the database did not answer


def run_attempt(channel_socket: socket.socket, marks: str) -> int:
    """Run the attempt. Returns its exit code: 0 done, 75 temporary, 65 permanent; any other code is a crash."""
    start = protocol.receive(channel_socket, protocol.StartAttempt)
    if not isinstance(start, protocol.StartAttempt):
        return protocol.EXIT_LEASE_LOST
    os.environ.update(start.environment)
    attach(Path(start.settings.data), "runner")
    try:
        return _run(start, channel_socket, marks)
    finally:
        tell_cpu()


def _run(start: protocol.StartAttempt, channel_socket: socket.socket, marks: str) -> int:
    channel = Channel(channel_socket)
    log = _logger(channel)
    try:
        end = _work(start, channel, log, marks)
    except LeaseLost as error:
        log.warning("%s", error)
        return protocol.EXIT_LEASE_LOST
    except NothingToDo as error:
        return _end(channel, End.RELEASED, reason=IDLE, message=str(error), wait=LONGEST_IDLE)
    except CommitsLost as error:
        log.warning("%s; starting again from the ledger", error)
        return _end(channel, End.RELEASED, reason="commits_lost", message=str(error))
    except DiskFull as error:
        return _wait_for_space(channel, log, error)
    except Unavailable as error:
        # This is not a failure of the job, so no retry is counted.
        log.error("%s; waiting for the database", error)
        return _end(channel, End.RELEASED, reason="database_away", message=str(error), wait=DATABASE_WAIT)
    except (Permanent, UsageError) as error:
        return _fail(channel, log, End.PERMANENT, error, protocol.EXIT_PERMANENT)
    except Temporary as error:
        return _fail(channel, log, End.TEMPORARY, error, protocol.EXIT_TEMPORARY)
    except Exception as error:
        if is_disk_full(error):  # of the data directory
            return _wait_for_space(channel, log, error)
        traceback.print_exc(file=sys.stderr)
        channel.end(End.CRASHED, reason=f"crashed ({type(error).__name__})", message=_describe(error))
        return 1
    return _end(channel, end or End.COMPLETED)


def _work(start: protocol.StartAttempt, channel: Channel, log: logging.Logger, marks: str) -> End | None:
    database = open_database(start.database, upgrade=False)
    try:
        job = jobs.owned(database, start.job_id, start.run_lease, start.worker_id)
        kind = registry.kind_named(job.kind, test_kinds=start.test_kinds)
        run = registry.load(kind)
        spec = specs.check_payload(kind, job.payload)
        progress = JobProgress(database, job, channel)
        return run(Context(spec, channel, progress, log, start.settings, marks))
    finally:
        database.close()


def _end(channel: Channel, end: End, *, reason: str = "", message: str = "", wait: float = 0.0) -> int:
    """Report an end that is not a failure. If the report fails, the exit code must not mean that the job is done."""
    told = channel.end(end, reason=reason, message=message, wait=wait)
    return protocol.EXIT_DONE if told or end is End.COMPLETED else protocol.EXIT_UNTOLD


def _wait_for_space(channel: Channel, log: logging.Logger, error: Exception) -> int:
    log.error("%s; waiting for space", error)
    return _end(channel, End.RELEASED, reason="disk_full", message=str(error), wait=DATABASE_WAIT)


def _fail(channel: Channel, log: logging.Logger, end: End, error: SilklineError, code: int) -> int:
    log.error("%s", error)
    reason = getattr(error, "reason", "") or f"exit {code}: {str(error)[:200]}"
    channel.end(end, reason=reason, message=str(error))
    return code


def _describe(error: Exception) -> str:
    return "".join(traceback.format_exception_only(error)).strip()


def _logger(channel: Channel) -> logging.Logger:
    """The logger of the job. What libraries log becomes lines of the job too."""
    root = logging.getLogger()
    root.handlers[:] = [ChannelLog(channel)]
    root.setLevel(logging.WARNING)
    logger = logging.getLogger("silkline.job")
    logger.setLevel(logging.DEBUG)
    return logger

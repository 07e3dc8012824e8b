"""The checks of `silkline doctor`: first the machine, then the database. They change nothing."""

from __future__ import annotations

import difflib
import os
import re
import resource
import shutil
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from silkline.cli.terminal import duration, size
from silkline.config import IN_FILE, PREFIX, SETTINGS, Settings
from silkline.errors import StoreError, UsageError
from silkline.model.database import Database
from silkline.model.secret_url import masked
from silkline.store import jobs, migrate
from silkline.store.opening import open_database
from silkline.store.workers import alive as living

OK, WARN, FAIL = "ok", "warn", "fail"
WAL_RESET_BUG = ((3, 7, 0), (3, 51, 2))  # a checkpoint that races with a writer may lose committed data
CLOCK_WARN = timedelta(seconds=5)
CGROUP = Path("/sys/fs/cgroup")
_OTHER_VARIABLES = frozenset({"SILKLINE_API_TOKEN", "SILKLINE_API_TOKEN_FILE"})  # for commands that call the API
_LONGEST_NAME = 100
_ALIKE = 0.9


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check, and what to do about it."""

    name: str
    level: str
    says: str
    advice: str = ""


def every(settings: Settings) -> Iterator[Check]:
    """Run every check."""
    yield from variables(os.environ)
    yield directory(settings)
    yield disk(settings)
    yield open_files(settings)
    yield memory_control()
    yield sandbox()
    yield page_reader()
    yield chromium(settings)
    if settings.database.startswith("sqlite:"):
        from silkline.store.sqlite import version

        yield sqlite(version())
    yield from database(settings)


def variables(environ: Mapping[str, str]) -> Iterator[Check]:
    """A variable with a wrong letter sets nothing, and no command may refuse it: it can belong to another program."""
    known = {f"{PREFIX}{name.upper()}{end}" for name in SETTINGS for end in ("", IN_FILE)}
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known and name not in _OTHER_VARIABLES:
            close = difflib.get_close_matches(name[:_LONGEST_NAME], known, n=1, cutoff=_ALIKE)
            if close:
                yield Check("environment", WARN, f"{name} is not a setting", f"Did you mean {close[0]}?")


def directory(settings: Settings) -> Check:
    place = _nearest(settings.data)
    if not place.is_dir():
        return Check("data directory", FAIL, f"{place} is not a directory", "Name another one with --data.")
    if not os.access(place, os.W_OK | os.X_OK):
        return Check(
            "data directory", FAIL, f"{place} cannot be written", "Change its owner, or name another one with --data."
        )
    made = "" if settings.data.exists() else ", created when first needed"
    return Check("data directory", OK, f"{settings.data.absolute()}{made}")


def disk(settings: Settings) -> Check:
    free = shutil.disk_usage(_nearest(settings.data)).free
    says = f"{size(free)} free; jobs start only above {size(settings.disk_free_min)}"
    if free < settings.disk_free_min:
        return Check(
            "disk", FAIL, says, "Free some space, remove old jobs with `silkline jobs rm`, or use another --data."
        )
    if free < 2 * settings.disk_free_min:
        return Check("disk", WARN, says, "Free some space before a large crawl.")
    return Check("disk", OK, says)


def _nearest(path: Path) -> Path:
    """The path itself, or its nearest parent folder that exists."""
    path = path.absolute()
    return next((place for place in (path, *path.parents) if place.exists()), Path("/"))


def open_files(settings: Settings) -> Check:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = "without limit" if hard == resource.RLIM_INFINITY else f"{hard:,}"
    says = f"{allowed} allowed (now {soft:,}); a runner asks for {settings.open_files:,}"
    if hard != resource.RLIM_INFINITY and hard < settings.open_files:
        advice = (
            f"Raise it: `ulimit -Hn {settings.open_files}` as root, LimitNOFILE= in a systemd unit, --ulimit in Docker."
        )
        return Check("open files", WARN, says, advice)
    return Check("open files", OK, says)


def memory_control(root: Path = CGROUP, of_process: Path = Path("/proc/self/cgroup")) -> Check:
    """Memory limits are kept by the kernel if a cgroup v2 with a memory controller is writable, else by the worker."""
    polled = "Nothing to do: the worker measures the memory of jobs every memory_interval and limits it itself."
    mount = next((place for place in (root, root / "unified") if (place / "cgroup.controllers").exists()), None)
    if mount is None:
        return Check("cgroup", WARN, "no cgroup v2 on this machine", polled)
    try:
        ours = re.search(r"^0::/(.*)$", of_process.read_text(), re.MULTILINE)
        folder = mount / (ours[1] if ours else "")
        controllers = (folder / "cgroup.controllers").read_text().split()
    except OSError as error:
        return Check("cgroup", WARN, f"cgroup v2 cannot be read: {error.strerror}", polled)
    if "memory" not in controllers:
        return Check("cgroup", WARN, "cgroup v2 has no memory controller here", polled)
    if not os.access(folder, os.W_OK):
        return Check("cgroup", WARN, f"cgroup v2 at {folder} cannot be written", polled)
    return Check("cgroup", OK, f"cgroup v2 at {folder} with a memory controller")


def sandbox() -> Check:
    """The protection against a page that exploits a bug of its parser."""
    from silkline.confine import landlock, trial

    found = trial.in_force()
    reader = found["readers"]
    kept = [
        *(["no new privileges"] if reader.no_new_privileges else []),
        *(["no core dumps"] if reader.no_core_dumps else []),
        *([f"Landlock version {landlock.version()}"] if reader.files else []),
        *(["seccomp"] if reader.system_calls else []),
    ]
    missing = [
        *([] if reader.files else ["Landlock (Linux 5.13)"]),
        *([] if reader.system_calls else ["seccomp (x86_64 or aarch64)"]),
    ]
    says = f"the processes that parse pages run with {', '.join(kept) or 'no protection'}"
    if not trial.holds():
        advice = f"This system lacks {' and '.join(missing) or 'some of them'}. Run Silkline as a separate user."
        return Check("sandbox", WARN, f"{says}; they can still open files or sockets", advice)
    if not found["runners"].no_new_privileges:
        says += " (runners may gain privileges, for the browser's setuid helper)"
    return Check("sandbox", OK, f"{says}: no files, no sockets, no programs")


def page_reader() -> Check:
    """Whether the modules that read every element of a page are compiled."""
    # Not imported: what reads pages takes time to start.
    # A file for another version of Python has another suffix, and is not used.
    if (Path(__file__).parents[1] / "parse" / f"outline{sysconfig.get_config_var('EXT_SUFFIX')}").exists():
        return Check("page reader", OK, "compiled")
    advice = "Install a C compiler and the header files of Python (on Debian: gcc, python3-dev), then Silkline again."
    return Check("page reader", WARN, "not compiled: pages take more CPU time to read", advice)


def chromium(settings: Settings) -> Check:
    if settings.renderer_url:
        return Check("browser", OK, f"a running browser at {masked(settings.renderer_url)}")
    from silkline.fetch.render_program import find_browser, is_shell

    found = find_browser()
    if found:
        lighter = "" if is_shell(found) else " (chromium-headless-shell needs half the CPU for a page: install it)"
        return Check("browser", OK, found + lighter)
    advice = (
        "Pages that need scripts cannot be rendered. Install chromium-headless-shell, or run `playwright install "
        "chromium`."
    )
    return Check("browser", WARN, "Chromium was not found", advice)


def sqlite(version: str) -> Check:
    number = tuple(int(part) for part in version.split("."))
    if WAL_RESET_BUG[0] <= number <= WAL_RESET_BUG[1]:
        advice = "SQLite 3.7.0 to 3.51.2 has a rare bug that can damage a database in WAL mode. Install a newer apsw."
        return Check("SQLite", WARN, f"version {version}", advice)
    return Check("SQLite", OK, f"version {version}")


def database(settings: Settings) -> Iterator[Check]:
    """Check the database, and the workers and jobs that it lists."""
    url = masked(settings.database)
    scheme, _, place = settings.database.partition(":///")
    if scheme == "sqlite" and not Path(place).exists() and _nearest(Path(place).parent).is_dir():
        yield Check("database", OK, f"{url}, created when first needed")
        return
    try:
        opened = open_database(settings.database, upgrade=False)
        try:
            yield from _opened(opened, url, settings)
        finally:
            opened.close()
    except (StoreError, UsageError) as error:
        advice = "Is it running, and is the setting database_url right? `silkline config` shows it."
        yield Check("database", FAIL, str(error), advice)


def _opened(opened: Database, url: str, settings: Settings) -> Iterator[Check]:
    now, newest = migrate.revision(opened), migrate.newest(opened)
    if now > newest:
        advice = "A newer Silkline wrote this database: upgrade this Silkline."
        yield Check("database", FAIL, f"{url} has schema revision {now}, this Silkline knows {newest}", advice)
        return
    if now < newest:
        advice = "The next command upgrades it. To do it now: `silkline db upgrade`."
        yield Check("database", WARN, f"{url} has schema revision {now} of {newest}", advice)
        return
    yield Check("database", OK, f"{url}, schema revision {now}")
    if opened.dialect == "postgres":
        yield clock(opened.now() - datetime.now(UTC))
    yield from supervisors(opened, timedelta(seconds=settings.stale_after))


def clock(difference: timedelta) -> Check:
    """Silkline uses the clock of PostgreSQL; with a large difference the times in logs do not match those of jobs."""
    says = (
        f"{abs(difference.total_seconds()):.1f} s {'behind' if difference > timedelta() else 'ahead of'} PostgreSQL's"
    )
    if abs(difference) > CLOCK_WARN:
        return Check(
            "clock", WARN, says, "Jobs are not affected. Set up NTP on both machines, so that the times in logs agree."
        )
    return Check("clock", OK, says)


def supervisors(opened: Database, stale: timedelta) -> Iterator[Check]:
    now = opened.now()
    alive = living(opened, stale.total_seconds())
    if alive:
        held, slots = sum(worker.jobs_held for worker in alive), sum(worker.slots for worker in alive)
        yield Check("workers", OK, f"{len(alive)} alive, {held} of {slots} slots in use")
    else:
        yield Check(
            "workers",
            WARN,
            "no worker is alive, so no job starts in the background",
            "Start one: `silkline worker` or `silkline serve`.",
        )
    silent = [job for job in jobs.running(opened) if job.last_heartbeat is None or now - job.last_heartbeat > stale]
    if not silent:
        yield Check("running jobs", OK, "each one sends heartbeats")
        return
    since = min(job.last_heartbeat or job.updated_at for job in silent)
    says = f"{len(silent)} without a heartbeat for up to {duration(now - since)}, for example {silent[0].id}"
    advice = "A live worker requeues them" + ("." if alive else ": start one with `silkline worker`.")
    yield Check("running jobs", WARN, says, advice)

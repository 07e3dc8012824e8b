"""One function for each role takes rights away from a process before it reads anything from the web.

Call it after all imports and opens, before the first thread, and before the first byte from the web. It never raises an
error: the returned `Confinement` tells what is in force.

PR_SET_DUMPABLE is not used: with it, the supervisor of an ordinary user could not read the marks of its own processes.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import resource
import stat
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from silkline.confine import landlock, seccomp
from silkline.confine.syscalls import architecture

_PR_SET_NO_NEW_PRIVS: Final = 38
_CAPGET, _CAPSET = (125, 90), (126, 91)
_CAPABILITY_VERSION: Final = 0x20080522
_DAC_OVERRIDE: Final = 1 << 1  # the right of root to write into folders of other users: archives may be there
# The rights of root over the kernel and other processes (linux/capability.h): modules, raw I/O, ptrace, administration,
# boot, time, MAC, syslog, performance, BPF, checkpoints. No crawl, browser or plug-in needs them.
_OF_THE_MACHINE: Final = sum(1 << number for number in (16, 17, 19, 21, 22, 25, 32, 33, 34, 38, 39, 40))
_ALL: Final = (1 << 64) - 1
_FILE_BYTES: Final = 1 << 20
"""More than a meter has (metrics/meter.py)."""
_OUTPUT_BYTES: Final = 64 << 20
"""What standard output may grow by if it is a file."""

# The folders of the resolver, the CA bundle, time zones and shared libraries. Home folders are not included.
_OF_THE_SYSTEM: Final = (
    *("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/nix", "/gnu", "/etc", "/run", "/var/lib/sss"),
    *("/proc", "/sys", "/dev"),
)
_ALWAYS_WRITABLE: Final = ("/dev/null",)
_CA_VARIABLES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE")


@dataclass(frozen=True, slots=True)
class Confinement:
    """What is in force in this process."""

    no_core_dumps: bool = False
    no_new_privileges: bool = False
    no_capabilities: bool = False
    files: bool = False
    """Only named files can be opened. For a runner: other processes cannot be inspected."""
    system_calls: bool = False


def refuse_rings() -> None:
    """For a process that becomes a reader: call this before it creates its event loop, and `confine_reader` later.

    A filter of system calls does not see what goes through an io_uring, and libuv creates one if it can.
    """
    machine = architecture()
    if machine is not None and _no_new_privileges():
        seccomp.install(seccomp.ring_filter(machine))


def confine_reader() -> Confinement:
    """For a process that reads pages: it keeps only its open sockets and its memory.

    It cannot open a file, import a module, create a socket, start a program or a process, or affect another process.
    """
    no_core_dumps = _no_core_dumps()
    _limit_file_size()
    no_capabilities = _keep_capabilities(0)
    if not _no_new_privileges():
        return Confinement(no_core_dumps, no_capabilities=no_capabilities)
    files = landlock.restrict(network=False)
    machine = architecture()
    calls = machine is not None and seccomp.install(seccomp.reader_filter(machine))
    return Confinement(no_core_dumps, True, no_capabilities, files, calls)


def confine_fetcher(writable: Iterable[Path] = ()) -> Confinement:
    """For a process that connects to the web and starts no program: it can write only to `writable`.

    It can read the files that the resolver, TLS and late imports need, but no home folder and no database. Without a
    folder to write to, the size of what it writes is limited too. An archive has no limit of its own.
    """
    writable = tuple(writable)
    no_core_dumps = _no_core_dumps()
    if not writable:
        _limit_file_size()
    no_capabilities = _keep_capabilities(_DAC_OVERRIDE)
    if not _no_new_privileges():
        return Confinement(no_core_dumps, no_capabilities=no_capabilities)
    files = landlock.restrict(_readable(), (*map(Path, _ALWAYS_WRITABLE), *writable))
    machine = architecture()
    calls = machine is not None and seccomp.install(seccomp.fetcher_filter(machine), cheap=True)
    return Confinement(no_core_dumps, True, no_capabilities, files, calls)


def confine_runner() -> Confinement:
    """For a process that uses the database and may start browsers and plug-ins: it loses what none of them needs."""
    confinement = confine_fork_server()
    if not confinement.no_new_privileges:
        return confinement
    _keep_capabilities(_ALL & ~_OF_THE_MACHINE)
    return replace(confinement, files=landlock.fence())


@functools.cache
def confine_fork_server() -> Confinement:
    """What a runner loses and its fork server does not need. A forked runner inherits it, and this result.

    Each runner applies the rest itself: its own fence, so that no job can inspect another one, and the loss of the
    rights of root that the fork server needs to find what dead runners left. If Chromium cannot create its own
    namespace, it needs its setuid helper, and then new privileges stay allowed.
    """
    no_core_dumps = _no_core_dumps()
    if (os.geteuid() != 0 and not user_namespaces()) or not _no_new_privileges():
        return Confinement(no_core_dumps)
    machine = architecture()
    calls = machine is not None and seccomp.install(seccomp.runner_filter(machine), cheap=True)
    return Confinement(no_core_dumps, True, system_calls=calls)


def user_namespaces(root: Path = Path("/proc/sys")) -> bool:
    """Whether an ordinary user may create a namespace here. The sandbox of Chromium needs one."""
    for name, closed in (
        ("kernel/unprivileged_userns_clone", "0"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1"),
        ("user/max_user_namespaces", "0"),
    ):
        with contextlib.suppress(OSError):
            if (root / name).read_text().strip() == closed:
                return False
    return True


def _no_core_dumps() -> bool:
    """A core dump would contain pages, cookies and headers. A dump to a pipe ignores the limit: give it no memory."""
    with contextlib.suppress(OSError):
        Path("/proc/self/coredump_filter").write_text("0")
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (OSError, ValueError):
        return False
    return True


def _limit_file_size() -> None:
    """Such a process has its meter open, and perhaps standard output: it must not fill the disk through them.

    A write beyond the limit fails with EFBIG, because Python ignores the signal that comes with it. Where standard
    output or error is a file, as for a command in the foreground, it may grow.
    """
    most = _FILE_BYTES
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode):
                most = max(most, status.st_size + _OUTPUT_BYTES)
    with contextlib.suppress(OSError, ValueError):  # a lower limit is in force
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def _no_new_privileges() -> bool:
    return bool(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)


def _keep_capabilities(kept: int) -> bool:
    """Give up the rights of root except these. Programs that this process starts cannot get them back."""
    machine = architecture()
    if machine is None:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    held = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable ones: first of 0 to 31, then of 32 to 63
    if libc.syscall(ctypes.c_long(_CAPGET[machine.column]), header, held) != 0:
        return False
    masks = (kept & 0xFFFFFFFF, kept >> 32)
    fewer = [value & masks[place // 3] for place, value in enumerate(held)]
    return bool(libc.syscall(ctypes.c_long(_CAPSET[machine.column]), header, (ctypes.c_uint32 * 6)(*fewer)) == 0)


def _readable() -> list[Path]:
    own = (sys.prefix, sys.base_prefix, sys.exec_prefix, *(path for path in sys.path if path))
    named = (os.environ.get(name, "") for name in _CA_VARIABLES)
    return [Path(path) for path in (*_OF_THE_SYSTEM, *own, *named) if path]

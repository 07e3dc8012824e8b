"""Landlock limits the file access of this process and its children. Uses three system calls and no library.

The code asks for a right only if the kernel knows it. Landlock also stops a process from inspecting a process that is
less restricted (ptrace, /proc/PID/mem, /proc/PID/environ).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446  # the same numbers on every architecture
_ASK_VERSION: Final = 1
_PATH_BENEATH: Final = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER = 1, 2, 4, 8
_OF_FIRST_VERSION: Final = (1 << 13) - 1
_REFER, _TRUNCATE, _DEVICE_IOCTL = 1 << 13, 1 << 14, 1 << 15  # versions 2, 3 and 5
_BIND_TCP, _CONNECT_TCP = 1, 2  # version 4
_ABSTRACT_SOCKETS, _SIGNALS = 1, 2  # version 6

READ: Final = _EXECUTE | _READ_FILE | _READ_FOLDER
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _DEVICE_IOCTL


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """The Landlock version of this kernel; 0 if it has none."""
    found = _call(_CREATE, None, 0, _ASK_VERSION)
    return max(0, found)


def restrict(readable: Iterable[Path] = (), writable: Iterable[Path] = (), *, network: bool = True) -> bool:
    """Allow access only to these folders and files. Returns whether that is in force. Needs no_new_privs.

    With `network=False` the process also has no TCP, no abstract sockets and no signals to other processes, if the
    kernel supports that.
    """
    known = version()
    if not known:
        return False
    all_rights = _rights(known)
    closed = _Ruleset(
        all_rights,
        (_BIND_TCP | _CONNECT_TCP) if known >= 4 and not network else 0,
        (_ABSTRACT_SOCKETS | _SIGNALS) if known >= 6 and not network else 0,
    )
    ruleset = _call(_CREATE, ctypes.byref(closed), _size(known), 0)
    if ruleset < 0:
        return False
    try:
        for paths, rights in ((readable, READ), (writable, all_rights & ~_EXECUTE)):
            for path in paths:
                _allow(ruleset, path, rights & all_rights)
        return _call(_RESTRICT, ruleset, 0) == 0
    finally:
        os.close(ruleset)


def fence() -> bool:
    """Stop this process from inspecting or signalling outside processes. File access does not change.

    Returns whether that is in force. Needs no_new_privs. Not for version 1, which forbids moving files between folders.
    """
    known = version()
    if known < 2:
        return False
    closed = _Ruleset(_REFER, 0, _SIGNALS if known >= 6 else 0)
    ruleset = _call(_CREATE, ctypes.byref(closed), _size(known), 0)
    if ruleset < 0:
        return False
    try:
        _allow(ruleset, Path("/"), _REFER)
        return _call(_RESTRICT, ruleset, 0) == 0
    finally:
        os.close(ruleset)


def _size(known: int) -> int:
    """The size of the structure in this version."""
    return 8 if known < 4 else 16 if known < 6 else 24


def _rights(known: int) -> int:
    return (
        _OF_FIRST_VERSION
        | (_REFER if known >= 2 else 0)
        | (_TRUNCATE if known >= 3 else 0)
        | (_DEVICE_IOCTL if known >= 5 else 0)
    )


def _allow(ruleset: int, path: Path, rights: int) -> None:
    """Add a rule for a path. A path that does not exist needs none."""
    with contextlib.suppress(OSError):
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            beneath = _Beneath(rights if path.is_dir() else rights & _OF_FILES, place)
            _call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(beneath), 0)
        finally:
            os.close(place)


def _call(number: int, *arguments: object) -> int:
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result: int = ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *values)
    return result

"""Filters for system calls (seccomp-bpf): a few dozen instructions, without a library.

A refused call fails with EPERM, so Python raises PermissionError and the caller can report it. For calls whose
arguments do not matter, the kernel caches the answer (since 5.11), so the filter costs nothing.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
from collections.abc import Iterable
from typing import Final

from silkline.confine import syscalls

_ALLOW: Final = 0x7FFF0000
_KILL_PROCESS: Final = 0x80000000
_ERRNO: Final = 0x00050000
_REFUSE: Final = _ERRNO | errno.EPERM
_MISSING: Final = _ERRNO | errno.ENOSYS

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_RETURN: Final = 0x06
_IF_EQUAL: Final = 0x15
_IF_AT_LEAST: Final = 0x35
_IF_ANY_BIT: Final = 0x45

_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16  # in struct seccomp_data

_SECCOMP: Final = {"x86_64": 317, "aarch64": 277}
_SET_MODE_FILTER: Final = 1
_ALL_THREADS, _NO_MITIGATION = 1, 4

_PROT_EXEC: Final = 4
_CLONE_THREAD: Final = 0x10000
_AT_EMPTY_PATH: Final = 0x1000
_IOCTLS: Final = (0x5421, 0x541B, 0x5450, 0x5451)  # FIONBIO, FIONREAD, FIONCLEX, FIOCLEX
_FCNTLS: Final = (0, 1, 2, 3, 4, 1030, 1034)  # DUPFD, GETFD, SETFD, GETFL, SETFL, DUPFD_CLOEXEC, GET_SEALS

Instruction = tuple[int, int, int, int]


class _Filter(ctypes.Structure):
    _fields_ = (("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.POINTER(_Filter)))


def reader_filter(machine: syscalls.Architecture) -> list[Instruction]:
    """Allow only what computing and open sockets need: no new socket, no file, no program, no other process."""
    program = _head(machine, foreign=_KILL_PROCESS)
    program += _each(syscalls.numbers(syscalls.READER, machine), _ALLOW)
    own = os.getpid()
    rules = {
        "mmap": _unless_any_bit(2, _PROT_EXEC),
        "mprotect": _unless_any_bit(2, _PROT_EXEC),
        "clone": _if_any_bit(0, _CLONE_THREAD),
        "clone3": _answer(_MISSING),  # a filter cannot read its flags, which are in memory; glibc then uses clone
        "ioctl": _one_of(1, _IOCTLS),
        "fcntl": _one_of(1, _FCNTLS),
        "kill": _one_of(0, (own,)),
        "tgkill": _one_of(0, (own,)),
        "newfstatat": _if_any_bit(3, _AT_EMPTY_PATH),  # glibc uses this form for an open file
        "prlimit64": _one_of(0, (0, own)),
    }
    return [*program, *_checked(rules, machine), *_answer(_REFUSE)]


def fetcher_filter(machine: syscalls.Architecture) -> list[Instruction]:
    """Allow everything except starting programs and the calls that no crawl needs."""
    program = _head(machine, foreign=_KILL_PROCESS)
    refused = {**syscalls.DANGEROUS, **syscalls.KEYRING, **syscalls.START_PROGRAM}
    program += _each(syscalls.numbers(refused, machine), _REFUSE)
    rules = {"clone": _if_any_bit(0, _CLONE_THREAD), "clone3": _answer(_MISSING)}
    return [*program, *_checked(rules, machine), *_answer(_ALLOW)]


def runner_filter(machine: syscalls.Architecture) -> list[Instruction]:
    """Allow everything except the calls that no crawl needs. Browsers and programs of plug-ins can be started."""
    program = _head(machine, foreign=_REFUSE)
    return [*program, *_each(syscalls.numbers(syscalls.DANGEROUS, machine), _REFUSE), *_answer(_ALLOW)]


def ring_filter(machine: syscalls.Architecture) -> list[Instruction]:
    """Allow everything except io_uring."""
    program = _head(machine, foreign=_KILL_PROCESS)
    return [*program, *_each(syscalls.numbers(syscalls.RINGS, machine), _MISSING), *_answer(_ALLOW)]


def install(program: list[Instruction], *, cheap: bool = False) -> bool:
    """Install a filter for every thread of this process. Returns whether the kernel accepted it. Needs no_new_privs.

    `cheap`: do not enable the slow Spectre mitigation that kernels before 5.16 enable with a filter.
    """
    array = (_Filter * len(program))(*(_Filter(*step) for step in program))
    whole = _Program(len(program), array)
    flags = _ALL_THREADS | (_NO_MITIGATION if cheap else 0)
    libc = ctypes.CDLL(None, use_errno=True)
    call = ctypes.c_long(_SECCOMP[platform.machine()])
    result = libc.syscall(call, ctypes.c_long(_SET_MODE_FILTER), ctypes.c_long(flags), ctypes.byref(whole))
    return bool(result == 0)


def _head(machine: syscalls.Architecture, *, foreign: int) -> list[Instruction]:
    """The start of each filter. Calls of another architecture have other numbers and get the answer `foreign`."""
    program = [(_LOAD, 0, 0, _ARCH_AT), (_IF_EQUAL, 1, 0, machine.audit), (_RETURN, 0, 0, foreign)]
    program.append((_LOAD, 0, 0, _NUMBER_AT))
    if machine.compat_bit:
        program += [(_IF_AT_LEAST, 0, 1, machine.compat_bit), (_RETURN, 0, 0, _MISSING)]
    return program


def _each(numbers: Iterable[int], answer: int) -> list[Instruction]:
    return [step for number in numbers for step in ((_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, answer))]


def _checked(rules: dict[str, list[Instruction]], machine: syscalls.Architecture) -> list[Instruction]:
    program: list[Instruction] = []
    for name, steps in rules.items():
        number = syscalls.CHECKED[name][machine.column]
        if number is not None:
            program += [(_IF_EQUAL, 0, len(steps), number), *steps]
    return program


def _answer(answer: int) -> list[Instruction]:
    return [(_RETURN, 0, 0, answer)]


def _argument(place: int) -> Instruction:
    """Load the lower half of an argument, which comes first on both architectures."""
    return (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * place)


def _unless_any_bit(place: int, bits: int) -> list[Instruction]:
    return [_argument(place), (_IF_ANY_BIT, 0, 1, bits), (_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)]


def _if_any_bit(place: int, bits: int) -> list[Instruction]:
    return [_argument(place), (_IF_ANY_BIT, 0, 1, bits), (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)]


def _one_of(place: int, values: Iterable[int]) -> list[Instruction]:
    return [_argument(place), *_each(values, _ALLOW), (_RETURN, 0, 0, _REFUSE)]

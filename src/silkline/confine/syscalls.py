"""The numbers of system calls on two architectures, and which calls each role needs. Only values.

Each entry has the number on x86_64 and the number on aarch64. None means that the call does not exist there.
"""

from __future__ import annotations

import platform
from typing import Final, NamedTuple

Numbers = dict[str, tuple[int | None, int | None]]


class Architecture(NamedTuple):
    """One architecture: its index in an entry, and its number in a filter (AUDIT_ARCH_… of linux/audit.h)."""

    column: int
    audit: int
    compat_bit: int
    """Calls from this number on belong to a second table of the same architecture (x32). 0: there is none."""


_KNOWN: Final = {
    "x86_64": Architecture(0, 0xC000003E, 0x40000000),
    "aarch64": Architecture(1, 0xC00000B7, 0),
}

# The calls of a process that reads bytes from its sockets, computes, and answers. Frequent calls come first.
READER: Final[Numbers] = {
    "read": (0, 63),
    "write": (1, 64),
    "epoll_wait": (232, None),
    "epoll_pwait": (281, 22),
    "recvmsg": (47, 212),
    "sendmsg": (46, 211),
    "recvfrom": (45, 207),
    "sendto": (44, 206),
    "readv": (19, 65),
    "writev": (20, 66),
    "futex": (202, 98),
    "brk": (12, 214),
    "munmap": (11, 215),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "close": (3, 57),
    "shutdown": (48, 210),
    "epoll_ctl": (233, 21),
    "epoll_pwait2": (441, 441),
    "epoll_create1": (291, 20),
    "poll": (7, None),
    "ppoll": (271, 73),
    "select": (23, None),
    "pselect6": (270, 72),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "rt_sigtimedwait": (128, 137),
    "sigaltstack": (131, 132),
    "restart_syscall": (219, 128),
    "getsockopt": (55, 209),
    "setsockopt": (54, 208),
    "getsockname": (51, 204),
    "getpeername": (52, 205),
    "fstat": (5, 80),
    "lseek": (8, 62),
    "pread64": (17, 67),
    "pwrite64": (18, 68),
    "fsync": (74, 82),
    "fdatasync": (75, 83),
    "msync": (26, 227),
    "dup": (32, 23),
    "dup3": (292, 24),
    "pipe2": (293, 59),
    "eventfd2": (290, 19),
    "timerfd_create": (283, 85),
    "timerfd_settime": (286, 86),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101),
    "gettimeofday": (96, 169),
    "time": (201, None),
    "getrandom": (318, 278),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "getppid": (110, 173),
    "getuid": (102, 174),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getegid": (108, 177),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "getrusage": (98, 165),
    "times": (100, 153),
    "getitimer": (36, 102),
    "setitimer": (38, 103),
    "timer_create": (222, 107),
    "timer_settime": (223, 110),
    "timer_gettime": (224, 108),
    "timer_getoverrun": (225, 109),
    "timer_delete": (226, 111),
    "set_robust_list": (273, 99),
    "set_tid_address": (218, 96),
    "rseq": (334, 293),
    "membarrier": (324, 283),
    "getrlimit": (97, 163),
    "sysinfo": (99, 179),
    "uname": (63, 160),
    "getcpu": (309, 168),
    "exit": (60, 93),
    "exit_group": (231, 94),
}

# Calls that are allowed or refused depending on their arguments.
CHECKED: Final[Numbers] = {
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "clone": (56, 220),
    "clone3": (435, 435),
    "ioctl": (16, 29),
    "fcntl": (72, 25),
    "kill": (62, 129),
    "tgkill": (234, 131),
    "newfstatat": (262, 79),
    "prlimit64": (302, 261),
}

START_PROGRAM: Final[Numbers] = {
    "execve": (59, 221),
    "execveat": (322, 281),
    "fork": (57, None),
    "vfork": (58, None),
}

# Calls that no process of a crawl needs. Attacks on the kernel or on another process often start with them.
DANGEROUS: Final[Numbers] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "mount": (165, 40),
    "umount2": (166, 39),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "pivot_root": (155, 41),
    "open_by_handle_at": (304, 265),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "fanotify_init": (300, 262),
    "vhangup": (153, 58),
}

RINGS: Final[Numbers] = {"io_uring_setup": DANGEROUS["io_uring_setup"]}

# A keyring may contain the ticket for the database, so a runner may use these calls.
KEYRING: Final[Numbers] = {"keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218)}


def architecture() -> Architecture | None:
    """The architecture of this machine, or None if its numbers are not known here."""
    return _KNOWN.get(platform.machine())


def numbers(table: Numbers, machine: Architecture) -> list[int]:
    """The calls of a table that exist on this machine."""
    return [number for entry in table.values() if (number := entry[machine.column]) is not None]

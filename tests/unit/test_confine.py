"""The filters of system calls on both architectures, and what a runner keeps."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from silkline.confine import landlock, roles, seccomp, syscalls

X86, ARM = syscalls._KNOWN["x86_64"], syscalls._KNOWN["aarch64"]
ALLOW, REFUSE, KILL = seccomp._ALLOW, seccomp._REFUSE, seccomp._KILL_PROCESS
FORBIDDEN = {
    **{"openat": (257, 56), "open": (2, None), "openat2": (437, 437), "socket": (41, 198), "connect": (42, 203)},
    **{"bind": (49, 200), "listen": (50, 201), "accept4": (288, 242), "socketpair": (53, 199), "unlinkat": (263, 35)},
    **{"prctl": (157, 167), "seccomp": (317, 277), "setns": (308, 268), "unshare": (272, 97), "chroot": (161, 51)},
    **{"memfd_create": (319, 279), "pidfd_send_signal": (424, 424), "setsid": (112, 157), "capset": (126, 91)},
    **{"truncate": (76, 45), "ftruncate": (77, 46), "fallocate": (285, 47), "copy_file_range": (326, 285)},
    **syscalls.START_PROGRAM,
    **syscalls.DANGEROUS,
    **syscalls.KEYRING,
}


def judge(program: list[seccomp.Instruction], audit: int, number: int, *arguments: int) -> int:
    """What a filter answers: the few instructions of BPF that we use, step by step."""
    data = {0: number, 4: audit, **{16 + 8 * place: value & 0xFFFFFFFF for place, value in enumerate(arguments)}}
    place, loaded = 0, 0
    while True:
        code, if_true, if_false, value = program[place]
        place += 1
        if code == seccomp._RETURN:
            return value
        if code == seccomp._LOAD:
            loaded = data.get(value, 0)
            continue
        held = {
            seccomp._IF_EQUAL: loaded == value,
            seccomp._IF_AT_LEAST: loaded >= value,
            seccomp._IF_ANY_BIT: bool(loaded & value),
        }[code]
        place += if_true if held else if_false


@pytest.mark.parametrize("machine", [X86, ARM], ids=["x86_64", "aarch64"])
def test_a_reader_has_no_call_that_opens_or_starts_anything(machine: syscalls.Architecture) -> None:
    program = seccomp.reader_filter(machine)
    assert len(program) < 4096
    for name, entry in FORBIDDEN.items():
        number = entry[machine.column]
        if number is not None:
            assert judge(program, machine.audit, number) != ALLOW, name
    for name, entry in syscalls.READER.items():
        number = entry[machine.column]
        if number is not None:
            assert judge(program, machine.audit, number) == ALLOW, name


@pytest.mark.parametrize("machine", [X86, ARM], ids=["x86_64", "aarch64"])
def test_arguments_decide_where_they_must(machine: syscalls.Architecture) -> None:
    program = seccomp.reader_filter(machine)

    def answer(name: str, *arguments: int) -> int:
        number = syscalls.CHECKED[name][machine.column]
        assert number is not None
        return judge(program, machine.audit, number, *arguments)

    assert answer("mmap", 0, 4096, 3) == ALLOW
    assert answer("mmap", 0, 4096, 5) == answer("mprotect", 0, 4096, 4) == REFUSE
    assert answer("clone", 0x3D0F00) == ALLOW  # the flags of a new thread
    assert answer("clone", 17) == REFUSE  # those of a fork
    assert answer("clone3") == seccomp._ERRNO | errno.ENOSYS
    assert answer("kill", os.getpid()) == answer("tgkill", os.getpid()) == ALLOW
    assert answer("kill", os.getppid()) == answer("kill", -1) == answer("tgkill", 1) == REFUSE
    assert answer("ioctl", 3, 0x5421) == ALLOW
    assert answer("ioctl", 0, 0x5412) == REFUSE  # TIOCSTI types into a terminal
    assert answer("prlimit64", os.getppid()) == REFUSE


@pytest.mark.parametrize("build", [seccomp.reader_filter, seccomp.fetcher_filter])
def test_calls_of_another_architecture_end_the_process(
    build: Callable[[syscalls.Architecture], list[seccomp.Instruction]],
) -> None:
    assert judge(build(X86), ARM.audit, 0) == KILL
    assert judge(build(X86), X86.audit, X86.compat_bit + 1) != ALLOW


RUNNER = """
import os, subprocess, sys
from pathlib import Path
from silkline.confine.roles import confine_runner
print(confine_runner())
def attempt(work):
    try:
        work()
        print("done")
    except OSError as error:
        print(type(error).__name__)
parent, folder = os.getppid(), Path(sys.argv[1])
attempt(lambda: Path(f"/proc/{parent}/environ").read_bytes())
attempt(lambda: open(f"/proc/{parent}/mem", "rb"))
attempt(lambda: os.kill(parent, 0))
attempt(lambda: (folder / "a" / "x").rename(folder / "b" / "x"))
attempt(lambda: subprocess.run(["true"], check=True))
"""


def test_a_runner_works_as_before_but_cannot_look_into_its_supervisor(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "a" / "x").touch()
    done = subprocess.run([sys.executable, "-c", RUNNER, str(tmp_path)], capture_output=True, text=True, check=True)
    said = done.stdout.splitlines()
    assert "no_new_privileges=True" in said[0]
    assert "system_calls=True" in said[0]
    signal = "PermissionError" if landlock.version() >= 6 else "done"
    assert said[1:] == ["PermissionError", "PermissionError", signal, "done", "done"]
    assert (tmp_path / "b" / "x").exists()


def test_a_reader_opens_nothing_where_only_one_wall_exists() -> None:
    """Without Landlock the filter holds alone."""
    code = (
        "from silkline.confine import landlock, roles; landlock.version = lambda: 0\n"
        "assert not roles.confine_reader().files\n"
        "try: open('/etc/passwd')\n"
        "except PermissionError: print('refused')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "refused\n"


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("kernel/unprivileged_userns_clone", "0", False),
        ("kernel/unprivileged_userns_clone", "1", True),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", False),
        ("user/max_user_namespaces", "0", False),
    ],
)
def test_whether_a_browser_can_have_a_namespace(tmp_path: Path, name: str, value: str, allowed: bool) -> None:
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text(f"{value}\n")
    assert roles.user_namespaces(tmp_path) is allowed

"""A container without Docker: namespaces from `unshare`, a read-only root, another user, and one process as PID 1.

`in_this_root` shows this machine's own files as the read-only root, in a user namespace. It needs neither root nor an
image: the short form, for the test suite. `in_image_root` uses a root that tests/deploy/image_build.py made, as root.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.supervisors import LIBC, PATIENCE, eventually

DATA = "/srv"  # exists on every Linux; the folder of the test is mounted there
OTHERS = ("--mount", "--pid", "--net", "--ipc", "--uts")
NAMESPACES = ("--user", "--map-root-user", *OTHERS, "--fork", "--kill-child")
NONE = "a container cannot be made here: ordinary users may not use `unshare --user --map-root-user`"
# As `ip link set lo up`, which a small machine may lack: SIOCSIFFLAGS with IFF_UP.
LOOPBACK_UP = """
import fcntl, socket, struct
with socket.socket() as any_socket:
    fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 1))
"""
# Every file system becomes read-only, except that of the data. Then the process becomes the user of the image.
THIS_ROOT = f"""
set -eu
mount --make-rprivate /
mount --bind "$1" {DATA}
mount -t proc proc /proc
awk '{{ print $2 }}' /proc/self/mounts | sort --reverse | while read -r place; do
    case "$place" in
    {DATA} | {DATA}/* | /proc | /proc/*) ;;
    *) mount -o remount,bind,ro "$place" 2>/dev/null || test ! -w "$place" || echo "$place" >> {DATA}/not-read-only ;;
    esac
done
"$4" -c "$5"
user=$2 group=$3
shift 5
exec unshare --user --map-user="$user" --map-group="$group" -- env --ignore-environment --chdir={DATA} "$@"
"""
# As Docker does it with --read-only, --cap-drop ALL, --security-opt no-new-privileges and --tmpfs /tmp.
IMAGE_ROOT = """
set -eu
mount --make-rprivate /
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount -t tmpfs -o size=256m,mode=1777 tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/shm
mount -t tmpfs -o size=64m,mode=1777 tmpfs dev/shm
for node in null zero full random urandom; do
    touch "dev/$node"
    mount --bind "/dev/$node" "dev/$node"
done
ln -s /proc/self/fd dev/fd
mount --bind "$2" data
mount -o remount,bind,ro "$1"
ip link set lo up
root=$1 user=$3
shift 3
exec setpriv --no-new-privs --bounding-set=-all,+sys_chroot,+setuid,+setgid \\
    chroot --userspec="$user" --groups= "$root" env --ignore-environment "$@"
"""


def can_unshare() -> bool:
    try:
        return subprocess.run(["unshare", *NAMESPACES, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


class Container:
    """One command as PID 1. It ends with the tests."""

    def __init__(self, start: Sequence[str], enter: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self._log = log
        self._enter = enter
        self._environment = [f"{name}={value}" for name, value in environment.items()]
        with log.open("wb") as file:
            self._outside = subprocess.Popen(
                ["unshare", *start],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
                preexec_fn=lambda: LIBC.prctl(1, signal.SIGKILL),
            )

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def first(self) -> int:
        """The number that PID 1 has outside."""
        children = Path(f"/proc/{self._outside.pid}/task/{self._outside.pid}/children")

        def look() -> int | None:
            assert self._outside.poll() is None, self.log
            return next(iter(map(int, children.read_text().split())), None)

        found: int = eventually("the container has its first process", look)
        return found

    def command(self, *command: str) -> list[str]:
        """A command that runs another one inside, with the environment of the image."""
        enter = ["nsenter", f"--target={self.first}", *OTHERS, *self._enter, "--"]
        if "--user" in self._enter:
            # The other namespaces belong to the outer user namespace: an ordinary user must enter that one first.
            enter = ["nsenter", f"--target={self._outside.pid}", "--user", "--preserve-credentials", "--", *enter]
        return [*enter, "env", "--ignore-environment", *self._environment, *command]

    def execute(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command inside, as `docker exec` does."""
        return subprocess.run(self.command(*command), capture_output=True, text=True, timeout=PATIENCE, check=False)

    def unreaped(self) -> str:
        """The processes inside that have ended and that nobody has waited for."""
        return self.execute("sh", "-c", "grep -l '^State:.*zombie' /proc/[0-9]*/status 2>/dev/null").stdout

    def stop(self, number: int) -> int:
        """Send PID 1 a signal, as `docker stop` does; its exit code."""
        os.kill(self.first, number)
        return self._outside.wait(PATIENCE)

    def close(self) -> None:
        if self._outside.poll() is None:
            os.kill(self.first, signal.SIGKILL)  # the kernel ends everything inside with PID 1
            self._outside.wait()


def in_this_root(command: Sequence[str], data: Path, *, user: str, environment: Mapping[str, str]) -> Container:
    """A container that sees this machine's files, read-only, and its data at `DATA`."""
    variables = [f"{name}={value}" for name, value in environment.items()]
    loopback = (sys.executable, LOOPBACK_UP)
    script = ["sh", "-c", THIS_ROOT, "container", str(data), *user.split(":"), *loopback, *variables, *command]
    enter = ("--user", "--preserve-credentials", f"--wd={DATA}")
    return Container([*NAMESPACES, *script], enter, environment, data / "log")


def in_image_root(
    command: Sequence[str], data: Path, root: Path, *, user: str, folder: str, environment: Mapping[str, str]
) -> Container:
    """A container with the root file system of an image, and its data at /data."""
    os.chown(data, *map(int, user.split(":")))
    chdir = f"--chdir={folder}"
    variables = [f"{name}={value}" for name, value in environment.items()]
    script = ["sh", "-c", IMAGE_ROOT, "container", str(root), str(data), user, chdir, *variables, *command]
    uid, _, gid = user.partition(":")
    enter = ("--root", "--wd", f"--setuid={uid}", f"--setgid={gid}")
    return Container([*OTHERS, "--fork", "--kill-child", *script], enter, environment, data.with_suffix(".log"))

"""A disk that is small enough to be filled by a test: a tmpfs, mounted by root or in a namespace of the user's own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAMESPACE = ("unshare", "--map-root-user", "--mount", "--")
NONE = "a small disk cannot be made here: it needs root, or `unshare --map-root-user --mount` for ordinary users"
PATIENCE = 280


def can_mount(folder: Path, *, inside: tuple[str, ...] = ()) -> bool:
    """Whether this process, or one in a namespace of its own, may mount a tmpfs. Leaves none behind."""
    script = 'mount -t tmpfs -o size=1m tmpfs "$0" && umount "$0"'
    try:
        return subprocess.run([*inside, "sh", "-c", script, folder], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@contextmanager
def small_disk(folder: Path, mebibytes: int) -> Iterator[Path]:
    """The folder with an empty disk of that size mounted on it."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def run_in_namespace(test: str, root: Path, folder: Path) -> None:
    """Run one test in a process that is root of its own user and mount namespace; fails as that test fails."""
    pytest = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--basetemp", str(folder / "inside"), test]
    done = subprocess.run(
        [*NAMESPACE, *pytest], cwd=root, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout, done.stdout

"""Creates the folders and files of the data directory so that only their owner can read them.

All code that creates something in the data directory uses this module.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

FOLDER_MODE = 0o700
FILE_MODE = 0o600
OTHERS = 0o077
# The contents of a data directory. A folder with anything else is not only ours, and keeps its mode.
OURS = ("silkline.db", "silkline.toml", "logs", "workers", "warc", "files", "exports", "browsers", "marks", "metrics")

log = logging.getLogger("silkline.data")


def make_private_folder(folder: Path) -> None:
    """Create a folder and its missing parents, each for its owner only. An existing folder is not changed."""
    for missing in reversed([place for place in (folder, *folder.parents) if not place.exists()]):
        missing.mkdir(mode=FOLDER_MODE, exist_ok=True)
        missing.chmod(FOLDER_MODE)  # independent of the umask


def make_private_file(file: Path) -> None:
    """Create an empty file for its owner only, and its folder. An existing file is not changed."""
    make_private_folder(file.parent)
    if not file.exists():
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE_MODE))


def is_disk_full(error: object) -> bool:
    """Whether a write failed because the disk or the quota of its owner is full."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def allocate(descriptor: int, size: int) -> None:
    """Give a file that will be mapped its size, and all its blocks on the disk.

    A write into a mapped page without a block would need space at that moment: on a full disk the kernel ends the
    process with SIGBUS. This raises an OSError instead. The content of the file does not change.
    """
    found = os.fstat(descriptor)
    if found.st_size == size and found.st_blocks * 512 >= size:
        return
    os.posix_fallocate(descriptor, 0, size)
    os.ftruncate(descriptor, size)  # it may have been longer


def repair_database(file: Path) -> None:
    """Remove read access of other users to the database, if an older Silkline or a copy allowed it."""
    for path in (file, *(file.with_name(file.name + end) for end in ("-wal", "-shm", "-journal"))):
        _close(path, FILE_MODE)
    _close(file.with_name(f"{file.name}-wakeup"), FOLDER_MODE)
    if _is_ours(file.parent):
        _close(file.parent, FOLDER_MODE)


def repair_folder(data: Path) -> None:
    """The same for a whole data directory: logs, archives, locks."""
    if _is_ours(data):
        _close(data, FOLDER_MODE)
    for path in _everything_of_ours(data):
        _close(path, FOLDER_MODE if path.is_dir() else FILE_MODE)


def _everything_of_ours(data: Path) -> Iterator[Path]:
    for name in OURS:
        path = data / name
        if path.is_symlink() or not path.exists():
            continue
        yield path
        if path.is_dir():
            for folder, folders, files in os.walk(path):
                yield from (Path(folder) / each for each in (*folders, *files))


def _is_ours(folder: Path) -> bool:
    """Whether the folder is only a data directory. We never change the mode of a folder such as a home or /tmp."""
    with contextlib.suppress(OSError):
        names = [entry.name.lstrip(".") for entry in os.scandir(folder)]
        return bool(names) and all(name.startswith(OURS) for name in names)
    return False


def _close(path: Path, mode: int) -> None:
    try:
        before = path.lstat().st_mode
        if stat.S_ISLNK(before) or not before & OTHERS:
            return
        path.chmod(stat.S_IMODE(before) & mode)
    except OSError:  # it was removed, or belongs to another user
        return
    log.warning("%s could be read by other users (mode %o); now only its owner can", path, stat.S_IMODE(before))

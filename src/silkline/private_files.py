"""Makes the folders and files of the data directory so that only their owner can read them.

Every part that creates something in the data directory does it through this module.
"""

from __future__ import annotations

import os
from pathlib import Path

FOLDER_MODE = 0o700
FILE_MODE = 0o600


def make_private_folder(folder: Path) -> None:
    """Create a folder and the folders above it that are missing, each for its owner only. One that exists stays."""
    for missing in reversed([place for place in (folder, *folder.parents) if not place.exists()]):
        missing.mkdir(mode=FOLDER_MODE, exist_ok=True)


def make_private_file(file: Path) -> None:
    """Create an empty file for its owner only, and the folder it lies in. One that exists stays as it is."""
    make_private_folder(file.parent)
    if not file.exists():
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE_MODE))

"""The disk watermark: no job is claimed while the disk has less free space than the setting `disk_free_min`.

It does not end running jobs. If the disk is full, their checkpoints fail, and they go back to the queue.
"""

from __future__ import annotations

import logging
import shutil

from silkline.config import Settings

log = logging.getLogger("silkline.disk")


class DiskWatermark:
    """Knows whether the disk has enough free space to start jobs."""

    def __init__(self, settings: Settings) -> None:
        self._folder = settings.data
        self._least = settings.disk_free_min
        self.closed = False

    def check(self) -> bool:
        """Returns whether there is enough space, and logs each change."""
        try:
            free = shutil.disk_usage(self._folder).free
        except OSError:
            return not self.closed
        if (free < self._least) != self.closed:
            self.closed = not self.closed
            if self.closed:
                log.error(
                    "only %d MB free on the disk of %s: no job starts until there are %d MB (setting disk_free_min)",
                    free // 1_000_000,
                    self._folder,
                    self._least // 1_000_000,
                )
            else:
                log.warning("the disk has enough free space again: starting jobs")
        return not self.closed

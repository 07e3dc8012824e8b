"""Manages crawls with shards, in a thread of each supervisor: wakes shards, balances them, ends crawls."""

from __future__ import annotations

import logging
import threading
import time
from typing import Final

from silkline.errors import StoreError
from silkline.model.database import Database
from silkline.model.sharding import gives_one
from silkline.runner import shard_parents
from silkline.service.background_thread import BackgroundThread
from silkline.store import shards

NEXT_MOVE: Final = 1.0
"""Seconds until a worker that released a shard looks whether it should release another one."""

log = logging.getLogger("silkline.shards")


class ShardKeeper(BackgroundThread):
    """Looks at the parents of shards every few tenths of a second; each is decided about by one worker, not by all. On
    SQLite, which has no shards, it does nothing."""

    def __init__(
        self, database: Database, worker_id: str, *, interval: float, balance: float, stale_after: float
    ) -> None:
        super().__init__("shards")
        self._database = database
        self._worker_id = worker_id
        self._balance = balance
        self._next_balance = time.monotonic() + balance
        self._stale_after = stale_after
        self.gives_one = threading.Event()
        """This worker has more shards than another one: it should release one."""
        self._interval = interval
        self._complained = False

    def _run(self) -> None:
        while self._database.dialect == "postgres" and not self._stopping.wait(self._interval):
            try:
                self._look()
                self._complained = False
            except StoreError as error:
                if not self._complained:
                    log.warning("the shards of crawls could not be checked, trying again: %s", error)
                self._complained = True
            except Exception:
                log.exception("the shards of crawls could not be checked")

    def _look(self) -> None:
        if time.monotonic() >= self._next_balance:
            wait = self._balance
            if gives_one(*shards.loads(self._database, self._stale_after), self._worker_id):
                self.gives_one.set()
                wait = min(wait, NEXT_MOVE)
            self._next_balance = time.monotonic() + wait
        for id, verdict in shard_parents.look(self._database, self._interval / 2):
            if verdict.status is not None:
                log.info("job %s: all shards have ended (%s); it is now %s", id, verdict.reason, verdict.status)

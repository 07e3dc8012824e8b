"""Looks after crawls that span machines, in a thread of each supervisor: wakes shards, balances them, ends crawls."""

from __future__ import annotations

import logging
import threading
import time

from silkline.errors import StoreError
from silkline.model.database import Database
from silkline.model.sharding import gives_one
from silkline.runner import shard_parents
from silkline.store import shards

log = logging.getLogger("silkline.shards")


class ShardKeeper:
    """Looks at the parents of shards every few tenths of a second. On SQLite, which has no shards, it does nothing."""

    def __init__(
        self, database: Database, worker_id: str, *, interval: float, balance: float, stale_after: float
    ) -> None:
        self._database = database
        self._worker_id = worker_id
        self._balance = balance
        self._balanced_at = time.monotonic()
        self._stale_after = stale_after
        self.gives_one = threading.Event()
        """This worker has more shards than another one: it should release one."""
        self._interval = interval
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shards", daemon=True)
        self._complained = False

    def start(self) -> None:
        if self._database.dialect == "postgres":
            self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=30)

    def _run(self) -> None:
        while not self._stopping.wait(self._interval):
            try:
                self._look()
                self._complained = False
            except StoreError as error:
                if not self._complained:
                    log.warning("the shards of crawls could not be looked at, trying again: %s", error)
                self._complained = True
            except Exception:
                log.exception("the shards of crawls could not be looked at")

    def _look(self) -> None:
        if time.monotonic() - self._balanced_at >= self._balance:
            self._balanced_at = time.monotonic()
            if gives_one(*shards.loads(self._database, self._stale_after), self._worker_id):
                self.gives_one.set()
        for id, verdict in shard_parents.look(self._database):
            if verdict.status is not None:
                log.info("job %s: all shards have ended (%s); it is now %s", id, verdict.reason, verdict.status)

"""Checks over HTTP, in its own thread, whether a server of ours still answers, and measures how long it has not.

Any answer counts, also an HTTP error: a server that sends an error is alive. A server that is starting gets more time.
Otherwise a slow start on a busy machine would be killed again and again.
"""

from __future__ import annotations

import http.client
import logging
import threading
import time
from typing import Final
from urllib.parse import urlsplit

PATH: Final = "/healthz"
STARTING: Final = 180.0  # seconds until the first answer

log = logging.getLogger("silkline.child_program")


class HealthProbe:
    """Only the thread of the main loop calls `begin` and `close`. Any thread may call `silence`."""

    def __init__(self, url: str, *, every: float, limit: float) -> None:
        parts = urlsplit(url)
        self._url = url
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._answered = time.monotonic()
        self._starting = True
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._limit = limit
        self.every = every

    def begin(self) -> None:
        """Called when the server was started or restarted."""
        self._answered, self._starting = time.monotonic(), True
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="health", daemon=True)
            self._thread.start()

    def silence(self) -> float | None:
        """The seconds since the last answer if they are above the limit, else None."""
        seconds = time.monotonic() - self._answered
        limit = max(self._limit, STARTING) if self._starting else self._limit
        return seconds if seconds > limit else None

    def close(self) -> None:
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.wait(self.every):
            if self._ask():
                if self._starting:
                    log.info("the API answers at %s", self._url)
                self._answered, self._starting = time.monotonic(), False

    def _ask(self) -> bool:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=max(1.0, self._limit / 2))
        try:
            connection.request("GET", PATH)
            return connection.getresponse().status > 0
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

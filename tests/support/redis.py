"""A real Redis for the tests: a temporary server of our own, or a running, empty one that was named to us."""

import signal
from urllib.parse import urlsplit, urlunsplit

import redis

from tests.support import programs
from tests.support.daemon import Daemon


class RedisDatabase:
    """A running Redis named by a URL. It has to be empty at first, since the tests empty it again and again.

    Tests that run side by side each take a database of their own: that many `beyond` the one in the URL.
    """

    def __init__(self, url: str, beyond: int = 0) -> None:
        named = urlsplit(url)
        number = int(named.path.strip("/") or 0) + beyond
        self._url = urlunsplit(named._replace(path=f"/{number}"))
        with redis.Redis.from_url(self._url) as client:
            if client.dbsize():
                raise RuntimeError(
                    "the Redis of SILKLINE_TEST_REDIS_URL is not empty: the tests would delete what is in it"
                )

    @property
    def url(self) -> str:
        return self._url

    def empty(self) -> None:
        with redis.Redis.from_url(self._url) as client:
            client.flushdb()


class RedisServer(RedisDatabase):
    """A temporary server that can be stopped and started again on the same port; it forgets everything when stopped."""

    def __init__(self, *options: str) -> None:
        self._program = programs.redis_server()
        self._daemon = Daemon("redis")
        self._options = ("--save", "", "--appendonly", "no", *options)
        self._url = f"redis://127.0.0.1:{self._daemon.port}/0"
        try:
            self.start()
        except BaseException:
            self._daemon.remove()
            raise
        super().__init__(self._url)

    @property
    def log(self) -> str:
        return self._daemon.log

    def start(self) -> None:
        where = ("--port", str(self._daemon.port), "--bind", "127.0.0.1", "--dir", str(self._daemon.directory))
        self._daemon.start([self._program, *where, *self._options], self._answers)

    def stop(self) -> None:
        """At once, as in a crash."""
        self._daemon.stop(signal.SIGQUIT)

    def restart(self) -> None:
        self.stop()
        self.start()

    def remove(self) -> None:
        self._daemon.remove()

    def _answers(self) -> bool:
        with redis.Redis.from_url(self._url, socket_timeout=5) as client:
            try:
                return bool(client.ping())
            except (redis.ConnectionError, redis.TimeoutError):
                return False

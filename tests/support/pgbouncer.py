"""A real PgBouncer in transaction mode, in front of a PostgreSQL that is running."""

import signal
from urllib.parse import urlsplit, urlunsplit

import psycopg

from tests.support import programs
from tests.support.daemon import Daemon

SERVER_CONNECTIONS = 3
"""So few that clients get another server connection all the time."""


class PgBouncer:
    """`url` leads to the same database as `behind`, through the pooler."""

    def __init__(self, behind: str) -> None:
        program = programs.pgbouncer()
        target = urlsplit(behind)
        self._daemon = Daemon("pgbouncer", user=programs.account_for_servers())
        self._name = target.path.lstrip("/")
        place = f"{target.username or 'silkline'}@127.0.0.1:{self._daemon.port}"
        self.url = urlunsplit(("postgresql", place, target.path, "", ""))
        password = f" password={target.password}" if target.password else ""
        settings = {
            "listen_addr": "127.0.0.1",
            "listen_port": self._daemon.port,
            "unix_socket_dir": "",
            "auth_type": "any",
            "pool_mode": "transaction",
            "default_pool_size": SERVER_CONNECTIONS,
            "max_client_conn": 500,
            "admin_users": target.username or "silkline",
        }
        lines = [
            "[databases]",
            f"{self._name} = host={target.hostname} port={target.port or 5432} user={target.username}{password}",
            "[pgbouncer]",
            *(f"{name} = {value}" for name, value in settings.items()),
        ]
        file = self._daemon.directory / "pgbouncer.ini"
        file.write_text("\n".join(lines) + "\n")
        file.chmod(0o644)
        try:
            self._daemon.start([program, file], self._answers)
        except BaseException:
            self._daemon.remove()
            raise

    def remove(self) -> None:
        self._daemon.stop(signal.SIGTERM)
        self._daemon.remove()

    def clients(self) -> int:
        """How many connections lead to it now, the one that asks left out."""
        with psycopg.connect(
            urlunsplit(urlsplit(self.url)._replace(path="/pgbouncer")), autocommit=True, prepare_threshold=None
        ) as admin:
            found = admin.execute("SHOW CLIENTS").fetchall()
        return len([row for row in found if row[2] == self._name])

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

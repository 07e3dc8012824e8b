"""The server process: one listening socket from outside, one database, and an end in good order."""

from __future__ import annotations

import logging
import socket

import uvicorn

from silkline.api.app import create_app
from silkline.api.events import Hub
from silkline.config import Settings
from silkline.store.database import open_database

GRACE = 3  # seconds that answers under way get

log = logging.getLogger("silkline.api")


class Server(uvicorn.Server):
    """Ends event streams first: nobody would wait for them to end by themselves."""

    def __init__(self, config: uvicorn.Config, hub: Hub) -> None:
        super().__init__(config)
        self._hub = hub

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._hub.close()
        await super().shutdown(sockets)


def serve(settings: Settings, listener: socket.socket, host: str) -> None:
    """Answer until told to end."""
    database = open_database(settings.database)
    try:
        hub = Hub(database)
        app = create_app(settings, database, hub, host, listener.getsockname()[1])
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            loop="uvloop",
            timeout_graceful_shutdown=GRACE,
        )
        logging.getLogger("uvicorn").setLevel(logging.WARNING)
        Server(config, hub).run([listener])
    finally:
        database.close()

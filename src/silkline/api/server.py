"""The server process: it gets a listening socket, opens the database, and shuts down in order."""

from __future__ import annotations

import logging
import socket
from functools import partial

import uvicorn

from silkline.api.app import create_app
from silkline.api.connections import ConnectionCount, ConnectionLimits, LimitedProtocol
from silkline.api.events import Hub
from silkline.config import Settings
from silkline.store.opening import open_database

GRACE = 3  # seconds for running requests to end

log = logging.getLogger("silkline.api")


class Server(uvicorn.Server):
    """Ends event streams first, because they would not end on their own."""

    def __init__(self, config: uvicorn.Config, hub: Hub) -> None:
        super().__init__(config)
        self._hub = hub

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._hub.close()
        await super().shutdown(sockets)


def serve(settings: Settings, listener: socket.socket, host: str) -> None:
    """Serve until a signal ends the process."""
    database = open_database(settings.database)
    try:
        hub = Hub(
            database,
            most=settings.api_streams,
            most_each=settings.api_streams_each,
            check_every=settings.api_stream_check,
        )
        app = create_app(settings, database, hub, host, listener.getsockname()[1])
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            http=partial(LimitedProtocol, connections=_counting(settings)),  # type: ignore[arg-type]
            loop="uvloop",
            timeout_graceful_shutdown=GRACE,
        )
        # Its warnings are about bytes that are no HTTP, and upgrades: anybody could fill the log with them.
        logging.getLogger("uvicorn").setLevel(logging.ERROR)
        Server(config, hub).run([listener])
    finally:
        database.close()


def _counting(settings: Settings) -> ConnectionCount:
    limits = ConnectionLimits(
        in_all=settings.api_connections,
        each_address=settings.api_connections_each,
        head=settings.api_head_timeout,
        body=settings.api_body_timeout,
        answer=settings.api_answer_timeout,
    )
    return ConnectionCount(limits)

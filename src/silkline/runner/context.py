"""What the code of a kind gets: control, progress and log. They use the database and the socket to the supervisor."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import threading
import time

import msgspec

from silkline.errors import Permanent, Unavailable
from silkline.metrics.instruments import tell_cpu
from silkline.model.database import Database
from silkline.model.job import End, Job
from silkline.model.ledger import Checkpoint, Counts
from silkline.runner import protocol
from silkline.runner.orders import Orders
from silkline.store import urls

SIGN_OF_LIFE = 1.0  # the shortest time between two signs of life, in seconds
OUTAGE_STEP = 0.5
END_TIMEOUT = 5.0


class Channel(Orders):
    """The runner's end of the socket. Its own thread receives orders. Sending an event never blocks."""

    def __init__(self, channel: socket.socket) -> None:
        super().__init__()
        self._socket = channel
        self._ending = threading.Lock()
        self._last_sign = 0.0
        threading.Thread(target=self._listen, name="orders", daemon=True).start()
        if threading.current_thread() is threading.main_thread():
            # A person who sends SIGTERM to this process wants the job to go back to the queue in good order.
            signal.signal(signal.SIGTERM, lambda *_: self.give(End.RELEASED))

    def sign(self) -> None:
        """Show that the attempt is alive, at most once a second."""
        now = time.monotonic()
        if now - self._last_sign >= SIGN_OF_LIFE:
            self._last_sign = now
            self.send(protocol.RunnerEvent())

    def send(self, event: protocol.RunnerEvent) -> None:
        """Send an event. If the buffer of the socket is full, the event is dropped."""
        with contextlib.suppress(OSError):
            self._socket.send(msgspec.json.encode(event), socket.MSG_DONTWAIT)

    def end(self, end: End, *, reason: str = "", message: str = "", wait: float = 0.0) -> bool:
        """Report how the attempt ended, and wait until the message is sent. Returns whether that worked."""
        text = _encodable(message[-protocol.MAX_TEXT :])
        event = protocol.RunnerEvent(end=end, reason=_encodable(reason), message=text, wait=wait)
        with self._ending, contextlib.suppress(OSError):
            self._socket.settimeout(END_TIMEOUT)
            self._socket.send(msgspec.json.encode(event))
            return True
        return False

    def _listen(self) -> None:
        while True:
            try:
                message = protocol.receive(self._socket, protocol.Order | protocol.LinksArrived)
            except TimeoutError:
                continue
            except OSError:
                message = None
            if isinstance(message, protocol.LinksArrived):
                self.tell_of_links()
                continue
            if not isinstance(message, protocol.Order):
                # The supervisor closed its end of the socket: this attempt must end now.
                os._exit(protocol.EXIT_LEASE_LOST)
            self.give(message.end)


class JobProgress:
    """Stores checkpoints. Waits during an outage of the database, but gives up when the lease is lost."""

    def __init__(self, database: Database, job: Job, channel: Channel) -> None:
        self.database = database
        self.job = job
        self._channel = channel
        self._checkpoints = urls.counts(database, job.id).checkpoints

    def record(self, checkpoint: Checkpoint) -> Counts:
        for result in checkpoint.results:
            if result.data[:1] != "{":  # the code of a kind wrote it, perhaps that of a plug-in
                raise Permanent(f"the data of a result must be a JSON object, not {result.data[:40]!r}")
        counts = self._record(checkpoint)
        self._checkpoints = counts.checkpoints
        tell_cpu()
        self._channel.sign()
        return counts

    def _record(self, checkpoint: Checkpoint) -> Counts:
        in_doubt = False
        while True:
            try:
                if in_doubt:
                    # The answer to a commit was lost. Only this attempt writes checkpoints of the job, so their number
                    # tells whether the commit happened.
                    counts = urls.counts(self.database, self.job.id)
                    if counts.checkpoints > self._checkpoints:
                        return counts
                return urls.record(self.database, self.job, checkpoint, self._checkpoints)
            except Unavailable:
                # The checkpoint is still in memory: try again. After an order to end, give up: the ledger is unchanged.
                in_doubt = True
                if self._channel.wait(OUTAGE_STEP):
                    raise

    def report(self) -> None:
        self._channel.sign()


class ChannelLog(logging.Handler):
    """Sends log records as events."""

    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self._channel = channel

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)[: protocol.MAX_TEXT]
        except Exception:
            self.handleError(record)
            return
        event, data = getattr(record, "event", ""), getattr(record, "data", None)
        level, message = record.levelname.lower(), _encodable(text)
        self._channel.send(protocol.RunnerEvent(level=level, message=message, event=event, data=data))


def _encodable(text: str) -> str:
    """Replace lone surrogates, which JSON cannot encode. Python makes them from undecodable bytes of file names."""
    return text if text.isascii() else text.encode(errors="replace").decode()

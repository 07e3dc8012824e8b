"""libcurl's multi interface on an event loop: sockets, the timer, and finished handles. Knows nothing of HTTP.

Our own epoll watches the sockets, and the event loop watches only the descriptor of this epoll. So a page needs no
handles of the loop, and finished transfers are read once for each batch of events instead of once for each socket.
"""

import asyncio
import select
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic
from typing import Any, Final

import pycurl  # type: ignore[import-untyped]

_EVENTS: Final = {
    pycurl.POLL_IN: select.EPOLLIN,
    pycurl.POLL_OUT: select.EPOLLOUT,
    pycurl.POLL_INOUT: select.EPOLLIN | select.EPOLLOUT,
}
_FEWEST: Final = 4
_FEW: Final = 8
"""Sockets that are served between two checks of the clock. One socket can take 20 ms if a body has tiny chunks."""
_SHORTAGE: Final = 5.0
_TURN: Final = 0.05
"""The callback for a finished transfer may parse its page. After this many seconds other callbacks of the loop run."""
_LONG_TURN: Final = 1.0
# (handle, curl's code or 0, curl's message)
OnDone = Callable[[Any, int, str], None]


class Transport:
    """Runs easy handles and calls `on_done` for each finished one, never inside a callback of libcurl."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_done: OnDone, *, connections: int, most: int, burst: int
    ) -> None:
        self._loop = loop
        self._on_done = on_done
        self._burst = burst
        self._epoll = select.epoll()
        self._watched: set[int] = set()
        self._due: float | None = None
        self._timer: asyncio.Handle | None = None
        self._timer_at = 0.0
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)
        self._multi.setopt(pycurl.M_MAXCONNECTS, connections)
        self._most = most
        self._multi.setopt(pycurl.M_MAX_TOTAL_CONNECTIONS, most)
        self._grow_later: asyncio.TimerHandle | None = None
        self._finished: OrderedDict[Any, tuple[int, str]] = OrderedDict()
        self._hand_on_soon: asyncio.Handle | None = None
        self.unwatched = 0.0
        """Seconds without a check of the sockets, because callbacks took long. Short times do not count."""
        loop.add_reader(self._epoll.fileno(), self._ready)

    def add(self, easy: Any) -> None:
        self._multi.add_handle(easy)

    def remove(self, easy: Any) -> None:
        self._finished.pop(easy, None)
        self._multi.remove_handle(easy)

    def shrink(self) -> None:
        """No file descriptor is free: allow only the connections in use for a while, so that idle ones are closed."""
        self._multi.setopt(pycurl.M_MAX_TOTAL_CONNECTIONS, max(_FEWEST, min(self._most, len(self._watched))))
        if self._grow_later is not None:
            self._grow_later.cancel()
        self._grow_later = self._loop.call_later(_SHORTAGE, self._grow)

    def _grow(self) -> None:
        self._grow_later = None
        self._multi.setopt(pycurl.M_MAX_TOTAL_CONNECTIONS, self._most)

    def close(self) -> None:
        """The caller must remove every handle first."""
        if self._grow_later is not None:
            self._grow_later.cancel()
        self._loop.remove_reader(self._epoll.fileno())
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._hand_on_soon is not None:
            self._hand_on_soon.cancel()
        self._multi.close()
        self._epoll.close()

    def _watch(self, what: int, fd: int, _multi: Any, _data: Any) -> None:
        if what == pycurl.POLL_REMOVE:
            if fd in self._watched:
                self._watched.remove(fd)
                try:
                    self._epoll.unregister(fd)
                except OSError:  # already closed, so the kernel has removed it
                    return
            return
        events = _EVENTS.get(what, 0)
        if fd in self._watched:
            try:
                self._epoll.modify(fd, events)
                return
            except FileNotFoundError:  # the descriptor was closed and reused
                pass
        self._watched.add(fd)
        self._epoll.register(fd, events)

    def _set_timer(self, milliseconds: int) -> None:
        """Set the timer. libcurl calls this several times per page, so a timer that fires too early is not replaced."""
        if milliseconds < 0:
            self._due = None
            return
        if milliseconds == 0:
            self._due = 0.0
            if self._timer is None or self._timer_at > 0.0:
                self._arm(0.0)
            return
        self._due = self._loop.time() + milliseconds / 1000
        if self._timer is None or self._timer_at > self._due:
            self._arm(self._due)

    def _arm(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._loop.call_at(at, self._tick) if at else self._loop.call_soon(self._tick)

    def _tick(self) -> None:
        self._timer = None
        due = self._due
        if due is None:
            return
        # A timer of the loop may fire up to a millisecond early.
        if due > self._loop.time() + 0.001:
            self._arm(due)
            return
        self._due = None
        self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self._reap()

    def _ready(self) -> None:
        """Serve ready sockets for a short time. The next poll returns the sockets that were not served first."""
        started = monotonic()
        for _ in range(0, self._burst, _FEW):
            ready = self._epoll.poll(0, _FEW)
            self._serve(ready)
            if len(ready) < _FEW or monotonic() - started > _TURN:
                break
        self._reap()

    def _serve(self, ready: list[tuple[int, int]]) -> None:
        act = self._multi.socket_action
        for fd, events in ready:
            flags = 0
            if events & select.EPOLLIN:
                flags |= pycurl.CSELECT_IN
            if events & select.EPOLLOUT:
                flags |= pycurl.CSELECT_OUT
            if events & (select.EPOLLERR | select.EPOLLHUP):
                flags |= pycurl.CSELECT_ERR
            act(fd, flags)

    def _reap(self) -> None:
        left, finished = 1, self._finished
        while left:
            left, succeeded, failed = self._multi.info_read(self._burst)
            for easy in succeeded:
                finished[easy] = (0, "")
            for easy, code, message in failed:
                finished[easy] = (code, message)
        if finished and self._hand_on_soon is None:
            self._hand_on()

    def _hand_on(self) -> None:
        """Report finished transfers for a short time. The rest waits until other callbacks of the loop have run."""
        self._hand_on_soon = None
        started = now = monotonic()
        while self._finished and now - started < _TURN:
            easy, (code, message) = self._finished.popitem(last=False)
            self._done(easy, code, message)
            now = monotonic()
        if now - started >= _LONG_TURN:
            self.unwatched += now - started
        if self._finished:
            self._hand_on_soon = self._loop.call_soon(self._hand_on)

    def _done(self, easy: Any, code: int, message: str) -> None:
        self._multi.remove_handle(easy)
        try:
            self._on_done(easy, code, message)
        except Exception as error:
            self._loop.call_exception_handler({"message": "the callback of a fetch failed", "exception": error})

"""Decides when a page in a browser is done.

After the load event the clock of the page is virtual: its timers fire at once, one after the other, as far as
`timer_seconds` reach, and the clock stands still while a request is in flight. So a page that shows its content after
900 ms, or after a chain of timers and requests, is done within a few milliseconds, and complete. Then the page must
have no request in flight, and no change of its document, message or frame callback for two frames
(`render_scripts.PROBE`).

Some work runs outside of this clock: workers, sockets, IndexedDB, cryptography, endless animations. Such a page
gets real time, and is done when it has sent no request for `quiet_seconds`. A page that is busy for longer than
`settle_seconds` is read as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from silkline.fetch.render_cdp import BrowserGone, CommandRefused, Conversation
from silkline.fetch.render_world import IsolatedWorld
from silkline.fetch.settings import RenderLimits

_LEAVING: Final = "leaving"
_TICK: Final = 0.05
_FRAME: Final = 0.016
_MOVE: Final = 0.001
_TIME_TO_LOAD: Final = 10.0  # virtual seconds for a page that reloads itself
_STARVATION: Final = 1000
"""Tasks without a delay that may run before the clock moves on, so that endless ones do not stop it."""


class Settling:
    """Gets the events of one page. `probe`: the script that says whether nothing happens in the page. `real_time`: the
    clock of the page is not changed."""

    def __init__(
        self, conversation: Conversation, limits: RenderLimits, world: IsolatedWorld, probe: str, *, real_time: bool
    ) -> None:
        self._talk = conversation
        self.session = ""
        self._limits = limits
        self._world = world
        self._probe = probe
        self._real_time = real_time
        self.virtual = False
        """Whether the clock of the page is not the real one."""
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._loading: set[str] = set()
        self._loaded_at: float | None = None
        self._quiet_since = self._loop.time()
        self._timers_ran = False
        self._done = False
        self._probing: asyncio.Task[None] | None = None
        self._tick: asyncio.TimerHandle | None = None

    # Events of the page.

    def loaded(self) -> None:
        """The page is loaded, or a navigation that was refused may have stopped its load event."""
        if self._loaded_at is None:
            self._loaded_at = self._loop.time()
            self._run_timers()
        self.look_again()

    def reloads(self) -> None:
        self._loaded_at = None
        if self.virtual:
            self._give_time(_TIME_TO_LOAD)

    def shows(self, request: str) -> None:
        """The answer to this request is the document now. The browser may never say how the requests of the document
        before it ended, that document's own included."""
        self._loading &= {request}

    def started(self, request: str, *, endless: bool) -> None:
        if endless:
            self._use_real_time()
            return
        self._loading.add(request)
        was_probing = self._probing is not None or self._done
        self._stop_probing()
        if was_probing and self.virtual and not self._real_time:
            self._give_time(_TICK)  # else the clock would stand still, and the request with it
        self.look_again()

    def ended(self, request: str) -> None:
        self._loading.discard(request)
        self._quiet_since = self._loop.time()
        if not self._loading and self._timers_ran:
            self._run_timers()  # the answer may have started new ones
        self.look_again()

    def leaving(self) -> None:
        """A script opens another URL. It may take a while until the browser sends the request."""
        self.started(_LEAVING, endless=False)

    def stays(self) -> None:
        self._loading.discard(_LEAVING)

    def time_is_over(self) -> None:
        """The virtual time that the page got has passed."""
        if self._real_time or self._loaded_at is None:
            return
        self._timers_ran = True
        if self._loading:
            self._give_time(_TICK)  # answers arrive only while the clock may move
        elif self._probing is None:
            self._probing = self._loop.create_task(self._look())
            self._let_tick()

    def look_again(self) -> None:
        """Something has changed."""
        self._changed.set()

    # Wait for the end.

    async def wait(self, deadline: float, over: Callable[[], bool]) -> bool:
        """Wait until the page is done, or `over` is true. False: its time is over before that."""
        gone = asyncio.ensure_future(self._talk.gone.wait())
        try:
            while not over():
                now = self._loop.time()
                until = self._done_at(deadline)
                if now >= until:
                    return until != deadline
                self._changed.clear()
                change = asyncio.ensure_future(self._changed.wait())
                await asyncio.wait({change, gone}, timeout=until - now, return_when=asyncio.FIRST_COMPLETED)
                change.cancel()
                if gone.done():
                    raise BrowserGone
            return True
        finally:
            gone.cancel()
            self.close()

    def close(self) -> None:
        self._stop_probing()
        self._stop_ticking()

    def _done_at(self, deadline: float) -> float:
        """The time when the page counts as done if no more events arrive."""
        if self._loaded_at is None:
            return deadline
        if self._done and not self._loading:
            return self._loop.time()
        at = self._loaded_at + self._limits.settle_seconds
        if not self._loading and self._real_time:
            at = min(at, max(self._loaded_at, self._quiet_since) + self._limits.quiet_seconds)
        return min(at, deadline)

    # The clock of the page.

    def _run_timers(self) -> None:
        if not self._real_time:
            self._timers_ran = False
            self._give_time(self._limits.timer_seconds)

    def _give_time(self, seconds: float) -> None:
        self.virtual = True
        policy = "advance" if self._real_time else "pauseIfNetworkFetchesPending"
        self._talk.say(
            "Emulation.setVirtualTimePolicy",
            self.session,
            policy=policy,
            budget=1000 * seconds,
            maxVirtualTimeTaskStarvationCount=_STARVATION,
        )

    def _use_real_time(self) -> None:
        """From now on the clock of the page runs as fast as ours."""
        if not self._real_time:
            self._real_time = True
            self._stop_probing()
            if self.virtual and self._tick is None:
                self._let_tick()
            self.look_again()

    def _let_tick(self) -> None:
        """Let the clock of the page run about as fast as ours. While the page is probed, it only must not stand still:
        some callbacks arrive only while it moves, such as those of lists that grow."""
        self._give_time(_TICK if self._real_time else _MOVE)
        self._tick = self._loop.call_later(_TICK if self._real_time else _FRAME, self._let_tick)

    def _stop_probing(self) -> None:
        self._done = False
        if self._probing is not None:
            self._probing.cancel()
            self._probing = None
        if not self._real_time:
            self._stop_ticking()

    def _stop_ticking(self) -> None:
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None

    async def _look(self) -> None:
        """Ask the page whether anything happens in it."""
        try:
            quiet = await self._world.run(self._probe, self._limits.quiet_seconds) is True
        except BrowserGone:
            return  # `wait` detects this
        except (CommandRefused, TimeoutError, KeyError, AttributeError):
            quiet = False
        self._probing = None
        if quiet:
            self._done = True
            self.look_again()
        else:
            self._use_real_time()

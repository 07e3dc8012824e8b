"""Interrupts Python code after a time limit: the code of plug-ins, which may sleep or never end, and slow parsers."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class TookTooLong(BaseException):
    """Not an `Exception`, so that code that catches every exception does not catch this one."""


def can_interrupt() -> bool:
    """Whether `interrupted_after` works here: only in the main thread of a process."""
    return threading.current_thread() is threading.main_thread()


@contextmanager
def interrupted_after(seconds: float, *, cpu: bool = False) -> Iterator[None]:
    """Raise `TookTooLong` in the body after the time limit. Without effect in other threads than the main thread.

    `cpu`: the limit is CPU time of this process, so that nothing fails because the machine is loaded.
    """
    if not can_interrupt():
        yield
        return

    def interrupt(number: int, frame: Any) -> None:
        raise TookTooLong

    timer, number = (signal.ITIMER_PROF, signal.SIGPROF) if cpu else (signal.ITIMER_REAL, signal.SIGALRM)
    clock = time.process_time if cpu else time.monotonic
    began = clock()
    before = signal.signal(number, interrupt)
    left, every = signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        signal.setitimer(timer, 0)
        signal.signal(number, before)
        if left:  # a timer of the caller goes on, or fires now
            signal.setitimer(timer, max(left - (clock() - began), 1e-6), every)

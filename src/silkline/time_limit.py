"""Interrupts Python code after a time limit: the code of plug-ins, which may sleep or never end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class TookTooLong(BaseException):
    """Not an `Exception`, so that code that catches every exception does not catch this one."""


def can_interrupt() -> bool:
    """Whether `interrupted_after` works here: only in the main thread of a process."""
    return threading.current_thread() is threading.main_thread()


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Raise `TookTooLong` in the body after the time limit. Without effect in other threads than the main thread."""
    if not can_interrupt():
        yield
        return

    def interrupt(number: int, frame: Any) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

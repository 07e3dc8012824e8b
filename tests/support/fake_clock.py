"""A clock that stands still until a test moves it."""


class FakeClock:
    """Call it for the time, as `time.monotonic`."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

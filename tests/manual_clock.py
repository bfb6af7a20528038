"""A clock for tests of the broker."""


class ManualClock:
    """Only `advance` moves it."""

    def __init__(self, wall_ms: int = 1_700_000_000_000) -> None:
        self._wall_ms = wall_ms
        self._monotonic_ms = 0

    def wall_ms(self) -> int:
        return self._wall_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def advance(self, milliseconds: int) -> None:
        self._wall_ms += milliseconds
        self._monotonic_ms += milliseconds

"""Byte ranges of a segment whose checksums this process has verified."""


class VerifiedRanges:
    __slots__ = ("_ranges",)

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []

    def end_at(self, position: int) -> int | None:
        """Return the end of the range that contains `position`, or None."""
        return next((end for start, end in self._ranges if start <= position < end), None)

    def add(self, start: int, end: int) -> None:
        """Add a range. Merges it with the ranges that it touches."""
        separate = []
        for known_start, known_end in self._ranges:
            if known_end < start or known_start > end:
                separate.append((known_start, known_end))
            else:
                start, end = min(start, known_start), max(end, known_end)
        self._ranges = sorted([*separate, (start, end)])

"""The exceptions of serdes.

ValueError
├── EncodeError   the value does not match the schema
└── PoisonError   the payload is poison; see its attribute `poison`
"""

from headgate.serdes.outcome import Poison


class EncodeError(ValueError):
    """The value does not match the schema. The message contains the path and the problem."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail
        self.path: list[str] = []
        """The path, innermost part first. Each level appends its part while the exception propagates."""

    def __str__(self) -> str:
        place = "".join(reversed(self.path)).removeprefix(".")
        return f"{place}: {self.detail}" if place else self.detail


class PoisonError(ValueError):
    def __init__(self, poison: Poison) -> None:
        super().__init__(poison)
        self.poison = poison

    def __str__(self) -> str:
        return f"{self.poison.reason.name}: {self.poison.detail}"

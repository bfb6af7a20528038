"""What serdes raise: a value that cannot be written, and poison for those who prefer an exception.

ValueError
├── EncodeError   the value is not one of the schema
└── PoisonError   the payload is poison; `poison` says why
"""

from headgate.serdes.outcome import Poison


class EncodeError(ValueError):
    """The value is not one of the schema. Its text names the place and the fault."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail
        self.path: list[str] = []
        """Filled on the way out, innermost first."""

    def __str__(self) -> str:
        place = "".join(reversed(self.path)).removeprefix(".")
        return f"{place}: {self.detail}" if place else self.detail


class PoisonError(ValueError):
    def __init__(self, poison: Poison) -> None:
        super().__init__(poison)
        self.poison = poison

    def __str__(self) -> str:
        return f"{self.poison.reason.name}: {self.poison.detail}"

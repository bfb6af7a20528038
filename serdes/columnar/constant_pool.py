"""The constant pool of a program: symbols, defaults, decimal bounds. Equal constants share one entry."""

from headgate.serdes.avro.schema import Logical
from headgate.serdes.columnar.kernels.primitives import DECIMAL_BOUND_BYTES


class Constants:
    def __init__(self) -> None:
        self.pool = bytearray()
        self._places: dict[bytes, int] = {}

    def place(self, value: bytes) -> int:
        if value not in self._places:
            self._places[value] = len(self.pool)
            self.pool += value
        return self._places[value]

    def decimal_bounds(self, logical: Logical) -> tuple[int, int]:
        """The position of the lowest and highest unscaled value of a precision, which are adjacent, and the size of
        each.
        """
        high = 10**logical.precision - 1
        size = max(high.bit_length() // 8 + 1, DECIMAL_BOUND_BYTES)
        return self.place((-high).to_bytes(size, signed=True) + high.to_bytes(size, signed=True)), size

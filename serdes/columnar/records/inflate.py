"""The records of compressed batches, inflated one behind the other within a bound.

A small batch must not become a large allocation: codecs write into the room that is left, and stop at its end.
"""

import numpy as np
from numpy.typing import NDArray

from headgate.serdes.columnar.errors import BatchTooLarge, ColumnarError
from headgate.serdes.columnar.memory import empty
from headgate.serdes.compression import NotDecompressed, OutOfRoom, decompress_into

INFLATED_BYTES_MAX = 256 * 1024 * 1024
"""Of one batch. Brokers take 1 MiB by default, and text shrinks ten- or twentyfold: beyond this it is a bomb."""

RECORDS_BYTES_MAX = 2**31 - 1
"""Of all batches of one call: Arrow's offsets count them in 32 bits."""

GUESS_RATIO = 16
"""The first guess at how many times larger the records are. Pages that are not written to cost nothing."""

Bytes = bytes | memoryview


class NotInflated(ColumnarError):
    """The bytes are not of the codec they are said to be, or they are a bomb."""


class Inflated:
    """Records one behind the other in one block, which doubles where it is too small."""

    def __init__(self, compressed_bytes: int) -> None:
        self._block = empty(min(GUESS_RATIO * compressed_bytes + 4096, RECORDS_BYTES_MAX), np.uint8)
        self.size = 0

    @property
    def data(self) -> NDArray[np.uint8]:
        return self._block[: self.size]

    def add(self, codec: int, records: memoryview) -> None:
        """`codec` is the low three bits of a batch's attributes. Raises `NotInflated`, and adds nothing then."""
        if codec == 0:
            self._reserve(len(records))
            self._block[self.size : self.size + len(records)] = np.frombuffer(records, np.uint8)
            self.size += len(records)
            return
        try:
            self.size += self._inflate(codec, records)
        except NotDecompressed as error:
            raise NotInflated(str(error)) from None

    def _inflate(self, codec: int, records: memoryview) -> int:
        self._reserve(min(GUESS_RATIO * len(records), INFLATED_BYTES_MAX))
        while True:
            room = min(len(self._block) - self.size, INFLATED_BYTES_MAX)
            try:
                return decompress_into(codec, records, self._block.data[self.size : self.size + room])
            except OutOfRoom:
                if room == INFLATED_BYTES_MAX:
                    raise NotInflated(f"its records take more than {INFLATED_BYTES_MAX} bytes") from None
            self._reserve(min(2 * room + 4096, INFLATED_BYTES_MAX))

    def _reserve(self, room: int) -> None:
        needed = self.size + room
        if needed <= len(self._block):
            return
        if needed > RECORDS_BYTES_MAX:
            raise BatchTooLarge(f"{needed} bytes of records in one call; Arrow's offsets end at 2^31")
        larger = empty(min(max(2 * len(self._block), needed), RECORDS_BYTES_MAX), np.uint8)
        larger[: self.size] = self.data
        self._block = larger

"""The decompressed records of several batches in one buffer, within limits."""

import numpy as np
from numpy.typing import NDArray

from headgate.serdes.columnar.errors import BatchTooLarge
from headgate.serdes.columnar.memory import empty
from headgate.wire.compression import NONE, decompress_into
from headgate.wire.errors import DecompressedTooLarge, TargetTooSmall

BATCH_BYTES_MAX = 256 * 1024 * 1024
"""Decompressed records of one batch. Brokers accept 1 MiB by default, and text compresses 10 to 20 times. A batch that
decompresses to more is a decompression bomb."""

RECORDS_BYTES_MAX = 2**31 - 1
"""Decompressed records of one call. Arrow's offsets have 32 bits."""

GUESS_RATIO = 16
"""First guess of the compression ratio. Unused pages of the buffer cost nothing."""


class DecompressedRecords:
    """Records of consecutive batches in one buffer, which doubles if it is too small."""

    def __init__(self, compressed_bytes: int) -> None:
        self._buffer = empty(min(GUESS_RATIO * compressed_bytes + 4096, RECORDS_BYTES_MAX), np.uint8)
        self.size = 0

    @property
    def data(self) -> NDArray[np.uint8]:
        return self._buffer[: self.size]

    def add(self, codec: int, records: memoryview) -> None:
        """Append the records of one batch. Raises `DecompressionFailed` and leaves the buffer unchanged."""
        if codec == NONE:
            self._reserve(len(records))
            self._buffer[self.size : self.size + len(records)] = np.frombuffer(records, np.uint8)
            self.size += len(records)
        else:
            self.size += self._decompress(codec, records)

    def _decompress(self, codec: int, records: memoryview) -> int:
        self._reserve(min(GUESS_RATIO * len(records), BATCH_BYTES_MAX))
        while True:
            room = min(len(self._buffer) - self.size, BATCH_BYTES_MAX)
            try:
                return decompress_into(codec, records, self._buffer.data[self.size : self.size + room])
            except TargetTooSmall:
                if room == BATCH_BYTES_MAX:
                    raise DecompressedTooLarge(BATCH_BYTES_MAX) from None
            self._reserve(min(2 * room + 4096, BATCH_BYTES_MAX))

    def _reserve(self, room: int) -> None:
        needed = self.size + room
        if needed <= len(self._buffer):
            return
        if needed > RECORDS_BYTES_MAX:
            raise BatchTooLarge(f"{needed} bytes of records in one call; Arrow's offsets have 32 bits")
        larger = empty(min(max(2 * len(self._buffer), needed), RECORDS_BYTES_MAX), np.uint8)
        larger[: self.size] = self.data
        self._buffer = larger

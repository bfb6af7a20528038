"""Errors of the byte formats.

WireError
├── CorruptBatch                    the bytes are not a batch, or changed after the producer wrote them
├── InvalidBatch                    the batch violates the format
│   ├── MalformedVarint             a varint is truncated or too long
│   └── DecompressionFailed         the codec rejects the bytes
│       └── DecompressedTooLarge    the records decompress to more bytes than the limit
└── TargetTooSmall                  the buffer of the caller is too small
"""


class WireError(Exception):
    pass


class CorruptBatch(WireError):
    """The bytes are not a batch, or the checksum does not match. Brokers answer with CORRUPT_MESSAGE."""


class InvalidBatch(WireError):
    """The batch violates the format. Brokers answer with INVALID_RECORD."""


class MalformedVarint(InvalidBatch):
    """The varint is truncated, or longer than its type allows."""


class DecompressionFailed(InvalidBatch):
    """The bytes do not match the codec in the batch's attributes."""


class DecompressedTooLarge(DecompressionFailed):
    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"the records decompress to more than {limit_bytes} bytes")


class TargetTooSmall(WireError):
    """The first `written` bytes of the buffer contain the beginning of the data."""

    def __init__(self, written: int, needed: int | None = None) -> None:
        super().__init__(f"the records decompress to more than {written} bytes")
        self.written = written
        self.needed = needed
        """The size that suffices, if the format states it."""

"""Kafka's primitive types in journal records of groups, also in flexible versions (KIP-482)."""

import struct

from headgate.wire.errors import MalformedVarint
from headgate.wire.varint import VARINT_BYTES_MAX, read_unsigned_varint


class Malformed(ValueError):
    """The bytes are not a valid record."""


class Reader:
    """Reads primitive values from `data` in order. Raises `Malformed`."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        self.is_flexible = False

    def int16(self) -> int:
        return int.from_bytes(self._take(2), signed=True)

    def int32(self) -> int:
        return int.from_bytes(self._take(4), signed=True)

    def int64(self) -> int:
        return int.from_bytes(self._take(8), signed=True)

    def nullable_string(self) -> str | None:
        length = self._unsigned_varint() - 1 if self.is_flexible else self.int16()
        if length < 0:
            return None
        try:
            return self._take(length).decode("utf-8")
        except UnicodeDecodeError as error:
            raise Malformed(f"a string is not UTF-8: {error}") from error

    def string(self) -> str:
        value = self.nullable_string()
        if value is None:
            raise Malformed("a required string is null")
        return value

    def byte_string(self) -> bytes:
        return self._take(self.array_length())

    def array_length(self) -> int:
        length = self._unsigned_varint() - 1 if self.is_flexible else self.int32()
        if not 0 <= length <= len(self._data) - self._position:
            raise Malformed(f"the length is {length}, but {len(self._data) - self._position} bytes are left")
        return length

    def skip_tagged_fields(self) -> None:
        if self.is_flexible:
            for _ in range(self._unsigned_varint()):
                self._unsigned_varint()
                self._take(self._unsigned_varint())

    def _unsigned_varint(self) -> int:
        try:
            value, self._position = read_unsigned_varint(self._data, self._position, VARINT_BYTES_MAX)
        except MalformedVarint as error:
            raise Malformed(str(error)) from error
        return value

    def _take(self, length: int) -> bytes:
        end = self._position + length
        if end > len(self._data):
            raise Malformed(f"{length} bytes are needed, but {len(self._data) - self._position} are left")
        taken = self._data[self._position : end]
        self._position = end
        return taken


def write_string(value: str | None) -> bytes:
    if value is None:
        return struct.pack(">h", -1)
    data = value.encode("utf-8")
    return struct.pack(">h", len(data)) + data


def write_bytes(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value

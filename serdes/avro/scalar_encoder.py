"""Encodes Avro's scalars: primitives, fixed, enums and logical types.

Each writer takes the buffer, the value and the depth. Only containers use the depth.
"""

import struct
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from headgate.serdes.avro.binary import write_long
from headgate.serdes.avro.decoder import DEPTH_MAX
from headgate.serdes.avro.logical import reader_of, writer_of
from headgate.serdes.avro.schema import Enum, Logical
from headgate.serdes.errors import EncodeError

_INTEGER_BITS: Final = {"int": 32, "long": 64}
_FLOATING: Final = {"float": struct.Struct("<f"), "double": struct.Struct("<d")}


class Buffer(bytearray):
    """The encoded bytes, and the limits that one value has used so far."""

    attempts = 0
    zero_size_items = 0


Write: TypeAlias = Callable[[Buffer, Any, int], None]


class WrongKind(EncodeError):
    """The value has a different type. For a union with several branches, this error is not specific."""


def wrong(value: object, wanted: str) -> EncodeError:
    return WrongKind(f"{value!r:.60} ({type(value).__name__}) is not a {wanted}")


def deeper(depth: int) -> int:
    """The depth inside a container. Raises EncodeError."""
    if depth >= DEPTH_MAX:
        raise EncodeError(f"nested more than {DEPTH_MAX} levels deep")
    return depth + 1


def _null(_: str) -> Write:
    def write(out: Buffer, value: Any, depth: int) -> None:
        if value is not None:
            raise wrong(value, "null")

    return write


def _boolean(_: str) -> Write:
    def write(out: Buffer, value: Any, depth: int) -> None:
        if value is not True and value is not False:
            raise wrong(value, "boolean")
        out.append(1 if value else 0)

    return write


def _integer(kind: str) -> Write:
    end = 1 << (_INTEGER_BITS[kind] - 1)

    def write(out: Buffer, value: Any, depth: int) -> None:
        if type(value) is not int and (not isinstance(value, int) or isinstance(value, bool)):
            raise wrong(value, kind)
        if -64 <= value < 64:
            out.append((value << 1) ^ (value >> 63))
        elif -end <= value < end:
            write_long(out, value)
        else:
            raise EncodeError(f"a number outside {_INTEGER_BITS[kind]} bits")

    return write


def _floating(kind: str) -> Write:
    pack = _FLOATING[kind].pack

    def write(out: Buffer, value: Any, depth: int) -> None:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise wrong(value, kind)
        try:
            out += pack(value)
        except (OverflowError, struct.error):
            raise EncodeError(f"a number too large for a {kind}") from None

    return write


def _bytes(_: str) -> Write:
    def write(out: Buffer, value: Any, depth: int) -> None:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise wrong(value, "bytes")
        view = bytes(value)
        write_long(out, len(view))
        out += view

    return write


def _string(_: str) -> Write:
    def write(out: Buffer, value: Any, depth: int) -> None:
        if not isinstance(value, str):
            raise wrong(value, "string")
        write_string(out, value)

    return write


def write_string(out: bytearray, value: str) -> None:
    try:
        encoded = value.encode()
    except UnicodeEncodeError:
        raise EncodeError("an unpaired surrogate, which UTF-8 cannot encode") from None
    write_long(out, len(encoded))
    out += encoded


_PRIMITIVES: dict[str, Callable[[str], Write]] = {
    "null": _null,
    "boolean": _boolean,
    "int": _integer,
    "long": _integer,
    "float": _floating,
    "double": _floating,
    "bytes": _bytes,
    "string": _string,
}


def converted_writer(write: Write, logical: Logical | None, kind: str, size: int = 0) -> Write:
    if logical is None:
        return write
    convert, check = writer_of(logical, kind, size), reader_of(logical)

    def converted(out: Buffer, value: Any, depth: int) -> None:
        start = len(out)
        try:
            raw = convert(value)
        except (ValueError, OverflowError) as error:
            raise EncodeError(str(error)) from None
        write(out, raw, depth)
        if raw is value:
            # The value is the underlying value. It must still be one that a reader accepts.
            try:
                check(raw)
            except ValueError as error:
                del out[start:]
                raise EncodeError(str(error)) from None

    return converted


def fixed_writer(size: int) -> Write:
    def write(out: Buffer, value: Any, depth: int) -> None:
        if not isinstance(value, (bytes, bytearray, memoryview)) or len(bytes(value)) != size:
            raise wrong(value, f"fixed of {size} bytes")
        out += bytes(value)

    return write


def enum_writer(schema: Enum) -> Write:
    places = {symbol: index for index, symbol in enumerate(schema.symbols)}

    def write(out: Buffer, value: Any, depth: int) -> None:
        if not isinstance(value, str) or value not in places:
            raise wrong(value, f"symbol of {schema.name}")
        write_long(out, places[value])

    return write


def primitive_writer(kind: str) -> Write:
    return _PRIMITIVES[kind](kind)

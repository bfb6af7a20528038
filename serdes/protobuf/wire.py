"""Finds the reason why the protobuf library cannot parse some bytes. The library only reports a failure.

Parses the wire format ("Encoding" in the Protobuf documentation) with a descriptor.
"""

from typing import Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from headgate.serdes.avro.binary import Fault, corrupt, truncated
from headgate.serdes.outcome import Reason

DEPTH_MAX: Final = 100
"""Nested messages. Equal to the limit of the library."""

_VARINT, _FIXED_64, _LENGTH, _GROUP, _END_GROUP, _FIXED_32 = range(6)


def explain(descriptor: Descriptor, data: bytes) -> Fault:
    """The first error in the bytes. `CORRUPT` without a position if there is none."""
    try:
        _walk(descriptor, data, 0, len(data), 0)
    except Fault as fault:
        return fault
    return Fault(Reason.CORRUPT, "the Protobuf library cannot read the message")


def _walk(descriptor: Descriptor | None, data: bytes, pos: int, end: int, depth: int, group: int = 0) -> int:
    if depth > DEPTH_MAX:
        raise Fault(Reason.TOO_DEEP, f"nested more than {DEPTH_MAX} messages deep")
    fields = {} if descriptor is None else descriptor.fields_by_number
    while pos < end:
        start = pos
        tag, pos = _varint(data, pos, end)
        number, wire = tag >> 3, tag & 7
        if number == 0 or number >= 1 << 29:
            raise corrupt(f"field number {number}", start)
        field = fields.get(number)
        try:
            if wire == _VARINT:
                _, pos = _varint(data, pos, end)
            elif wire in (_FIXED_64, _FIXED_32):
                pos = _skip(data, pos, end, 8 if wire == _FIXED_64 else 4)
            elif wire == _LENGTH:
                length, pos = _varint(data, pos, end)
                after = _skip(data, pos, end, length)
                _inside(field, data, pos, after, depth)
                pos = after
            elif wire == _GROUP:
                pos = _walk(None if field is None else field.message_type, data, pos, end, depth + 1, number)
            elif wire == _END_GROUP and group == number:
                return pos
            else:
                raise corrupt(f"wire type {wire} that does not belong here", start)
        except Fault as fault:
            fault.path.append(f".{field.name if field is not None else number}")
            raise
    if group:
        raise truncated("a group", pos)
    return pos


def _inside(field: FieldDescriptor | None, data: bytes, start: int, end: int, depth: int) -> None:
    if field is None:
        return
    if field.message_type is not None:
        _walk(field.message_type, data, start, end, depth + 1)
    elif field.type == FieldDescriptor.TYPE_STRING:
        try:
            data[start:end].decode()
        except UnicodeDecodeError as error:
            raise corrupt(f"invalid UTF-8 ({error.reason})", start + error.start) from None


def _varint(data: bytes, pos: int, end: int) -> tuple[int, int]:
    value = 0
    for index in range(10):
        if pos + index >= end:
            raise truncated("a number", pos)
        byte = data[pos + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, pos + index + 1
    raise corrupt("a number of more than 64 bits", pos)


def _skip(data: bytes, pos: int, end: int, length: int) -> int:
    if length > end - pos:
        raise truncated(f"{length} bytes", pos)
    return pos + length

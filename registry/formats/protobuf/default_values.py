"""Default values of proto2 fields, in protoc's format."""

import contextlib
import math
import re
import struct
from typing import Final

from google.protobuf import descriptor_pb2

from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.protobuf.lexer import literal
from headgate.registry.formats.protobuf.symbols import View
from headgate.registry.formats.protobuf.syntax_tree import Number, Text, Value, Word

FieldProto = descriptor_pb2.FieldDescriptorProto
_SIGNED: Final = {
    FieldProto.TYPE_INT32: 32,
    FieldProto.TYPE_SINT32: 32,
    FieldProto.TYPE_SFIXED32: 32,
    FieldProto.TYPE_INT64: 64,
    FieldProto.TYPE_SINT64: 64,
    FieldProto.TYPE_SFIXED64: 64,
}
_UNSIGNED: Final = {
    FieldProto.TYPE_UINT32: 32,
    FieldProto.TYPE_FIXED32: 32,
    FieldProto.TYPE_UINT64: 64,
    FieldProto.TYPE_FIXED64: 64,
}
_C_ESCAPES: Final = {10: "\\n", 13: "\\r", 9: "\\t", 34: '\\"', 39: "\\'", 92: "\\\\"}


def default_value(field: FieldProto, value: Value, view: View, path: str) -> str:
    """The default in the format of a descriptor. Raises InvalidSchema if it does not match the type."""
    kind = field.type
    if kind in _SIGNED:
        bits = _SIGNED[kind]
        return str(_integer(value, -(1 << bits - 1), (1 << bits - 1) - 1, path))
    if kind in _UNSIGNED:
        return str(_integer(value, 0, (1 << _UNSIGNED[kind]) - 1, path))
    if kind in (FieldProto.TYPE_FLOAT, FieldProto.TYPE_DOUBLE):
        return _floating(_float(value, path), kind == FieldProto.TYPE_FLOAT)
    if kind == FieldProto.TYPE_BOOL and isinstance(value, Word) and value.text in ("true", "false"):
        return value.text
    if kind == FieldProto.TYPE_ENUM and isinstance(value, Word):
        enum = view.enum(field.type_name[1:])
        if enum is not None and any(constant.name == value.text for constant in enum.value):
            return value.text
        raise InvalidSchema(f"{value.text!r} is not a constant of {field.type_name}", path)
    if kind == FieldProto.TYPE_BYTES and isinstance(value, Text):
        return escape_bytes(value.data)
    if kind == FieldProto.TYPE_STRING and isinstance(value, Text):
        try:
            return value.data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidSchema("The default of a string is not UTF-8", path) from error
    raise InvalidSchema("The default value does not fit the type of the field", path)


def default_literal(field: FieldProto) -> Value:
    """The inverse: the source text of a default in a descriptor."""
    text = field.default_value
    if field.type == FieldProto.TYPE_STRING:
        return Text(text.encode())
    if field.type == FieldProto.TYPE_BYTES:
        return Text(literal(f'"{text}"', lambda: field.name))
    if field.type in (FieldProto.TYPE_ENUM, FieldProto.TYPE_BOOL):
        return Word(text)
    return number_literal(text)


def number_literal(text: str) -> Value:
    return Word(text) if re.fullmatch(r"-?(inf|nan)", text) else Number(text)


def escape_bytes(data: bytes) -> str:
    """C escapes: printable ASCII stays, other bytes become octal."""
    return "".join(_C_ESCAPES.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in data)


def number_of(text: str) -> int | None:
    """The value of an integer token (decimal, 0x hexadecimal or 0 octal), or None."""
    negative, digits = text.startswith("-"), text.lstrip("-")
    try:
        octal = len(digits) > 1 and digits[0] == "0" and digits[1] not in "xX"
        number = int(digits, 8 if octal else 0)
    except ValueError:
        return None
    return -number if negative else number


def _integer(value: Value, lowest: int, highest: int, path: str) -> int:
    number = number_of(value.text) if isinstance(value, Number) else None
    if number is None:
        raise InvalidSchema("The default of an integer field must be an integer", path)
    if not lowest <= number <= highest:
        raise InvalidSchema(f"The default {number} is not between {lowest} and {highest}", path)
    return number


def _float(value: Value, path: str) -> float:
    if isinstance(value, Word) and value.text in ("inf", "-inf", "nan", "-nan"):
        return float(value.text.replace("-nan", "nan"))
    if isinstance(value, Number):
        number = number_of(value.text)
        if number is not None:
            return float(number) if abs(number) < 1 << 1024 - 54 else math.copysign(math.inf, number)
        with contextlib.suppress(ValueError):
            return float(value.text.rstrip("fF"))
    raise InvalidSchema("The default of a float field must be a number, inf or nan", path)


def _floating(number: float, single: bool) -> str:
    if math.isnan(number):
        return "nan"
    if not single:
        short = f"{number:.15g}"
        return short if float(short) == number or math.isinf(number) else f"{number:.17g}"
    rounded = _single(number)
    if math.isinf(rounded):
        return "inf" if rounded > 0 else "-inf"
    short = f"{rounded:.6g}"
    return short if _single(float(short)) == rounded else f"{rounded:.9g}"


def _single(number: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)

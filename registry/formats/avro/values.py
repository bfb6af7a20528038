"""Checks default values against their Avro type, and the attributes of decimals."""

import math
from typing import Any

from headgate.registry.formats.avro.types import Array, AvroType, Enum, Fixed, Map, Primitive, Properties, Record, Union
from headgate.registry.formats.json_text import brief


def decimal_problem(kind: str, size: int, properties: Properties) -> str:
    """The error in the attributes of a decimal, or ""."""
    precision, scale = properties.get("precision"), properties.get("scale", 0)
    if kind not in ("bytes", "fixed"):
        return f"Logical type decimal must be backed by fixed or bytes, not {kind}"
    if not isinstance(precision, int) or isinstance(precision, bool) or precision <= 0:
        return f"Invalid decimal precision: {brief(precision)} (must be positive)"
    if not isinstance(scale, int) or isinstance(scale, bool) or scale < 0:
        return f"Invalid decimal scale: {brief(scale)} (must not be negative)"
    if scale > precision:
        return f"Invalid decimal scale: {scale} (greater than precision: {precision})"
    if kind == "fixed":
        digits = math.floor(math.log10(2) * (8 * size - 1)) if size else 0
        if precision > digits:
            return f"fixed({size}) cannot store {precision} digits (max {digits})"
    return ""


def fits(avro_type: AvroType, value: Any) -> bool:
    """Whether `value` is a valid default of `avro_type`. For a union: of any branch (Avro 1.12)."""
    match avro_type:
        case Primitive(kind=kind):
            return _fits_primitive(kind, value)
        case Enum():
            return isinstance(value, str) and value in avro_type.symbols
        case Fixed():
            return isinstance(value, str) and len(value) == avro_type.size and _is_bytes(value)
        case Array():
            return isinstance(value, list) and all(fits(avro_type.items, item) for item in value)
        case Map():
            return isinstance(value, dict) and all(fits(avro_type.values, item) for item in value.values())
        case Union():
            return any(fits(branch, value) for branch in avro_type.branches)
        case Record():
            return isinstance(value, dict) and all(
                fits(field.type, value[field.name]) if field.name in value else field.has_default
                for field in avro_type.fields
            )


def _fits_primitive(kind: str, value: Any) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    match kind:
        case "null":
            return value is None
        case "int":
            return isinstance(value, int) and -(2**31) <= value < 2**31
        case "long":
            return isinstance(value, int) and -(2**63) <= value < 2**63
        case "float" | "double":
            return isinstance(value, int | float)
        case "string":
            return isinstance(value, str)
        case "bytes":
            return isinstance(value, str) and _is_bytes(value)
    return False


def _is_bytes(value: str) -> bool:
    return all(ord(character) < 256 for character in value)

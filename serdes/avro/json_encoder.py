"""Encodes values to Avro's JSON encoding: compiles a schema into closures. `serdes.avro.json_encoding` has the rules.

The binary encoder decides which values a type accepts and which union branch is used, so that both agree.
"""

import math
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from headgate.serdes.avro.binary import read_long
from headgate.serdes.avro.defaults import missing_value
from headgate.serdes.avro.encoder import Encoder
from headgate.serdes.avro.json_compiler import Convert, JsonCompiler
from headgate.serdes.avro.logical import writer_of
from headgate.serdes.avro.scalar_encoder import deeper, wrong
from headgate.serdes.avro.schema import (
    Enum,
    Field,
    Fixed,
    Primitive,
    Union,
    type_name,
    unqualified,
)
from headgate.serdes.errors import EncodeError


class ToJson(JsonCompiler):
    def _scalar(self, schema: Primitive | Fixed | Enum) -> Convert:
        return _scalar(schema)

    def _union(self, schema: Union, branches: list[Convert]) -> Convert:
        return _union(schema, branches)

    def _fields(self, name: str, steps: list[tuple[Field, Convert]]) -> Convert:
        return _record(name, steps)


def _scalar(schema: Primitive | Fixed | Enum) -> Convert:
    if isinstance(schema, Primitive) and schema.kind == "float" and schema.logical is None:
        return _float(Encoder(schema))
    check = Encoder(schema)
    raw: Callable[[Any], Any] | None = None
    if isinstance(schema, Primitive) and schema.logical is not None:
        raw = writer_of(schema.logical, schema.kind)
    elif isinstance(schema, Fixed) and schema.logical is not None:
        raw = writer_of(schema.logical, "fixed", schema.size)

    def convert(value: Any, depth: int) -> Any:
        check.encode(value)
        if raw is not None:
            value = raw(value)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value).decode("latin-1")
        if isinstance(value, float) and not math.isfinite(value):
            return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
        return int(value) if isinstance(value, int) and not isinstance(value, bool) else value

    return convert


def _float(check: Encoder) -> Convert:
    def convert(value: Any, depth: int) -> Any:
        encoded = check.encode(value)
        number: float = _FLOAT.unpack(encoded)[0]
        if not math.isfinite(number):
            return "NaN" if math.isnan(number) else ("Infinity" if number > 0 else "-Infinity")
        return _shortest(number, encoded)

    return convert


def _shortest(number: float, encoded: bytes) -> float:
    """The double with the shortest text that reads back as the same 32-bit float: 1.1, not 1.100000023841858."""
    if number.is_integer() and abs(number) < _EXACT_WHOLE:
        return number
    # Six digits survive a float, unless it is subnormal. Nine digits always identify it.
    for digits in range(6 if abs(number) >= _NORMAL_MIN else 1, 9):
        shorter = float(f"{number:.{digits}g}")
        try:
            if _FLOAT.pack(shorter) == encoded:
                return shorter
        except OverflowError:
            continue  # rounded up beyond the largest float
    return float(f"{number:.9g}")


_FLOAT: Final = struct.Struct("<f")
_NORMAL_MIN: Final = 2.0**-126
_EXACT_WHOLE: Final = 10.0**6


def _union(schema: Union, converters: list[Convert]) -> Convert:
    chooser = Encoder(schema)
    names = [type_name(branch) for branch in schema.branches]
    places = {unqualified(name): index for index, name in enumerate(names)} | {
        name: index for index, name in enumerate(names)
    }
    null = names.index("null") if "null" in names else None
    # The common case [null, X] needs no search.
    only = next(iter({0, 1} - {null})) if len(names) == 2 and null is not None else None

    def convert(value: Any, depth: int) -> Any:
        if value is None and null is not None:
            return None
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and value[0] in places:
            index, value = places[value[0]], value[1]
        elif only is not None:
            index = only
        else:
            index = read_long(chooser.encode(value), 0)[0]
        try:
            return {names[index]: converters[index](value, depth)}
        except EncodeError as error:
            error.path.append(f".{names[index]}")
            raise

    return convert


def _record(name: str, steps: list[tuple[Field, Convert]]) -> Convert:
    def convert(value: Any, depth: int) -> Any:
        if not isinstance(value, Mapping):
            raise wrong(value, f"record {name}")
        depth = deeper(depth)
        out: dict[str, Any] = {}
        for field, step in steps:
            try:
                out[field.name] = step(value[field.name] if field.name in value else missing_value(field), depth)
            except EncodeError as error:
                error.path.append(f".{field.name}")
                raise
        return out

    return convert

"""Convert database values to Spark types. SQLite stores any value, regardless of the column type."""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}


def spark_row(row: Sequence[object], schema: "StructType") -> tuple[tuple[object, ...] | None, str | None]:
    """The converted row, or the reason why it cannot be converted."""
    values = []
    for value, field in zip(row, schema.fields, strict=True):
        try:
            values.append(None if value is None else _value(value, field.dataType))
        except (ValueError, TypeError, ArithmeticError) as error:
            return None, f"{field.name}: {str(value)[:100]!r} is not {field.dataType.simpleString()} ({error})"
    return tuple(values), None


def _value(value: object, kind: "DataType") -> object:
    name = kind.typeName()
    if name in _BITS:
        return _whole(value, _BITS[name])
    if name == "decimal":
        return _exact(value, kind)
    read = _READ.get(name)
    if read is None:
        raise ValueError("a database value cannot be converted to this type")
    return read(value)


def _whole(value: object, bits: int) -> int:
    if isinstance(value, float) and not value.is_integer():
        raise ValueError("it has a fraction")
    number = int(value)  # type: ignore[call-overload]  # other values raise, as intended
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise ValueError(f"it exceeds {bits} bits")
    return int(number)


def _exact(value: object, kind: Any) -> Decimal:
    try:
        number = Decimal(str(value)).quantize(Decimal(1).scaleb(-kind.scale))
    except InvalidOperation:
        raise ValueError("it is not a number, or has too many digits") from None
    if not number.is_finite() or len(number.as_tuple().digits) > kind.precision:
        raise ValueError("it has too many digits")
    return number


def _text(value: object) -> str:
    if isinstance(value, (bytes, memoryview)):
        return bytes(value).decode("utf-8")
    return str(value)


def _bytes(value: object) -> bytes:
    if isinstance(value, str):
        return value.encode()
    return bytes(value)  # type: ignore[call-overload,no-any-return]  # as above


def _boolean(value: object) -> bool:
    known = {"1": True, "t": True, "true": True, "0": False, "f": False, "false": False}
    text = str(value).lower()
    if text not in known:
        raise ValueError("it is neither true nor false")
    return known[text]


def _time(value: object) -> datetime:
    if isinstance(value, datetime):
        return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    if isinstance(value, (int, float)):
        return datetime.fromtimestamp(value, UTC)
    read = datetime.fromisoformat(str(value))
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)


def _local_time(value: object) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(str(value))


def _date(value: object) -> date:
    if isinstance(value, datetime):
        return value.date()
    return value if isinstance(value, date) else date.fromisoformat(str(value))


def _float(value: object) -> float:
    return float(value)  # type: ignore[arg-type]  # as above


_READ: dict[str, Callable[[object], object]] = {
    "string": _text,
    "binary": _bytes,
    "boolean": _boolean,
    "float": _float,
    "double": _float,
    "timestamp": _time,
    "timestamp_ntz": _local_time,
    "date": _date,
}

"""Config values: types, parsing, validation and formatting.

The rules and error messages are those of Kafka's ConfigDef, because tools show them. Text is trimmed, booleans ignore
case, numbers have the ranges of Java, lists are split at commas.
"""

import enum
import re
from collections.abc import Callable
from decimal import Decimal
from typing import TypeAlias

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None
Check: TypeAlias = Callable[[str, Value], None]
"""Takes the name and value of a config. Raises InvalidConfig if the value is invalid."""


class InvalidConfig(Exception):
    """An invalid config name or value. The client gets the message."""

    @classmethod
    def of(cls, name: str, value: object, reason: str) -> "InvalidConfig":
        return cls(f"Invalid value {value} for configuration {name}: {reason}")


class ConfigType(enum.IntEnum):
    """Config types, with the numbers of the DescribeConfigs response."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7


INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

VALUE_LENGTH_MAX = 8_191
"""In characters. Responses contain the value, and old versions limit a string to 32,767 bytes. UTF-8 needs up to four
bytes per character."""

_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}
# The number of digits is limited, so that rejecting a malicious value is cheap.
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,40}\Z")
_FRACTION = re.compile(r"[+-]?(?:[0-9]{1,400}\.?[0-9]{0,400}|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?[dDfF]?\Z")


def parse(name: str, config_type: ConfigType, text: str) -> Value:
    """Parse a value. Raises InvalidConfig."""
    if len(text) > VALUE_LENGTH_MAX:
        raise InvalidConfig(f"The value of configuration {name} is longer than {VALUE_LENGTH_MAX} characters")
    trimmed = text.strip()
    if config_type is ConfigType.BOOLEAN:
        lowered = trimmed.lower()
        if lowered not in ("true", "false"):
            raise InvalidConfig.of(name, text, "Expected value to be either true or false")
        return lowered == "true"
    if config_type in _BITS:
        bits = _BITS[config_type]
        number = int(trimmed) if _WHOLE_NUMBER.match(trimmed) else None
        if number is None or not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
            raise InvalidConfig.of(name, text, f"Not a number of type {config_type.name}")
        return number
    if config_type is ConfigType.DOUBLE:
        if not _FRACTION.match(trimmed):
            raise InvalidConfig.of(name, text, "Not a number of type DOUBLE")
        return float(trimmed.rstrip("dDfF"))
    if config_type is ConfigType.LIST:
        return tuple(item.strip() for item in trimmed.split(",")) if trimmed else ()
    return trimmed


def text_of(value: Value) -> str | None:
    """Format a value as in the DescribeConfigs response."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _java_double(value)
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)


def _java_double(value: float) -> str:
    """Java's Double.toString: scientific notation outside of 10^-3 to 10^7, and at least one digit after the point."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    number = Decimal(repr(value)).normalize()
    parts = number.as_tuple()
    digits = "".join(map(str, parts.digits))
    return f"{'-' * parts.sign}{digits[0]}.{digits[1:] or '0'}E{number.adjusted()}"


def at_least(minimum: int) -> Check:
    def check(name: str, value: Value) -> None:
        if isinstance(value, (int, float)) and value < minimum:
            raise InvalidConfig.of(name, value, f"Value must be at least {minimum}")

    return check


def between(minimum: int, maximum: int) -> Check:
    lower = at_least(minimum)

    def check(name: str, value: Value) -> None:
        lower(name, value)
        if isinstance(value, (int, float)) and value > maximum:
            raise InvalidConfig.of(name, value, f"Value must be no more than {maximum}")

    return check


def between_or(minimum: int, maximum: int, special: int) -> Check:
    def check(name: str, value: Value) -> None:
        if isinstance(value, int) and value != special and not minimum <= value <= maximum:
            raise InvalidConfig.of(name, value, f"Value must be between {minimum} and {maximum} or equal to {special}")

    return check


def one_of(*allowed: str) -> Check:
    def check(name: str, value: Value) -> None:
        if value not in allowed:
            raise InvalidConfig.of(name, value, f"String must be one of: {', '.join(allowed)}")

    return check


def each_of(*allowed: str) -> Check:
    each = one_of(*allowed)

    def check(name: str, value: Value) -> None:
        items = value if isinstance(value, tuple) else ()
        if "" in items:
            raise InvalidConfig(f"Configuration '{name}' values must not be empty.")
        for item in items:
            each(name, item)

    return check


def endpoints(name: str, value: Value) -> None:
    """Addresses of the form NAME://host:port. IPv6 addresses are in brackets."""
    for item in value if isinstance(value, tuple) else ():
        if not re.fullmatch(r"[A-Za-z_]+://(\[[0-9a-fA-F:.]+\]|[^:/\[\]\s]*):[0-9]{1,5}", item):
            raise InvalidConfig(f"Error creating broker listeners from '{item}': Unable to parse it to an endpoint")
        if int(item.rpartition(":")[2]) > 65_535:
            raise InvalidConfig.of(name, item, "The port is larger than 65535")


def throttled_replicas(name: str, value: Value) -> None:
    items = value if isinstance(value, tuple) else ()
    # As in Kafka, empty items are allowed: APPEND with an empty value creates one.
    if items != ("*",) and not all(re.fullmatch(r"([0-9]+:[0-9]+)?", item) for item in items):
        shown = f"[{', '.join(items)}]"
        form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        raise InvalidConfig.of(
            name, shown, f"{name} must be the literal '*' or a list of replicas in the following format: {form}"
        )

"""Decodes Avro's scalars: primitives, fixed, enums and logical types.

Each reader takes the bytes, the position and the state, and returns the value and the next position.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from headgate.serdes.avro.binary import READERS, Fault, corrupt, long_to_float, read_long, truncated
from headgate.serdes.avro.logical import reader_of
from headgate.serdes.avro.resolution import EnumPlan, ScalarPlan
from headgate.serdes.avro.schema import Logical
from headgate.serdes.outcome import Reason


class State:
    """The limits that one body has used so far."""

    __slots__ = ("bytes_left", "depth", "zero_size_items")

    def __init__(self, bytes_left: int) -> None:
        self.depth = 0
        self.zero_size_items = 0
        self.bytes_left = bytes_left

    def use(self, size: int) -> None:
        """Raises Fault if the value is too large as columns."""
        self.bytes_left -= size
        if self.bytes_left < 0:
            raise too_large()


Read: TypeAlias = Callable[[bytes, int, State], tuple[Any, int]]


def unresolvable_reader(detail: str) -> Read:
    def read(data: bytes, pos: int, state: State) -> tuple[Any, int]:
        raise Fault(Reason.UNRESOLVABLE, detail)

    return read


def tagged_reader(name: str, read: Read) -> Read:
    def tagged(data: bytes, pos: int, state: State) -> tuple[Any, int]:
        value, end = read(data, pos, state)
        return (name, value), end

    return tagged


def scalar_reader(plan: ScalarPlan) -> Read:
    read: Read
    if plan.writer == plan.reader or (plan.writer, plan.reader) in (("int", "long"), ("float", "double")):
        read = READERS[plan.writer]
    elif {plan.writer, plan.reader} == {"bytes", "string"}:
        read = READERS[plan.reader]
    else:
        number = READERS[plan.writer]
        convert: Callable[[Any], float] = long_to_float if plan.reader == "float" else float

        def read(data: bytes, pos: int, state: State) -> tuple[Any, int]:
            value, end = number(data, pos, state)
            return convert(value), end

    return converted_reader(read, plan.logical)


def converted_reader(read: Read, logical: Logical | None) -> Read:
    if logical is None:
        return read
    convert = reader_of(logical)

    def converted(data: bytes, pos: int, state: State) -> tuple[Any, int]:
        value, end = read(data, pos, state)
        try:
            return convert(value), end
        except ValueError as error:
            raise Fault(Reason.INVALID_VALUE, f"{error} at {pos}") from None

    return converted


def fixed_reader(size: int) -> Read:
    def read(data: bytes, pos: int, state: State) -> tuple[Any, int]:
        end = pos + size
        if end > len(data):
            raise truncated(f"{size} bytes", pos)
        return data[pos:end], end

    return read


def enum_reader(plan: EnumPlan) -> Read:
    symbols = [None if target is None else plan.reader.symbols[target] for target in plan.targets]
    count = len(symbols)

    def read(data: bytes, pos: int, state: State) -> tuple[Any, int]:
        index, end = read_long(data, pos)
        if not 0 <= index < count:
            raise corrupt(f"enum symbol {index} of {count}", pos)
        symbol = symbols[index]
        if symbol is None:
            raise Fault(Reason.UNRESOLVABLE, f"the reader has no symbol {plan.writer.symbols[index]!r:.200}")
        return symbol, end

    return read


def enum_skipper(count: int) -> Read:
    def skip(data: bytes, pos: int, state: State) -> tuple[Any, int]:
        index, end = read_long(data, pos)
        if not 0 <= index < count:
            raise corrupt(f"enum symbol {index} of {count}", pos)
        return None, end

    return skip


def counted_reader(read: Read, size: int | None) -> Read:
    """Count a text: of a fixed size, of its encoded length (None), or of its symbol (0)."""

    def counted(data: bytes, pos: int, state: State) -> tuple[Any, int]:
        value, end = read(data, pos, state)
        state.use(size or (read_long(data, pos)[0] if size is None else len(value.encode())))
        return value, end

    return counted


def too_large() -> Fault:
    return Fault(Reason.TOO_LARGE, "too large as columns")

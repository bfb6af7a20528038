"""Decodes one Avro body at a time: compiles a resolved plan into closures.

The order of errors is that of `docs/wire-format.md`: the first error in the writer's order, trailing bytes last. The
columnar decoder must have the same results: tests use this decoder as the reference.
"""

from collections.abc import Callable
from typing import Any, Final

from headgate.serdes.avro.binary import READERS, Fault, corrupt, read_long, read_string, skip_bytes, truncated
from headgate.serdes.avro.column_size import (
    COLUMNS_MEASURED_MAX,
    DEFAULT_LIMITS,
    UUID_CHARS,
    ColumnLimits,
    default_bytes,
    entry_size,
    is_text,
    item_bytes,
)
from headgate.serdes.avro.defaults import default_value
from headgate.serdes.avro.resolution import (
    ArrayPlan,
    EnumPlan,
    FixedPlan,
    IntoUnion,
    MapPlan,
    Plan,
    RecordPlan,
    ScalarPlan,
    UnionPlan,
    Unresolvable,
    resolve,
)
from headgate.serdes.avro.scalar_decoder import (
    Read,
    State,
    converted_reader,
    counted_reader,
    enum_reader,
    enum_skipper,
    fixed_reader,
    scalar_reader,
    tagged_reader,
    too_large,
    unresolvable_reader,
)
from headgate.serdes.avro.schema import Array, Enum, Fixed, Map, Primitive, Record, Schema, Union, is_zero_size
from headgate.serdes.outcome import Poison, Reason

DEPTH_MAX: Final = 100
"""Nested records, arrays and maps of the writer. Equal to Protobuf's default. Limits the stack of all decoders."""

ZERO_SIZE_ITEMS_MAX: Final = 4096
"""Array items of zero bytes in one body. The bytes do not limit their count, and each item uses memory."""


class Decoder:
    """Decodes bodies of one writer schema to values of one reader schema. Immutable, so that threads can share it."""

    __slots__ = ("_bytes_left", "_counted", "_uncounted", "_uncounted_bytes_max", "plan")

    def __init__(
        self,
        writer: Schema,
        reader: Schema | None = None,
        *,
        tag_unions: bool = False,
        columns: ColumnLimits = DEFAULT_LIMITS,
    ) -> None:
        """`tag_unions` returns a non-null union value as `(branch name, value)`, which the encoder accepts.

        A value that is too large as columns is TOO_LARGE, as in the columnar decoder.
        """
        read_as = writer if reader is None else reader
        self.plan = resolve(writer, read_as)
        self._bytes_left = columns.row_bytes_max - item_bytes(read_as, columns.recursion_max)
        counting = _Compiler(tag_unions, columns)
        self._counted = counting.compile(self.plan)
        self._uncounted, self._uncounted_bytes_max = self._counted, -1
        if reader is None and self._bytes_left >= 0:
            # Defaults of a reader schema take no byte of the body, so only bodies of the writer schema have a bound.
            self._uncounted = _Compiler(tag_unions, None).compile(self.plan)
            self._uncounted_bytes_max = counting.harmless_body_bytes(self._bytes_left)

    def decode(self, body: bytes) -> object | Poison:
        """The value, or the poison. Never raises."""
        try:
            if isinstance(self.plan, Unresolvable):
                raise Fault(Reason.UNRESOLVABLE, self.plan.detail)
            if self._bytes_left < 0:
                raise too_large()
            read = self._uncounted if len(body) <= self._uncounted_bytes_max else self._counted
            value, end = read(body, 0, State(self._bytes_left))
        except Fault as fault:
            return Poison(fault.reason, fault.describe(), body)
        except RecursionError:
            return Poison(Reason.TOO_DEEP, "nested deeper than the caller's stack allows", body)
        if end != len(body):
            return Poison(Reason.TRAILING_BYTES, f"{len(body) - end} bytes left over at {end}", body)
        return value  # type: ignore[no-any-return]  # the closures return any value of the schema


class _Compiler:
    """Records are compiled from a work list, because chains of named types can exceed the stack."""

    def __init__(self, tag_unions: bool, columns: ColumnLimits | None) -> None:
        self._tag_unions = tag_unions
        self._columns = columns
        self._records: dict[object, Read] = {}
        self._work: list[Callable[[], None]] = []
        self._entry_bytes_max = 0
        self._text_bytes_max = -(-UUID_CHARS // 16)
        """The largest text of one byte of the body: an enum symbol, or a part of a uuid."""
        self._columns_measured = 0

    def compile(self, plan: Plan) -> Read:
        read = self._reader(plan)
        while self._work:
            self._work.pop()()
        return read

    def _reader(self, plan: Plan) -> Read:
        if isinstance(plan, ScalarPlan):
            return self._text(Primitive(plan.reader, plan.logical), scalar_reader(plan))
        if isinstance(plan, FixedPlan):
            return self._text(
                Fixed("", plan.size, (), plan.logical), converted_reader(fixed_reader(plan.size), plan.logical)
            )
        if isinstance(plan, EnumPlan):
            return self._text(plan.reader, enum_reader(plan))
        if isinstance(plan, ArrayPlan):
            return _array(self._reader(plan.items), plan.zero_size, self._entry_bytes(plan.reader))
        if isinstance(plan, MapPlan):
            return _map(self._reader(plan.values), self._key(), self._entry_bytes(plan.reader))
        if isinstance(plan, UnionPlan):
            return _union([self._reader(branch) for branch in plan.branches])
        if isinstance(plan, IntoUnion):
            read = self._reader(plan.plan)
            return tagged_reader(plan.name, read) if self._tag_unions and plan.name != "null" else read
        if isinstance(plan, RecordPlan) and plan.error is None:
            return self._record(plan)
        return unresolvable_reader(plan.detail if isinstance(plan, Unresolvable) else str(plan.error))

    def harmless_body_bytes(self, bytes_left: int) -> int:
        """The length up to which no body can use `bytes_left`.

        An item takes a byte, or counts towards ZERO_SIZE_ITEMS_MAX. Each open array can promise as many items as bytes
        are left.
        """
        for_bytes = bytes_left - ZERO_SIZE_ITEMS_MAX * self._entry_bytes_max
        return for_bytes // ((DEPTH_MAX + 1) * self._entry_bytes_max + self._text_bytes_max)

    def _entry_bytes(self, reader: Array | Map) -> int:
        if self._columns is None or self._columns_measured > COLUMNS_MEASURED_MAX:
            return 0
        size, columns = entry_size(reader, self._columns.recursion_max)
        self._columns_measured += columns
        self._entry_bytes_max = max(self._entry_bytes_max, size)
        return size

    def _text(self, reader: Primitive | Fixed | Enum, read: Read) -> Read:
        if self._columns is None or not is_text(reader):
            return read
        if isinstance(reader, Enum):
            self._text_bytes_max = max(self._text_bytes_max, *(len(symbol.encode()) for symbol in reader.symbols))
        if isinstance(reader, Primitive):
            return counted_reader(read, None)
        return counted_reader(read, UUID_CHARS if isinstance(reader, Fixed) else 0)

    def _key(self) -> Read:
        return read_string if self._columns is None else counted_reader(read_string, None)

    def _record(self, plan: RecordPlan) -> Read:
        if plan in self._records:
            return self._records[plan]
        steps: list[tuple[str | None, str, Read]] = []
        fields = plan.reader.fields
        constants: dict[str, Any] = dict.fromkeys(field.name for field in fields)
        makers: list[tuple[str, Callable[[], object]]] = []
        for index in plan.defaulted:
            field = fields[index]
            constants[field.name] = value = default_value(field.schema, field.default)
            if isinstance(value, (list, dict)):
                makers.append((field.name, _default_maker(field.schema, field.default)))
        size = 0
        if self._columns is not None:
            recursion_max = self._columns.recursion_max
            defaulted = [fields[index] for index in plan.defaulted]
            size = sum(default_bytes(field.schema, field.default, recursion_max) for field in defaulted)
        read = self._records[plan] = _record(steps, constants, makers, size)

        def fill() -> None:
            for step in plan.steps:
                if step.target is None or step.plan is None:
                    steps.append((None, step.name, self._skipper(step.writer)))
                else:
                    steps.append((fields[step.target].name, step.name, self._reader(step.plan)))

        self._work.append(fill)
        return read

    def _skipper(self, schema: Schema) -> Read:
        if isinstance(schema, Primitive):
            return skip_bytes if schema.kind in ("bytes", "string") else READERS[schema.kind]
        if isinstance(schema, Fixed):
            return fixed_reader(schema.size)
        if isinstance(schema, Enum):
            return enum_skipper(len(schema.symbols))
        if isinstance(schema, Array):
            return _array(self._skipper(schema.items), is_zero_size(schema.items), 0)
        if isinstance(schema, Map):
            return _map(self._skipper(schema.values), skip_bytes, 0)
        if isinstance(schema, Union):
            return _union([self._skipper(branch) for branch in schema.branches])
        return self._skip_record(schema)

    def _skip_record(self, schema: Record) -> Read:
        if schema in self._records:
            return self._records[schema]
        steps: list[tuple[str | None, str, Read]] = []
        read = self._records[schema] = _record(steps, {}, [], 0)

        def fill() -> None:
            steps.extend((None, field.name, self._skipper(field.schema)) for field in schema.fields)

        self._work.append(fill)
        return read


def _default_maker(schema: Schema, default: object) -> Callable[[], object]:
    return lambda: default_value(schema, default)


def _union(branches: list[Read]) -> Read:
    count = len(branches)

    def read(data: bytes, pos: int, state: State) -> tuple[Any, int]:
        index, end = read_long(data, pos)
        if not 0 <= index < count:
            raise corrupt(f"union branch {index} of {count}", pos)
        return branches[index](data, end, state)

    return read


def _too_deep() -> Fault:
    return Fault(Reason.TOO_DEEP, f"nested more than {DEPTH_MAX} levels deep")


def _record(
    steps: list[tuple[str | None, str, Read]],
    constants: dict[str, Any],
    makers: list[tuple[str, Callable[[], object]]],
    default_size: int,
) -> Read:
    def read(data: bytes, pos: int, state: State) -> tuple[Any, int]:
        if state.depth >= DEPTH_MAX:
            raise _too_deep()
        state.depth += 1
        out = constants.copy()
        name = ""
        try:
            for target, name, step in steps:  # noqa: B007  # the name is for the fault
                value, pos = step(data, pos, state)
                if target is not None:
                    out[target] = value
        except Fault as fault:
            fault.path.append(f".{name}")
            raise
        if default_size:
            state.use(default_size)
        for made, make in makers:
            out[made] = make()
        state.depth -= 1
        return out, pos

    return read


def _block(data: bytes, pos: int, state: State, zero_size: bool, size: int) -> tuple[int, int, int | None]:
    """The count of a block, the position of its items, and its end if it has a byte size.

    Count 0 ends the array or map. `size` is the size of an item as columns, or 0 without a limit.
    """
    count, at = read_long(data, pos)
    end = None
    if count < 0:
        count = -count
        block_size, at = read_long(data, at)
        if block_size < 0:
            raise corrupt(f"a block of {block_size} bytes", pos)
        if block_size > len(data) - at:
            raise truncated(f"a block of {block_size} bytes", pos)
        end = at + block_size
    if zero_size:
        state.zero_size_items += count
        if state.zero_size_items > ZERO_SIZE_ITEMS_MAX:
            raise Fault(Reason.INVALID_VALUE, f"more than {ZERO_SIZE_ITEMS_MAX} items of no bytes at {pos}")
    elif count > len(data) - at:
        raise truncated(f"a block of {count} items", pos)
    if size:
        state.use(count * size)
    return count, at, end


def _array(item: Read, zero_size: bool, size: int) -> Read:
    def read(data: bytes, pos: int, state: State) -> tuple[Any, int]:
        if state.depth >= DEPTH_MAX:
            raise _too_deep()
        state.depth += 1
        out: list[Any] = []
        append = out.append
        try:
            while True:
                count, pos, end = _block(data, pos, state, zero_size, size)
                if count == 0:
                    break
                for _ in range(count):
                    value, pos = item(data, pos, state)
                    append(value)
                if end is not None and pos != end:
                    raise corrupt("a block that does not end where it says", pos)
        except Fault as fault:
            fault.path.append(f"[{len(out)}]")
            raise
        state.depth -= 1
        return out, pos

    return read


def _map(item: Read, read_key: Read, size: int) -> Read:
    def read(data: bytes, pos: int, state: State) -> tuple[Any, int]:
        if state.depth >= DEPTH_MAX:
            raise _too_deep()
        state.depth += 1
        out: dict[Any, Any] = {}
        key = None
        try:
            while True:
                key = None
                count, pos, end = _block(data, pos, state, False, size)
                if count == 0:
                    break
                for _ in range(count):
                    key = None
                    key, pos = read_key(data, pos, state)
                    out[key], pos = item(data, pos, state)
                if end is not None and pos != end:
                    raise corrupt("a block that does not end where it says", pos)
        except Fault as fault:
            fault.path.append("{}" if key is None else f"[{key!r:.60}]")
            raise
        state.depth -= 1
        return out, pos

    return read

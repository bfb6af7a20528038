"""Compiles a resolved plan (`serdes.avro.resolution`) into a program for the kernel, for one reader layout.

The depth of a value is known here, so that the depth limit costs nothing at run time. `skipping` emits code for writer
fields that the reader does not have, `defaults` for reader fields that the writer does not have.
"""

from functools import partial
from typing import Final

from headgate.serdes.avro.column_size import entry_bytes
from headgate.serdes.avro.resolution import (
    ArrayPlan,
    EnumPlan,
    FixedPlan,
    IntoUnion,
    Plan,
    RecordPlan,
    ScalarPlan,
    UnionPlan,
    Unresolvable,
)
from headgate.serdes.avro.schema import Array, Logical, Map, Primitive, Schema, Union
from headgate.serdes.columnar.arrow_types import RANGES
from headgate.serdes.columnar.decode.defaults import write_default
from headgate.serdes.columnar.decode.program import Program
from headgate.serdes.columnar.decode.skipping import Skipper
from headgate.serdes.columnar.errors import SchemaTooLarge
from headgate.serdes.columnar.kernels import decode_opcodes as op
from headgate.serdes.columnar.kernels.primitives import DECIMAL_BOUND_BYTES
from headgate.serdes.columnar.layout import Cells, List, Node, Struct, Text, is_null, widened
from headgate.serdes.outcome import Reason

PROGRAM_WORDS_MAX: Final = 2_000_000
"""Words of code for one writer. Unions whose branches all match one reader record can double it with each level."""

DECIMAL_SMALL_PRECISION: Final = 18
"""Digits up to which 10^precision fits a signed 64-bit integer."""


def compile_plan(program: Program, plan: Plan, writer: Schema, reader: Schema) -> int:
    """Append the code for one writer. Returns its start. Raises `SchemaTooLarge`."""
    start = len(program.code)
    try:
        _Emitter(program).body(plan, writer, reader)
    except SchemaTooLarge:
        del program.code[start:]
        raise
    return start


class _Emitter:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._code = program.code
        self._skipper = Skipper(program)
        self._is_whole = False
        self._end = len(program.code) + PROGRAM_WORDS_MAX

    def body(self, plan: Plan, writer: Schema, reader: Schema) -> None:
        # Confluent's serializers write a schema of plain bytes without a length.
        self._is_whole = isinstance(writer, Primitive) and writer.kind == "bytes"
        self._value(plan, writer, reader, self._program.root, 0)
        self._code.append(op.END)
        self._skipper.finish()

    def _value(self, plan: Plan, writer: Schema, reader: Schema, node: Node | None, depth: int) -> None:
        """Read a value of `writer` into the column `node` of `reader`. `depth` is the number of enclosing levels."""
        if len(self._code) > self._end:
            raise SchemaTooLarge(f"the program for this writer's schema is longer than {PROGRAM_WORDS_MAX} words")
        if isinstance(plan, Unresolvable):
            self._code += [op.FAIL, Reason.UNRESOLVABLE]
        elif isinstance(plan, UnionPlan):
            assert isinstance(writer, Union)
            self._writer_union(plan, writer, reader, node, depth)
        elif isinstance(plan, IntoUnion):
            assert isinstance(reader, Union)
            self._into_union(plan, writer, reader, node, depth)
        elif node is None:
            self._skipper.beyond(writer, depth)
        elif isinstance(plan, ScalarPlan):
            self._scalar(plan, node)
        elif isinstance(plan, FixedPlan):
            self._fixed(plan, node)
        elif isinstance(plan, EnumPlan):
            self._enum(plan, node)
        elif isinstance(plan, RecordPlan):
            self._record(plan, node, depth)
        elif isinstance(plan, ArrayPlan):
            assert isinstance(writer, Array)
            assert isinstance(reader, Array)
            self._list(plan.items, writer.items, reader, reader.items, node, depth, plan.zero_size)
        else:
            assert isinstance(writer, Map)
            assert isinstance(reader, Map)
            self._list(plan.values, writer.values, reader, reader.values, node, depth, zero_size=False)

    def _record(self, plan: RecordPlan, node: Node, depth: int) -> None:
        assert isinstance(node, Struct)
        self._skipper.enter(depth)
        fields = plan.reader.fields
        unwanted: list[Schema] = []
        for step in plan.steps:
            if step.target is None or step.plan is None:
                unwanted.append(step.writer)
                continue
            self._skipper.all(unwanted, depth + 1)
            unwanted.clear()
            self._value(step.plan, step.writer, fields[step.target].schema, node.children[step.target], depth + 1)
        self._skipper.all(unwanted, depth + 1)
        for index in plan.defaulted:
            write_default(self._program, fields[index].schema, fields[index].default, node.children[index])

    def _list(
        self, plan: Plan, writer: Schema, around: Array | Map, reader: Schema, node: Node, depth: int, zero_size: bool
    ) -> None:
        assert isinstance(node, List)
        self._skipper.enter(depth)
        opening = len(self._code)
        size = entry_bytes(around, self._program.recursion_max)
        self._code += [op.LIST, node.offsets, node.scope, size, int(zero_size), 0]
        if node.keys is not None:
            self._code += [op.STRING, node.keys.offsets, node.keys.data]
        self._value(plan, writer, reader, node.items, depth + 1)
        self._code.append(op.NEXT)
        self._code[opening + 5] = len(self._code)

    def _writer_union(self, plan: UnionPlan, writer: Union, reader: Schema, node: Node | None, depth: int) -> None:
        null = _plain_null(plan, reader)
        if null is not None and node is not None and node.validity is not None:
            other = plan.branches[1 - null]
            assert isinstance(other, IntoUnion)
            assert isinstance(reader, Union)
            opening = len(self._code)
            self._code += [op.NULLABLE, null, node.validity, self._program.table(node), 0]
            self._value(other.plan, writer.branches[1 - null], reader.branches[other.branch], node, depth)
            self._code[opening + 4] = len(self._code)
            return
        self._program.choose(
            [
                partial(self._value, branch, known, reader, node, depth)
                for branch, known in zip(plan.branches, writer.branches, strict=True)
            ]
        )

    def _into_union(self, plan: IntoUnion, writer: Schema, reader: Union, node: Node | None, depth: int) -> None:
        branch = reader.branches[plan.branch]
        place = self._program.take_branch(reader, plan.branch, node)
        if not is_null(branch):
            self._value(plan.plan, writer, branch, place, depth)

    def _scalar(self, plan: ScalarPlan, node: Node) -> None:
        if plan.reader == "null":
            return
        if self._is_whole:
            self._code.append(op.WHOLE)
        if isinstance(node, Text):
            self._text(plan, node)
            return
        assert isinstance(node, Cells)
        bounds = None if plan.logical is None else RANGES.get(plan.logical.name)
        match plan.writer, plan.reader:
            case _, "bytes":
                assert plan.logical is not None
                self._decimal(plan.logical, node, -1)
            case "boolean", _:
                self._code += [op.BOOLEAN, node.buffer]
            case "int", "int" if bounds is not None:
                self._code += [op.INT_IN, node.buffer, *bounds]
            case writer, "long" if bounds is not None:
                self._code += [op.LONG_IN, node.buffer, *bounds, int(writer == "int")]
            case "int", "int" if node.width == 4:
                self._code += [op.INT, node.buffer]
            case "long", "long":
                self._code += [op.LONG, node.buffer]
            case "float", "float" if node.width == 4:
                self._code += [op.FLOAT, node.buffer]
            case "double", "double":
                self._code += [op.DOUBLE, node.buffer]
            case writer, reader:
                source = {"int": op.FROM_INT, "long": op.FROM_LONG, "float": op.FROM_FLOAT}[writer]
                target = {"int": op.TO_LONG, "long": op.TO_LONG, "float": op.TO_FLOAT, "double": op.TO_DOUBLE}[reader]
                if target == op.TO_FLOAT and node.width == 8:
                    target = op.TO_DOUBLE if source == op.FROM_FLOAT else op.TO_FLOAT_IN_DOUBLE
                self._code += [op.PROMOTE, node.buffer, source, target]

    def _text(self, plan: ScalarPlan, node: Text) -> None:
        if plan.reader == "string":
            self._code += [op.STRING if plan.logical is None else op.UUID_STRING, node.offsets, node.data]
        elif plan.logical is None:
            self._code += [op.BYTES, node.offsets, node.data]
        else:
            self._code += [
                op.DECIMAL_BYTES,
                node.offsets,
                node.data,
                *self._program.constants.decimal_bounds(plan.logical),
            ]

    def _fixed(self, plan: FixedPlan, node: Node) -> None:
        if isinstance(node, Text):
            self._code += [op.UUID_FIXED, node.offsets, node.data]
        elif isinstance(node, Struct):
            self._code += [op.DURATION, *_duration_buffers(node)]
        else:
            assert isinstance(node, Cells)
            if plan.logical is None:
                self._code += [op.FIXED, node.buffer, plan.size]
            else:
                self._decimal(plan.logical, node, plan.size)

    def _decimal(self, logical: Logical, node: Cells, size: int) -> None:
        place, bound_size = self._program.constants.decimal_bounds(logical)
        if bound_size != DECIMAL_BOUND_BYTES:
            self._code += [op.DECIMAL_FIXED, node.buffer, size, place, bound_size]
            return
        small = 10**logical.precision if logical.precision <= DECIMAL_SMALL_PRECISION else 0
        self._code += [op.DECIMAL, node.buffer, node.width, size, place, small]

    def _enum(self, plan: EnumPlan, node: Node) -> None:
        assert isinstance(node, Text)
        self._code += [op.ENUM, node.offsets, node.data, len(plan.targets)]
        for target in plan.targets:
            if target is None:
                self._code += [-Reason.UNRESOLVABLE, 0]
            else:
                symbol = plan.reader.symbols[target].encode()
                self._code += [self._program.constants.place(symbol), len(symbol)]


def _plain_null(plan: UnionPlan, reader: Schema) -> int | None:
    """Which of two writer branches is the reader's null, if the other is the reader's only other type."""
    if len(plan.branches) != 2 or not isinstance(reader, Union) or widened(reader) is None:
        return None
    nulls = [isinstance(branch, IntoUnion) and is_null(reader.branches[branch.branch]) for branch in plan.branches]
    if nulls.count(True) != 1 or not all(isinstance(branch, IntoUnion) for branch in plan.branches):
        return None
    return nulls.index(True)


def _duration_buffers(node: Struct) -> list[int]:
    return [child.buffer for child in node.children if isinstance(child, Cells)]

"""Emits code that skips values. It checks encodings, lengths, counts and branches, but not the content of strings.

Skipped records become subroutines, so that recursive records need no extra code. Their depth is known only at run time,
and ENTER checks it. Adjacent values of one kind share an opcode, which makes a few columns of a wide schema cheap.
"""

from collections.abc import Iterable
from functools import partial
from typing import Final

from headgate.serdes.avro.decoder import DEPTH_MAX
from headgate.serdes.avro.schema import Array, Enum, Fixed, Map, Primitive, Record, Schema, Union, is_zero_size
from headgate.serdes.columnar.decode.program import Program
from headgate.serdes.columnar.kernels import decode_opcodes as op
from headgate.serdes.outcome import Reason

_COUNTED: Final = {"int": op.SKIP_INT, "long": op.SKIP_LONG, "bytes": op.SKIP_BYTES, "string": op.SKIP_BYTES}
_SIZES: Final = {"null": 0, "float": 4, "double": 8}


class Skipper:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._code = program.code
        self._routines: dict[Record, int] = {}
        self._calls: list[tuple[int, Record]] = []
        self._in_routine = False

    def enter(self, depth: int) -> None:
        """Emit one level more than `depth` enclosing levels."""
        if self._in_routine:
            self._code += [op.ENTER, depth + 1]
        elif depth >= DEPTH_MAX:
            self._code += [op.FAIL, Reason.TOO_DEEP]

    def all(self, schemas: Iterable[Schema], depth: int) -> None:
        kind = amount = 0
        for schema in schemas:
            found, more = _mergeable(schema)
            if found and found == kind:
                amount += more
                continue
            self._flush(kind, amount)
            kind, amount = found, more
            if not found:
                self._one(schema, depth)
        self._flush(kind, amount)

    def beyond(self, writer: Schema, depth: int) -> None:
        """Emit a value whose column was omitted: an empty list is valid, any other value is too deep."""
        if isinstance(writer, (Array, Map)):
            self._list(writer, depth, must_be_empty=True)
        else:
            self._code += [op.FAIL, Reason.TOO_DEEP]

    def finish(self) -> None:
        """Emit the subroutines that were called, including nested ones."""
        self._in_routine = True
        while self._calls:
            at, record = self._calls.pop()
            if record not in self._routines:
                self._routines[record] = len(self._code)
                self.enter(0)
                self.all((field.schema for field in record.fields), 1)
                self._code.append(op.RETURN)
            self._code[at] = self._routines[record]

    def _flush(self, kind: int, amount: int) -> None:
        if amount:
            self._code += [kind, amount]

    def _one(self, writer: Schema, depth: int) -> None:
        if isinstance(writer, Enum):
            self._code += [op.SKIP_ENUM, len(writer.symbols)]
        elif isinstance(writer, Union):
            self._program.choose([partial(self.all, [branch], depth) for branch in writer.branches])
        elif isinstance(writer, Record):
            self._code += [op.CALL, 0, depth]
            self._calls.append((len(self._code) - 2, writer))
        elif isinstance(writer, (Array, Map)):
            self._list(writer, depth, must_be_empty=False)
        else:
            self._code.append(op.SKIP_BOOLEAN)

    def _list(self, writer: Array | Map, depth: int, *, must_be_empty: bool) -> None:
        self.enter(depth)
        items = writer.items if isinstance(writer, Array) else writer.values
        opening = len(self._code)
        self._code += [op.SKIP_LIST, int(isinstance(writer, Array) and is_zero_size(items)), 0]
        if must_be_empty:
            self._code += [op.FAIL, Reason.TOO_DEEP]
        else:
            if isinstance(writer, Map):
                self._code += [op.SKIP_BYTES, 1]
            self.all([items], depth + 1)
            self._code.append(op.NEXT)
        self._code[opening + 2] = len(self._code)


def _mergeable(schema: Schema) -> tuple[int, int]:
    """The opcode that skips several of these at once, and the operand of this one. 0 if there is none."""
    if isinstance(schema, Fixed):
        return op.SKIP_FIXED, schema.size
    if isinstance(schema, Primitive) and schema.kind in _SIZES:
        return op.SKIP_FIXED, _SIZES[schema.kind]
    if isinstance(schema, Primitive) and schema.kind in _COUNTED:
        return _COUNTED[schema.kind], 1
    return 0, 0

"""Emits code that writes the default of a reader field into a column. It reads no payload bytes.

`serdes.avro.defaults` decides which defaults are valid and which union branch they belong to.
"""

import struct
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from headgate.serdes.avro.column_size import entry_bytes
from headgate.serdes.avro.defaults import default_branch
from headgate.serdes.avro.schema import Array, Fixed, Map, Primitive, Record, Schema, Union
from headgate.serdes.columnar.decode.program import Program
from headgate.serdes.columnar.kernels import decode_opcodes as op
from headgate.serdes.columnar.layout import Cells, List, Node, Struct, Text, is_null
from headgate.serdes.outcome import Reason


def write_default(program: Program, schema: Schema, default: Any, node: Node | None) -> None:
    if isinstance(schema, Union):
        index = default_branch(schema, default)
        place = program.take_branch(schema, index, node)
        if not is_null(schema.branches[index]):
            write_default(program, schema.branches[index], default, place)
    elif node is None:
        if default not in ([], {}) or isinstance(schema, Record):
            program.code += [op.FAIL, Reason.TOO_DEEP]
    elif isinstance(schema, Record):
        assert isinstance(node, Struct)
        for field, child in zip(schema.fields, node.children, strict=True):
            write_default(program, field.schema, default.get(field.name, field.default), child)
    elif isinstance(schema, Array):
        _write_list(program, node, None, schema, default)
    elif isinstance(schema, Map):
        _write_list(program, node, list(default), schema, default.values())
    elif isinstance(node, Text):
        text = _text(schema, default)
        program.code += [op.SET_BYTES, node.offsets, node.data, program.constants.place(text), len(text)]
    elif isinstance(node, (Cells, Struct)):
        _write_cells(program, schema, default, node)


def _write_list(
    program: Program, node: Node, keys: list[str] | None, schema: Array | Map, values: Iterable[object]
) -> None:
    assert isinstance(node, List)
    items = list(values)
    size = len(items) * entry_bytes(schema, program.recursion_max)
    item_schema = schema.items if isinstance(schema, Array) else schema.values
    program.code += [op.OPEN_LIST, node.offsets, node.scope, len(items), size]
    for index, item in enumerate(items):
        if node.keys is not None and keys is not None:
            key = keys[index].encode()
            program.code += [op.SET_BYTES, node.keys.offsets, node.keys.data, program.constants.place(key), len(key)]
        write_default(program, item_schema, item, node.items)
        program.code.append(op.NEXT_ITEM)
    program.code.append(op.CLOSE_LIST)


def _text(schema: Schema, default: str) -> bytes:
    if isinstance(schema, Fixed):
        return str(UUID(bytes=default.encode("latin-1"))).encode()
    if isinstance(schema, Primitive) and schema.kind == "bytes":
        return default.encode("latin-1")
    return default.encode()


def _write_cells(program: Program, schema: Schema, default: Any, node: Cells | Struct) -> None:
    code = program.code
    if isinstance(node, Struct):
        for part, child in zip(struct.unpack("<iii", default.encode("latin-1")), node.children, strict=True):
            assert isinstance(child, Cells)
            code += [op.SET_4, child.buffer, part]
        return
    if isinstance(schema, Primitive) and schema.kind == "boolean":
        code += [op.SET_1, node.buffer, int(default)]
    elif isinstance(schema, Primitive) and schema.kind in ("float", "double"):
        code += _float(schema.kind, float(default), node)
    elif isinstance(schema, Primitive) and schema.kind in ("int", "long"):
        code += [op.SET_4 if node.width == 4 else op.SET_8, node.buffer, default]
    else:
        value = default.encode("latin-1")
        if isinstance(schema, Primitive) or schema_is_decimal(schema):
            value = int.from_bytes(value, signed=True).to_bytes(node.width, "little", signed=True)
        code += [op.SET_FIXED, node.buffer, node.width, program.constants.place(value)]


def schema_is_decimal(schema: Schema) -> bool:
    return isinstance(schema, Fixed) and schema.logical is not None and schema.logical.name == "decimal"


def _float(kind: str, value: float, node: Cells) -> list[int]:
    if kind == "float":
        bits: int = struct.unpack("<i", struct.pack("<f", value))[0]
        if node.width == 4:
            return [op.SET_4, node.buffer, bits]
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    wide: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return [op.SET_8, node.buffer, wide]

"""Builds Arrow arrays on the buffers of an arena. Only validity and booleans are copied, from bytes to bits."""

import numpy as np
from numpy.typing import NDArray
from pyarrow import lib as pa

from headgate.serdes.columnar.decode.arena import Arena
from headgate.serdes.columnar.layout import Cells, Node, Nothing, Struct, Text


def assemble(arena: Arena, root: Node, rows: int, good: NDArray[np.bool_]) -> pa.Array:
    """The array of the whole schema. A row that is not `good` is null, as are its top-level fields."""
    if good.all():
        return _array(arena, root, rows, None)
    return _array(arena, root, rows, _bits(good.view(np.uint8)))


def _array(arena: Arena, node: Node, length: int, fallback: pa.Buffer | None) -> pa.Array:
    """`fallback` is the validity of a column that has no validity buffer."""
    if isinstance(node, Nothing):
        return pa.nulls(length)
    validity = fallback if node.validity is None else _bits(arena.cells(node.validity, length))
    if isinstance(node, Struct):
        children = [_array(arena, child, length, fallback) for child in node.children if child is not None]
        return pa.Array.from_buffers(node.arrow, length, [validity], children=children)
    if isinstance(node, Cells):
        return pa.Array.from_buffers(node.arrow, length, [validity, _values(arena, node, length)])
    offsets = arena.slice(node.offsets, 4 * (length + 1))
    end = arena.offset(node.offsets, length)
    if isinstance(node, Text):
        return pa.Array.from_buffers(node.arrow, length, [validity, offsets, arena.slice(node.data, end)])
    items = _array(arena, node.items, end, None)
    if node.keys is not None:
        keys = _array(arena, node.keys, end, None)
        entries = pa.struct([node.arrow.key_field, node.arrow.item_field])
        items = pa.Array.from_buffers(entries, end, [None], children=[keys, items])
    return pa.Array.from_buffers(node.arrow, length, [validity, offsets], children=[items])


def _values(arena: Arena, node: Cells, length: int) -> pa.Buffer:
    if node.arrow == pa.bool_():
        return _bits(arena.cells(node.buffer, length))
    return arena.slice(node.buffer, length * node.width)


def _bits(cells: NDArray[np.uint8]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(cells, bitorder="little"))

"""The code and constants of all compiled writers for one reader layout, and operations that all emitters share."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from headgate.serdes.avro.schema import Union
from headgate.serdes.columnar.constant_pool import Constants
from headgate.serdes.columnar.kernels import decode_opcodes as op
from headgate.serdes.columnar.layout import Cells, Layout, List, Node, Nothing, Struct, Text, is_null, widened


class Program:
    """An append-only program: positions never change."""

    def __init__(self, layout: Layout) -> None:
        self.code: list[int] = [0]
        self.constants = Constants()
        self._tables: dict[Node, int] = {}
        self.root = layout.root
        self.recursion_max = layout.recursion_max
        self.code[0] = self._null_table(layout.root)
        self._prepare_tables(layout.root)
        self._arrays = (np.zeros(0, np.int64), np.zeros(1, np.uint8))

    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """The code and the constants as arrays for the kernel. Copies only after changes."""
        if len(self.code) != len(self._arrays[0]):
            # Machine code reads eight bytes at a time if possible.
            constants = np.frombuffer(bytes(self.constants.pool) + bytes(8), np.uint8)
            self._arrays = (np.array(self.code, np.int64), constants)
        return self._arrays

    def table(self, node: Node) -> int:
        return self._tables[node]

    def choose(self, branches: Sequence[Callable[[], None]]) -> None:
        """Emit a branch table, and the code of each branch. All branches continue after the last one."""
        opening = len(self.code)
        self.code += [op.UNION, len(branches), *([0] * len(branches))]
        jumps: list[int] = []
        for index, emit in enumerate(branches):
            self.code[opening + 2 + index] = len(self.code)
            emit()
            if index + 1 < len(branches):
                self.code += [op.JUMP, 0]
                jumps.append(len(self.code) - 1)
        for at in jumps:
            self.code[at] = len(self.code)

    def take_branch(self, reader: Union, index: int, node: Node | None) -> Node | None:
        """Mark a branch of the reader union as present. Returns the column of its value."""
        if node is None or isinstance(node, Nothing):
            return node
        if is_null(reader.branches[index]):
            self.code += [op.NULLS, self.table(node)]
            return node
        if node.validity is not None:
            self.code += [op.VALID, node.validity]
        if widened(reader) is not None:
            return node
        assert isinstance(node, Struct)
        chosen = sum(not is_null(branch) for branch in reader.branches[:index])
        for place, member in enumerate(node.children):
            if member is not None and place != chosen:
                self.code += [op.NULLS, self.table(member)]
        member = node.children[chosen]
        if member is not None and member.validity is not None:
            self.code += [op.VALID, member.validity]
        return member

    def _prepare_tables(self, node: Node) -> None:
        if node.validity is not None:
            self._null_table(node)
        if isinstance(node, Struct):
            for child in node.children:
                if child is not None:
                    self._prepare_tables(child)
        elif isinstance(node, List):
            self._prepare_tables(node.items)

    def _null_table(self, node: Node) -> int:
        if node not in self._tables:
            entries = _null_entries(node)
            self._tables[node] = len(self.code)
            self.code += [len(entries), *(word for entry in entries for word in entry)]
        return self._tables[node]


def _null_entries(node: Node) -> list[tuple[int, int, int]]:
    entries = [] if node.validity is None else [(op.NULL_1, node.validity, 1)]
    if isinstance(node, Cells):
        kind = op.NULL_FIXED if node.is_raw else {1: op.NULL_1, 4: op.NULL_4, 8: op.NULL_8}[node.width]
        entries.append((kind, node.buffer, node.width))
    elif isinstance(node, (Text, List)):
        entries.append((op.NULL_OFFSET, node.offsets, 0))
    elif isinstance(node, Struct):
        entries += [entry for child in node.children if child is not None for entry in _null_entries(child)]
    return entries

"""Selects the union branch for a Python value.

A pair `(branch name, value)` names the branch. Otherwise the first branch that fits is used: for numbers one that keeps
the value, for records the one with the most similar fields.
"""

from collections.abc import Mapping
from typing import Any, Final

from headgate.serdes.avro.binary import write_long
from headgate.serdes.avro.scalar_encoder import Buffer, Write, WrongKind, wrong
from headgate.serdes.avro.schema import Primitive, Record, Schema, Union, type_name, unqualified
from headgate.serdes.errors import EncodeError

UNION_ATTEMPTS_MAX: Final = 10_000
"""Failed branches for one value. Records that differ only at the deepest level double the work with each level."""


def _closeness(error: EncodeError) -> tuple[int, bool]:
    return len(error.path), not isinstance(error, WrongKind)


def _preferring(schema: Union, *kinds: str) -> list[int]:
    def is_other(index: int) -> bool:
        branch = schema.branches[index]
        return not (isinstance(branch, Primitive) and branch.kind in kinds)

    return sorted((index for index, branch in enumerate(schema.branches) if not _is_null(branch)), key=is_other)


def _is_null(schema: Schema) -> bool:
    return isinstance(schema, Primitive) and schema.kind == "null"


def _distance(fields: frozenset[str] | None, value: Mapping[Any, Any]) -> tuple[int, int]:
    """The sort key of a branch: more shared fields first, then fewer defaults. Other types come last."""
    if fields is None:
        return 1, 0
    shared = len(fields.intersection(value))
    return -shared, len(fields) - shared


def union_writer(schema: Union, writers: list[Write]) -> Write:
    names: dict[str, int] = {}
    for index, branch in enumerate(schema.branches):
        names[type_name(branch)] = index
    for index, branch in enumerate(schema.branches):
        names.setdefault(unqualified(type_name(branch)), index)
    records = {
        index: frozenset(field.name for field in branch.fields)
        for index, branch in enumerate(schema.branches)
        if isinstance(branch, Record)
    }

    null = names.get("null")
    default_order = [index for index in range(len(writers)) if index != null]
    # A number keeps its value if possible: no int in a float, no double in four bytes.
    orders = {int: _preferring(schema, "int", "long"), float: _preferring(schema, "double")}

    def attempt(out: Buffer, value: Any, depth: int, index: int) -> EncodeError | None:
        start, zero_size_items = len(out), out.zero_size_items
        write_long(out, index)
        try:
            writers[index](out, value, depth)
        except EncodeError as error:
            out.attempts += 1
            if out.attempts > UNION_ATTEMPTS_MAX:
                raise
            del out[start:]
            out.zero_size_items = zero_size_items
            return error
        return None

    def write(out: Buffer, value: Any, depth: int) -> None:
        if value is None and null is not None:
            write_long(out, null)
            return
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and value[0] in names:
            write_long(out, names[value[0]])
            writers[names[value[0]]](out, value[1], depth)
            return
        order = orders.get(type(value), default_order)
        if len(records) > 1 and isinstance(value, Mapping):
            order = sorted(order, key=lambda index: _distance(records.get(index), value))
        deepest: EncodeError | None = None
        for index in order:
            error = attempt(out, value, depth, index)
            if error is None:
                return
            if deepest is None or _closeness(error) > _closeness(deepest):
                deepest = error
        if deepest is not None and (deepest.path or not isinstance(deepest, WrongKind)):
            raise deepest
        raise wrong(value, f"value of the union of {', '.join(type_name(branch) for branch in schema.branches)}")

    return write

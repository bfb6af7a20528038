"""Selects fields of a reader schema by path. Other fields are skipped, not decoded.

A path is a list of field names with dots. It passes through arrays, map values and unions implicitly: `items.price` is
the price of each item. A path to a record selects the whole record.
"""

from collections.abc import Iterable

from headgate.serdes.avro.decoder import DEPTH_MAX
from headgate.serdes.avro.schema import Array, Field, Map, Record, Schema, Union, is_zero_size
from headgate.serdes.columnar.errors import UnknownField


def project(schema: Schema, paths: Iterable[str]) -> Schema:
    """The schema with only these fields, in its original order. Raises `UnknownField` for an unknown path."""
    wanted = _Tree()
    for path in paths:
        wanted.add(path.split("."))
    return _pruned(schema, wanted, "", 0)


class _Tree:
    """The paths by their first name. `is_whole` means that a path ends here, which selects everything below."""

    def __init__(self) -> None:
        self.below: dict[str, _Tree] = {}
        self.is_whole = False

    def add(self, names: list[str]) -> None:
        node = self
        for name in names:
            node = node.below.setdefault(name, _Tree())
        node.is_whole = True


def _pruned(schema: Schema, wanted: _Tree, path: str, depth: int) -> Schema:
    if depth > DEPTH_MAX:
        raise UnknownField(f"{path} has more than {DEPTH_MAX} levels")
    if wanted.is_whole:
        return schema
    if isinstance(schema, Array):
        return Array(_pruned(schema.items, wanted, path, depth + 1))
    if isinstance(schema, Map):
        return Map(_pruned(schema.values, wanted, path, depth + 1))
    if isinstance(schema, Union):
        return _pruned_union(schema, wanted, path, depth)
    if not isinstance(schema, Record):
        raise UnknownField(f"{path or 'the schema'} has no field {next(iter(wanted.below))!r}: it is not a record")
    unknown = wanted.below.keys() - {field.name for field in schema.fields}
    if unknown:
        raise UnknownField(f"{path or schema.name} has no field {min(unknown)!r}")
    return _record(
        schema,
        tuple(
            Field(
                field.name,
                _pruned(field.schema, wanted.below[field.name], f"{path}.{field.name}".removeprefix("."), depth + 1),
                field.aliases,
                field.has_default,
                field.default,
            )
            for field in schema.fields
            if field.name in wanted.below
        ),
    )


def _record(schema: Record, fields: tuple[Field, ...]) -> Record:
    zero_size = all(is_zero_size(field.schema) for field in fields)
    return Record(schema.name, schema.aliases, fields, zero_size)


def _pruned_union(schema: Union, wanted: _Tree, path: str, depth: int) -> Union:
    """Only one branch can match: the one with fields. The other branches stay unchanged."""
    nested = [branch for branch in schema.branches if isinstance(branch, (Record, Array, Map))]
    if len(nested) != 1:
        raise UnknownField(f"{path or 'the schema'} is a union in which several or no branches have fields")
    return Union(
        tuple(_pruned(branch, wanted, path, depth) if branch is nested[0] else branch for branch in schema.branches)
    )

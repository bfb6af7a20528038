"""Finds the reader types that can match a writer type, without comparing their contents.

Records, enums and fixed match by unqualified name or by an alias of the reader. Primitives match by promotion (Avro
1.12, "Schema Resolution"). Thus a union of a thousand records has about one match for each writer branch, and the
comparison is linear in the number of branches.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Final

from headgate.registry.formats.avro.types import AvroType, Enum, Field, Fixed, Named, Primitive, Record, Union

_WRITERS_READ_BY: Final = {
    "long": frozenset({"int"}),
    "float": frozenset({"int", "long"}),
    "double": frozenset({"int", "long", "float"}),
    "bytes": frozenset({"string"}),
    "string": frozenset({"bytes"}),
}
_NONE: Final[frozenset[str]] = frozenset()


def promotes(reader_kind: str, writer_kind: str) -> bool:
    """Whether a primitive reader type reads the writer type."""
    return reader_kind == writer_kind or writer_kind in _WRITERS_READ_BY.get(reader_kind, _NONE)


def names_match(reader: Named, writer: Named) -> bool:
    return reader.name.simple == writer.name.simple or any(alias.full == writer.name.full for alias in reader.aliases)


def missing_symbols(reader: Enum, writer: Enum) -> list[str]:
    return [] if reader.default is not None else sorted(set(writer.symbols).difference(reader.symbols))


def fields_by_name(record: Record) -> dict[str, Field]:
    return {field.name: field for field in record.fields}


def matching_fields(reader_field: Field, written: dict[str, Field]) -> list[Field]:
    """The writer fields with the name or an alias of the reader field."""
    direct = written.get(reader_field.name)
    matches = [] if direct is None else [direct]
    if reader_field.aliases:
        aliases = (alias for alias in reader_field.aliases if alias != reader_field.name)
        matches.extend(written[alias] for alias in aliases if alias in written)
    return matches


def plainly_unreadable(reader: AvroType, writer: AvroType) -> bool:
    """Whether the types cannot match because of their own properties or primitive fields.

    False requires a comparison.
    """
    if isinstance(reader, Primitive):
        return not promotes(reader.kind, writer.kind)
    if isinstance(reader, Record) and isinstance(writer, Record):
        return not names_match(reader, writer) or _fields_plainly_unreadable(reader, writer)
    if isinstance(reader, Enum) and isinstance(writer, Enum):
        return not names_match(reader, writer) or bool(missing_symbols(reader, writer))
    if isinstance(reader, Fixed) and isinstance(writer, Fixed):
        return not names_match(reader, writer) or reader.size != writer.size
    return reader.kind != writer.kind


def _fields_plainly_unreadable(reader: Record, writer: Record) -> bool:
    written = fields_by_name(writer)
    for reader_field in reader.fields:
        matches = matching_fields(reader_field, written)
        if not matches:
            if not reader_field.has_default:
                return True
            continue
        if len(matches) > 1:
            return True
        one, other = reader_field.type, matches[0].type
        if isinstance(one, Primitive) and isinstance(other, Primitive) and not promotes(one.kind, other.kind):
            return True
    return False


class Branches:
    """An index of a reader union by the properties that matching uses."""

    def __init__(self, union: Union) -> None:
        self._by_kind: dict[str, list[AvroType]] = {}
        self._by_full_name: dict[tuple[str, str], list[AvroType]] = {}
        self._by_simple_name: dict[tuple[str, str], list[AvroType]] = {}
        for branch in union.branches:
            if isinstance(branch, Record | Enum | Fixed):
                kind, name = branch.kind, branch.name
                self._by_simple_name.setdefault((kind, name.simple), []).append(branch)
                for full in {name.full, *(alias.full for alias in branch.aliases)}:
                    self._by_full_name.setdefault((kind, full), []).append(branch)
            else:
                self._by_kind.setdefault(branch.kind, []).append(branch)

    def candidates(self, writer: AvroType) -> Iterator[AvroType]:
        """The branches that may read `writer`, the most likely first. A branch can occur twice."""
        if isinstance(writer, Record | Enum | Fixed):
            kind, name = writer.kind, writer.name
            by_full_name = self._by_full_name.get((kind, name.full), ())
            return chain(by_full_name, self._by_simple_name.get((kind, name.simple), ()))
        same = self._by_kind.get(writer.kind, ())
        if isinstance(writer, Primitive):
            wider = (kind for kind, kinds in _WRITERS_READ_BY.items() if writer.kind in kinds)
            return chain(same, *(self._by_kind[kind] for kind in wider if kind in self._by_kind))
        return iter(same)

"""Incompatibilities between two Avro types: kind, path, message and advice.

Kinds and details are those of Java's `SchemaCompatibility`, which Confluent's registry prints.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.registry.formats.avro.types import AvroType, Enum, Field, Fixed, Named, Record, Union


@dataclass(slots=True, eq=False)
class Finding:
    kind: str
    path: str
    """Relative to its pair of types."""
    message: str
    detail: str
    advice: str


def type_mismatch(reader: AvroType, writer: AvroType) -> Finding:
    return Finding(
        "TYPE_MISMATCH",
        "",
        f"a reader of {_label(reader)} cannot read {_label(writer)}",
        f"reader type: {reader.kind.upper()} not compatible with writer type: {writer.kind.upper()}",
        f"keep the type {_label(writer)}, use a wider type (int, long, float, double), or make the reader a union "
        "that contains it",
    )


def name_mismatch(reader: Named, writer: Named) -> Finding:
    return Finding(
        "NAME_MISMATCH",
        "/name",
        f"the reader's {reader.kind} is named {reader.name.full}, the writer's {writer.name.full}",
        f"expected: {writer.name.full}",
        f'add "{writer.name.full}" to the aliases of {reader.name.full}, or keep the name',
    )


def size_mismatch(reader: Fixed, writer: Fixed) -> Finding:
    return Finding(
        "FIXED_SIZE_MISMATCH",
        "/size",
        f"the reader's {reader.name.full} has {reader.size} bytes, the writer's {writer.size}",
        f"expected: {writer.size}, found: {reader.size}",
        f"keep the size {writer.size}, or add a new field with another fixed type",
    )


def missing_symbols(reader: Enum, missing: Sequence[str]) -> Finding:
    listed = f"[{', '.join(missing)}]"
    return Finding(
        "MISSING_ENUM_SYMBOLS",
        "/symbols",
        f"the reader's {reader.name.full} does not have the symbols {listed} of the writer",
        listed,
        f"keep the symbols {', '.join(missing)}, or give {reader.name.full} a default symbol",
    )


def missing_default(path: str, reader_field: Field) -> Finding:
    return Finding(
        "READER_FIELD_MISSING_DEFAULT_VALUE",
        path,
        f"the reader's field {reader_field.name} has no default and the writer does not have it",
        reader_field.name,
        f"give the field {reader_field.name} a default",
    )


def ambiguous_field(path: str, reader_field: Field, matches: Sequence[Field]) -> Finding:
    names = ", ".join(match.name for match in matches)
    return Finding(
        "READER_FIELD_AMBIGUOUS",
        path,
        f"the reader's field {reader_field.name} matches several fields of the writer: {names}",
        reader_field.name,
        f"remove aliases of {reader_field.name} until it matches one of {names}",
    )


def missing_branch(path: str, writer: AvroType) -> Finding:
    return Finding(
        "MISSING_UNION_BRANCH",
        path,
        f"no branch of the reader's union reads {_label(writer)}",
        f"reader union lacking writer type: {writer.kind.upper()}",
        f"add {_label(writer)} to the union",
    )


def _label(avro_type: AvroType) -> str:
    match avro_type:
        case Record() | Enum() | Fixed():
            return f"{avro_type.kind} {avro_type.name.full}"
        case Union():
            return "a union"
        case _:
            return avro_type.kind

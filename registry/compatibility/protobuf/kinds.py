"""The differences between two Protobuf schemas, with the names of Confluent's registry."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    PACKAGE_CHANGED = "PACKAGE_CHANGED"
    MESSAGE_ADDED = "MESSAGE_ADDED"
    MESSAGE_REMOVED = "MESSAGE_REMOVED"
    MESSAGE_MOVED = "MESSAGE_MOVED"
    ENUM_ADDED = "ENUM_ADDED"
    ENUM_REMOVED = "ENUM_REMOVED"
    ENUM_CONST_ADDED = "ENUM_CONST_ADDED"
    ENUM_CONST_CHANGED = "ENUM_CONST_CHANGED"
    ENUM_CONST_REMOVED = "ENUM_CONST_REMOVED"
    FIELD_ADDED = "FIELD_ADDED"
    FIELD_REMOVED = "FIELD_REMOVED"
    FIELD_NAME_CHANGED = "FIELD_NAME_CHANGED"
    FIELD_KIND_CHANGED = "FIELD_KIND_CHANGED"
    FIELD_SCALAR_KIND_CHANGED = "FIELD_SCALAR_KIND_CHANGED"
    FIELD_NAMED_TYPE_CHANGED = "FIELD_NAMED_TYPE_CHANGED"
    FIELD_NUMERIC_LABEL_CHANGED = "FIELD_NUMERIC_LABEL_CHANGED"
    FIELD_STRING_OR_BYTES_LABEL_CHANGED = "FIELD_STRING_OR_BYTES_LABEL_CHANGED"
    REQUIRED_FIELD_ADDED = "REQUIRED_FIELD_ADDED"
    REQUIRED_FIELD_REMOVED = "REQUIRED_FIELD_REMOVED"
    ONEOF_ADDED = "ONEOF_ADDED"
    ONEOF_REMOVED = "ONEOF_REMOVED"
    ONEOF_FIELD_ADDED = "ONEOF_FIELD_ADDED"
    ONEOF_FIELD_REMOVED = "ONEOF_FIELD_REMOVED"
    ONEOF_FIELD_MOVED_TO_TOP_LEVEL = "ONEOF_FIELD_MOVED_TO_TOP_LEVEL"
    MULTIPLE_FIELDS_MOVED_TO_ONEOF = "MULTIPLE_FIELDS_MOVED_TO_ONEOF"
    FIELD_MOVED_TO_EXISTING_ONEOF = "FIELD_MOVED_TO_EXISTING_ONEOF"

    @property
    def compatible(self) -> bool:
        return self not in EXPLANATIONS


EXPLANATIONS: Final[dict[Kind, tuple[str, str]]] = {
    Kind.PACKAGE_CHANGED: (
        "The package differs, so all types have different full names",
        "Keep the package, or register the schema under another subject.",
    ),
    Kind.MESSAGE_REMOVED: (
        "The reader schema does not have a message of the writer schema",
        "Keep the message. You may mark an unused message as deprecated.",
    ),
    Kind.FIELD_KIND_CHANGED: (
        "The field has another kind: scalar, message, group and map are not interchangeable",
        "Keep the type, and add a field with a new number for the new type.",
    ),
    Kind.FIELD_SCALAR_KIND_CHANGED: (
        "The scalar type of the field has another encoding",
        "Use types of one group (int32, int64, uint32, uint64, bool, enums; sint32, sint64; string, bytes; "
        "fixed32, sfixed32; fixed64, sfixed64), or add a field with a new number.",
    ),
    Kind.FIELD_NAMED_TYPE_CHANGED: (
        "The message type of the field is another one, or has incompatible differences",
        "Keep the message type, or add a field with a new number for the new type.",
    ),
    Kind.FIELD_NUMERIC_LABEL_CHANGED: (
        "The label of a numeric field differs: repeated numbers are packed, single numbers are not",
        "Keep the label, or add a field with a new number.",
    ),
    Kind.REQUIRED_FIELD_ADDED: (
        "The reader requires a field that the writer does not set",
        "Make the field optional.",
    ),
    Kind.REQUIRED_FIELD_REMOVED: (
        "The reader schema does not have a field that the writer schema requires",
        "Keep the field.",
    ),
    Kind.ONEOF_FIELD_REMOVED: (
        "The reader schema does not have a member of a oneof, so it cannot detect that it was set",
        "Keep the member.",
    ),
    Kind.MULTIPLE_FIELDS_MOVED_TO_ONEOF: (
        "Fields that could be set together now exclude each other: only the last one is kept",
        "Move at most one existing field into a new oneof.",
    ),
    Kind.FIELD_MOVED_TO_EXISTING_ONEOF: (
        "A field or oneof now excludes fields that could be set together with it",
        "Keep it outside, or add only new fields to the oneof.",
    ),
}
"""A message and advice for each kind of incompatible difference."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One change from the writer schema to the reader schema, compatible or not, with both fragments."""

    kind: Kind
    path: str
    writer: str = ""
    reader: str = ""

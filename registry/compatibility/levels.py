"""Compatibility levels: the versions to compare with, the direction, and the messages.

The messages are those of Confluent's registry. One difference: a transitive level reports all incompatible versions,
not only the first.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from headgate.registry import limits
from headgate.registry.compatibility.incompatibility import Incompatibility, Policy
from headgate.registry.formats.base import ParsedSchema
from headgate.registry.languages import Languages
from headgate.registry.model import Level, SchemaType

_OLD_SCHEMA_CHARS_MAX: Final = 10 * 1024


@dataclass(frozen=True, slots=True)
class EarlierVersion:
    """A version to compare the new schema with."""

    version: int
    schema: ParsedSchema


@dataclass(frozen=True, slots=True)
class Found:
    """An incompatibility, with the version and the direction."""

    version: int
    new_reads_old: bool
    """True: the new schema cannot read data of the old one. False: the opposite direction."""
    incompatibility: Incompatibility

    @property
    def advice(self) -> str:
        """The advice of the checker is for the reader. If the old schema is the reader, it cannot be changed."""
        one = self.incompatibility
        if self.new_reads_old or not one.advice:
            return one.advice
        match one.kind:
            case "READER_FIELD_MISSING_DEFAULT_VALUE":
                return f"keep the field {one.detail}, or first register a version in which it has a default"
            case "MISSING_ENUM_SYMBOLS":
                return f"do not add the symbols {one.detail}, or first register a version with a default symbol"
            case _:
                return "undo this change, or first register a version that reads both"

    def as_json(self) -> dict[str, Any]:
        """All details. An extension of Confluent's API."""
        one = self.incompatibility
        return {
            "version": self.version,
            "direction": "new-reads-old" if self.new_reads_old else "old-reads-new",
            "kind": one.kind,
            "path": one.path,
            "message": one.message,
            "reader": one.reader,
            "writer": one.writer,
            "advice": self.advice,
        }


@dataclass(frozen=True, slots=True)
class CheckResult:
    messages: tuple[str, ...] = ()
    found: tuple[Found, ...] = ()

    @property
    def compatible(self) -> bool:
        return not self.messages


COMPATIBLE: Final = CheckResult()


def check(
    languages: Languages,
    level: Level,
    policy: Policy,
    new: ParsedSchema,
    earlier: Iterable[EarlierVersion],
    steps_max: int | None = None,
) -> CheckResult:
    """Check `new` against the versions in `earlier`, newest first.

    `steps_max` limits each comparison, see `Languages.check`.
    """
    messages: list[str] = []
    found: list[Found] = []
    for old in earlier:
        version_messages: list[str] = []
        if new.type is not old.schema.type:
            version_messages.append("Incompatible because of different schema type")
        else:
            if level.backward:
                for one in languages.check(new, old.schema, policy, steps_max):
                    version_messages.append(message(new.type, one, "new", "old"))
                    found.append(Found(old.version, True, one))
            if level.forward:
                for one in languages.check(old.schema, new, policy, steps_max):
                    version_messages.append(message(new.type, one, "old", "new"))
                    found.append(Found(old.version, False, one))
        if version_messages:
            messages += [*version_messages, f"{{oldSchemaVersion: {old.version}}}", _old_schema(old.schema.canonical)]
        if len(found) >= limits.INCOMPATIBILITIES_MAX:
            break
    return CheckResult(tuple(messages), tuple(found)) if messages else COMPATIBLE


def _old_schema(text: str) -> str:
    if len(text) <= _OLD_SCHEMA_CHARS_MAX:
        return f"{{oldSchema: '{text}'}}"
    return f"{{oldSchema: <truncated> '{text[:_OLD_SCHEMA_CHARS_MAX]}...'}}"


def message(type: SchemaType, one: Incompatibility, reader: str, writer: str) -> str:
    """The message of Confluent's registry. `reader` and `writer` are "new" and "old", or the opposite."""
    if type is not SchemaType.AVRO:
        place = "" if not one.path or one.path in one.message else f", at {one.path}"
        return f'{{errorType:"{one.kind}", description:"{one.message}{place}"}}'
    match one.kind:
        case "FIXED_SIZE_MISMATCH":
            description = (
                f"The size of FIXED type field at path '{one.path}' in the {reader} schema does not match with the "
                f"{writer} schema"
            )
        case "TYPE_MISMATCH":
            description = (
                f"The type (path '{one.path}') of a field in the {reader} schema does not match with the "
                f"{writer} schema"
            )
        case "NAME_MISMATCH":
            description = f"The name of the schema has changed (path '{one.path}')"
        case "MISSING_ENUM_SYMBOLS":
            description = (
                f"The {reader} schema is missing enum symbols '{one.detail}' at path '{one.path}' in the "
                f"{writer} schema"
            )
        case "MISSING_UNION_BRANCH":
            description = (
                f"The {reader} schema is missing a type inside a union field at path '{one.path}' in the "
                f"{writer} schema"
            )
        case "READER_FIELD_MISSING_DEFAULT_VALUE":
            description = (
                f"The field '{one.detail}' at path '{one.path}' in the {reader} schema has no default value and is "
                f"missing in the {writer} schema"
            )
        case _:
            description = one.message
    return f"{{errorType:'{one.kind}', description:'{description}', additionalInfo:'{one.detail}'}}"

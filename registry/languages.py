"""The three schema languages behind one interface: parse, compare, format.

The module of a language is imported with the first schema of that language. Parsed schemas are cached, so that a
registration does not parse the latest version again.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, cast

from headgate.registry import limits
from headgate.registry.compatibility.incompatibility import Incompatibility, Policy
from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.base import ParsedSchema
from headgate.registry.formats.extra import extra
from headgate.registry.model import SchemaType

_PARSED_KEPT_MAX: Final = 2000
_PARSED_KEPT_CHARS_MAX: Final = 32 * 1024
"""Longer schemas are not cached: 2,000 of them would fill the memory."""
_Pairs = tuple[tuple[str, str], ...]


class Languages:
    """Parses and compares schemas. Safe to share between threads."""

    def __init__(self) -> None:
        self._kept: Callable[..., ParsedSchema] = lru_cache(_PARSED_KEPT_MAX)(_parse)

    def remembering(self) -> "Languages":
        """A copy for one request that does the same work twice. It also caches large schemas and comparison results."""
        return _Remembering(self)

    def parse(
        self, type: SchemaType, text: str, references: Mapping[str, str] | None = None, *, strict: bool = True
    ) -> ParsedSchema:
        """Parse a schema. Use `strict` for new schemas only. Raises `InvalidSchema`."""
        pairs = tuple(references.items()) if references else ()
        if not strict:
            # Nearly every schema passes the strict parser with the same result, so one parse serves both.
            with suppress(InvalidSchema):
                return self._parsed(type, text, pairs, True)
        return self._parsed(type, text, pairs, strict)

    def _parsed(self, type: SchemaType, text: str, references: _Pairs, strict: bool) -> ParsedSchema:
        if len(text) + sum(len(referenced) for _, referenced in references) > _PARSED_KEPT_CHARS_MAX:
            return _parse(type, text, references, strict)
        return self._kept(type, text, references, strict)

    def normalized(self, schema: ParsedSchema) -> str:
        return schema.normalized()

    def check(
        self, reader: ParsedSchema, writer: ParsedSchema, policy: Policy, steps_max: int | None = None
    ) -> list[Incompatibility]:
        """Compare two schemas of the same language. Raises `WorkLimitExceeded` after more than `steps_max` steps."""
        try:
            return self._check(reader, writer, policy, steps_max)
        except RecursionError:
            raise InvalidSchema("the schemas are nested too deeply to be compared") from None

    def _check(
        self, reader: ParsedSchema, writer: ParsedSchema, policy: Policy, steps_max: int | None
    ) -> list[Incompatibility]:
        match reader.type:
            case SchemaType.AVRO:
                from headgate.registry.compatibility import avro

                return avro.check(cast(Any, reader), cast(Any, writer), steps_max)
            case SchemaType.JSON:
                from headgate.registry.compatibility import json_schema

                return json_schema.check(cast(Any, reader), cast(Any, writer), policy, steps_max)
            case SchemaType.PROTOBUF:
                from headgate.registry.compatibility import protobuf

                return protobuf.check(cast(Any, reader), cast(Any, writer))

    def resolved(self, schema: ParsedSchema) -> str | None:
        """The text with all references inlined. None if the language has no such format."""
        if schema.type is SchemaType.AVRO:
            from headgate.registry.formats.avro import AvroSchema

            try:
                return cast(AvroSchema, schema).resolved
            except RecursionError:
                raise InvalidSchema("the schema is nested too deeply to be written") from None
        return None

    def formatted(self, schema: ParsedSchema, form: str) -> str:
        """The text in another format. An unknown format returns the canonical text."""
        if schema.type is SchemaType.AVRO and form == "resolved":
            return self.resolved(schema) or schema.canonical
        if schema.type is SchemaType.PROTOBUF and form == "serialized":
            from headgate.registry.formats.protobuf import ProtobufSchema

            return cast(ProtobufSchema, schema).serialized()
        return schema.canonical

    def top_level_fields(self, schema: ParsedSchema) -> frozenset[str]:
        """Field names that conflict with reserved fields."""
        match schema.type:
            case SchemaType.AVRO:
                from headgate.registry.formats.avro import AvroSchema

                return cast(AvroSchema, schema).top_level_fields
            case SchemaType.JSON:
                from headgate.registry.formats.json_schema import JsonSchema

                return frozenset(cast(JsonSchema, schema).root.named("properties"))
            case SchemaType.PROTOBUF:
                from headgate.registry.formats.protobuf import ProtobufSchema

                messages = cast(ProtobufSchema, schema).main.proto.message_type
                return frozenset(field.name for field in messages[0].field) if messages else frozenset()


class _Remembering(Languages):
    """Caches all schemas and comparison results of one request. Discard it after the request."""

    def __init__(self, shared: Languages) -> None:
        self._shared = shared
        self._schemas: dict[tuple[SchemaType, str, _Pairs, bool], ParsedSchema] = {}
        self._results: dict[tuple[int, int, Policy], tuple[ParsedSchema, ParsedSchema, list[Incompatibility]]] = {}
        self._normalized: dict[int, tuple[ParsedSchema, str]] = {}

    def _parsed(self, type: SchemaType, text: str, references: _Pairs, strict: bool) -> ParsedSchema:
        key = (type, text, references, strict)
        found = self._schemas.get(key)
        if found is None:
            found = self._schemas[key] = self._shared._parsed(type, text, references, strict)
        return found

    def check(
        self, reader: ParsedSchema, writer: ParsedSchema, policy: Policy, steps_max: int | None = None
    ) -> list[Incompatibility]:
        key = (id(reader), id(writer), policy)
        if key not in self._results:
            # Keep the schemas as well: otherwise another object could get the same id().
            self._results[key] = (reader, writer, super().check(reader, writer, policy, steps_max))
        return self._results[key][2]

    def normalized(self, schema: ParsedSchema) -> str:
        if id(schema) not in self._normalized:
            self._normalized[id(schema)] = (schema, schema.normalized())
        return self._normalized[id(schema)][1]


def _parse(type: SchemaType, text: str, references: _Pairs, strict: bool) -> ParsedSchema:
    if len(text) > limits.SCHEMA_CHARS_MAX:
        raise InvalidSchema(f"the schema has {len(text)} characters; at most {limits.SCHEMA_CHARS_MAX} are accepted")
    match type:
        case SchemaType.AVRO:
            from headgate.registry.formats import avro

            return avro.parse(text, dict(references), strict=strict)
        case SchemaType.JSON:
            with extra("json"):
                from headgate.registry.formats import json_schema

            return json_schema.parse(text, dict(references), strict=strict)
        case SchemaType.PROTOBUF:
            with extra("protobuf"):
                from headgate.registry.formats import protobuf

            return protobuf.parse(text, dict(references), strict=strict)


def type_named(name: str | None) -> SchemaType:
    """The language of a request. The default is Avro."""
    if not name:
        return SchemaType.AVRO
    try:
        return SchemaType(name)
    except ValueError:
        raise InvalidSchema(f"Invalid schema type {name}") from None

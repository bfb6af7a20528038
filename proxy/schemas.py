"""Encoders of payloads with a schema.

A request names a schema by id, by version, by text or by subject (`SchemaChoice`). `headgate.serdes` finds or registers
it. The encoder is cached, so that later records with the same choice need no request to the registry.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from headgate.proxy.errors import (
    ConversionFailed,
    InvalidSchemaGiven,
    SchemaNotFound,
    SchemaUnavailable,
    SerializationFailed,
)
from headgate.proxy.formats import Encode, Format, SchemaChoice
from headgate.serdes import (
    AsyncRegistryClient,
    AsyncSerializer,
    EncodeError,
    InvalidSchema,
    RegistryClientError,
    RequestRefused,
    SchemaDefinition,
    SerializerOptions,
    UnknownSchema,
    avro_schema,
    json_schema,
    protobuf_schema,
    record_strategy,
    topic_record_strategy,
    topic_strategy,
)
from headgate.serdes.avro import DecimalMistakes, JsonEncoding, JsonToBinary, parse
from headgate.serdes.client.cache import BoundedCache
from headgate.serdes.framing import frame
from headgate.serdes.naming import NoRecordName, SubjectStrategy
from headgate.serdes.rules import RulesNotExecuted
from headgate.serdes.serializer import REFRESH_SECONDS, PreparedSchema

ENCODERS_MAX: Final = 1000
"""Cached encoders. The least recently used one is evicted first."""

_DEFINITIONS: Final[Mapping[Format, Callable[[str], SchemaDefinition]]] = {
    Format.AVRO: avro_schema,
    Format.JSONSCHEMA: json_schema,
    Format.PROTOBUF: protobuf_schema,
}
_FORMATS: Final = {"AVRO": Format.AVRO, "JSON": Format.JSONSCHEMA, "PROTOBUF": Format.PROTOBUF}
_STRATEGIES: Final[Mapping[str, SubjectStrategy]] = {
    "RECORD_NAME": record_strategy,
    "TOPIC_RECORD_NAME": topic_record_strategy,
}


@dataclass(frozen=True, slots=True)
class SchemaEncoder:
    """The encoder of one schema, and the fields of responses that name the schema."""

    format: Format
    subject: str
    schema_id: int
    version: int | None
    encode: Encode
    find_mistake: Callable[[object], str | None] | None = None
    """Returns a warning for a document that is valid and almost certainly wrong."""


class SchemaEncoders:
    def __init__(self, registry: AsyncRegistryClient, *, subject_checked: bool = True) -> None:
        """`subject_checked`: a schema named by its id must be registered under the subject."""
        self._registry = registry
        self._subject_checked = subject_checked
        self._cache: BoundedCache[tuple[Format | None, SchemaChoice], SchemaEncoder] = BoundedCache(
            ENCODERS_MAX, time.monotonic
        )

    def cached(self, wanted: Format | None, choice: SchemaChoice) -> SchemaEncoder | None:
        return self._cache.get((wanted, choice))

    async def find(self, wanted: Format | None, choice: SchemaChoice) -> SchemaEncoder:
        """`wanted` is the schema language that the request names, if it names one.

        Raises SchemaUnavailable, InvalidSchemaGiven, and SerializationFailed if the schema has rules for writers or is
        not registered under the subject.
        """
        found = self.cached(wanted, choice)
        if found is None:
            found = await self._prepare(wanted, choice)
            self._cache.put((wanted, choice), found, REFRESH_SECONDS if choice.is_latest else None)
        return found

    async def _prepare(self, wanted: Format | None, choice: SchemaChoice) -> SchemaEncoder:
        try:
            definition = None if choice.text is None else _DEFINITIONS[wanted or Format.AVRO](choice.text)
            serializer = AsyncSerializer(self._registry, definition, _options(choice))
            prepared = await serializer.prepare(topic=choice.topic)
            registered = prepared.registered
            found = _FORMATS[registered.definition.type.value]
            if wanted is not None and found is not wanted:
                raise InvalidSchemaGiven(f"Schema {registered.id} is {found}, not {wanted}.")
            encode = _encoder(prepared, native_logical=choice.native_logical)
            find_mistake = _mistakes(prepared) if found is Format.AVRO and not choice.native_logical else None
            subject = registered.subject or choice.subject
            if choice.schema_id is not None:
                subject = _strategy(choice)(choice.topic, False, prepared.writer.record_name)
        except RulesNotExecuted as error:
            raise SerializationFailed(str(error)) from error
        except RequestRefused as error:
            if error.status == 422:
                raise InvalidSchemaGiven(f"The registry rejects the schema: {error}") from error
            raise SchemaUnavailable(f"The registry rejects the request: {error}") from error
        except UnknownSchema as error:
            raise SchemaNotFound(f"The registry does not have the schema: {error}") from error
        except RegistryClientError as error:
            raise SchemaUnavailable(f"The schema is not available: {error}") from error
        except InvalidSchema as error:
            raise InvalidSchemaGiven(f"The schema is not valid: {error}") from error
        except NoRecordName as error:
            message = f"subject_name_strategy={choice.name_strategy} needs a schema that has a name."
            raise InvalidSchemaGiven(message) from error
        version = registered.version if choice.schema_id is None else await self._version(subject, prepared)
        return SchemaEncoder(found, subject, registered.id or 0, version, encode, find_mistake)

    async def _version(self, subject: str, prepared: PreparedSchema) -> int | None:
        """The version of the schema under `subject`. Raises SerializationFailed, SchemaUnavailable."""
        registered = prepared.registered
        try:
            return (await self._registry.lookup(subject, registered.definition)).version
        except UnknownSchema as error:
            if self._subject_checked:
                raise SerializationFailed(
                    f"Schema {registered.id} is not registered under subject {subject}. Register it there, name the "
                    "subject, or set schema.id.subject.check=false."
                ) from error
        except RegistryClientError as error:
            if self._subject_checked:
                raise SchemaUnavailable(f"The version of schema {registered.id} is not available: {error}") from error
        return None


def _options(choice: SchemaChoice) -> SerializerOptions:
    return SerializerOptions(
        # A schema with an id needs no subject to find it.
        subject_strategy=topic_strategy if choice.schema_id is not None else _strategy(choice),
        schema_id=choice.schema_id,
        version=choice.version,
        use_latest=choice.is_latest,
    )


def _strategy(choice: SchemaChoice) -> SubjectStrategy:
    return _STRATEGIES.get(choice.name_strategy or "", lambda topic, is_key, record_name: choice.subject)


def _encoder(prepared: PreparedSchema, *, native_logical: bool) -> Encode:
    """Encodes JSON documents as framed payloads."""
    schema_id, write = prepared.registered.id or 0, prepared.writer.write
    from_json: Callable[[object], object] = _unchanged
    fast: Callable[[object], bytes | bytearray | None] = _none
    if prepared.registered.definition.type.value == "AVRO":
        parsed = parse(prepared.schema.definition.text, prepared.schema.texts)
        from_json = JsonEncoding(parsed, tag_unions=True, native_logical=native_logical).from_json
        fast = _none if native_logical else JsonToBinary(parsed).encode
    start = frame(schema_id, b"")

    def encode(document: object) -> bytes | None:
        content = fast(document)
        if content is not None:
            return start + content
        try:
            body = write(from_json(document))
        except EncodeError as error:
            raise ConversionFailed(f"The data does not fit schema {schema_id}: {error}") from error
        return start + body.path + body.content

    return encode


def _mistakes(prepared: PreparedSchema) -> Callable[[object], str | None] | None:
    mistakes = DecimalMistakes(parse(prepared.schema.definition.text, prepared.schema.texts))
    return mistakes.find if mistakes.is_possible else None


def _unchanged(document: object) -> object:
    return document


def _none(_: object) -> None:
    """Other languages, and the readable form of logical types, have no fast path."""

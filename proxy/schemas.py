"""Payloads with a schema: which one a request means, and the function that writes with it.

Finding a schema asks the registry; the function it ends in is kept, so that the next record of the same subject costs
no question. "The latest version" is asked for again after a while.
"""

import time
from collections import OrderedDict
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
    EncodeError,
    InvalidSchema,
    RegisteredSchema,
    RegistryClientError,
    RequestRefused,
    SchemaDefinition,
    UnknownSchema,
    WriteOptions,
    avro_schema,
    json_schema,
    protobuf_schema,
)
from headgate.serdes.avro import Encoder, JsonEncoding, parse
from headgate.serdes.codecs import WholeSchema, writer_of
from headgate.serdes.framing import frame
from headgate.serdes.rules import RulesNotExecuted, check_writable

# Writers that are kept, the least used go first. A subject has one per way of naming its schema.
WRITERS_MAX: Final = 1000

# How long "the latest version" of a subject is taken from memory, as the registry client does.
LATEST_SECONDS: Final = 60.0

_DEFINITIONS: Final[Mapping[Format, Callable[[str], SchemaDefinition]]] = {
    Format.AVRO: avro_schema,
    Format.JSONSCHEMA: json_schema,
    Format.PROTOBUF: protobuf_schema,
}
_LANGUAGES: Final = {"AVRO": Format.AVRO, "JSON": Format.JSONSCHEMA, "PROTOBUF": Format.PROTOBUF}


@dataclass(frozen=True, slots=True)
class SchemaWriter:
    """How payloads of one schema are written, and what answers say about it."""

    format: Format
    subject: str | None
    schema_id: int
    version: int | None
    encode: Encode


class SchemaWriters:
    def __init__(self, registry: AsyncRegistryClient, *, subject_checked: bool = True) -> None:
        self._registry = registry
        self._subject_checked = subject_checked
        self._kept: OrderedDict[tuple[Format | None, SchemaChoice], tuple[float, SchemaWriter]] = OrderedDict()

    def kept(self, wanted: Format | None, choice: SchemaChoice) -> SchemaWriter | None:
        """The writer, if it can be had without asking anyone."""
        kept = self._kept.get((wanted, choice))
        return kept[1] if kept is not None and kept[0] > time.monotonic() else None

    async def find(self, wanted: Format | None, choice: SchemaChoice) -> SchemaWriter:
        """The writer that a request means; `wanted` is the language it names, if any.

        Raises SchemaUnavailable, InvalidSchemaGiven, and SerializationFailed if the schema has rules for writers or is
        not registered under the subject.
        """
        key = (wanted, choice)
        kept = self._kept.get(key)
        if kept is not None and kept[0] > time.monotonic():
            self._kept.move_to_end(key)
            return kept[1]
        writer = await self._make(wanted, choice)
        is_latest = choice.schema_id is None and choice.version is None and choice.text is None
        self._kept[key] = (time.monotonic() + LATEST_SECONDS if is_latest else float("inf"), writer)
        if len(self._kept) > WRITERS_MAX:
            self._kept.popitem(last=False)
        return writer

    async def _make(self, wanted: Format | None, choice: SchemaChoice) -> SchemaWriter:
        try:
            registered = await self._registered(wanted, choice)
            found = _LANGUAGES[registered.definition.type.value]
            if wanted is not None and found is not wanted:
                raise InvalidSchemaGiven(f"Schema {registered.id} is {found}, not {wanted}.")
            check_writable(await self._registry.rules_of(registered), registered.id)
            texts = await self._registry.reference_texts(registered.definition)
            encode = _encoder(found, WholeSchema(registered.definition, texts), registered.id or 0)
        except RulesNotExecuted as error:
            raise SerializationFailed(str(error)) from error
        except RequestRefused as error:
            if error.status == 422:
                raise InvalidSchemaGiven(f"The registry refuses the schema: {error}") from error
            raise SchemaUnavailable(f"The registry refuses: {error}") from error
        except UnknownSchema as error:
            raise SchemaNotFound(f"The schema cannot be had: {error}") from error
        except RegistryClientError as error:
            raise SchemaUnavailable(f"The schema cannot be had: {error}") from error
        except InvalidSchema as error:
            raise InvalidSchemaGiven(f"The schema is not valid: {error}") from error
        subject, version = registered.subject or choice.subject, registered.version
        if choice.schema_id is not None:
            subject, version = await self._place_of(choice, registered)
        return SchemaWriter(found, subject, registered.id or 0, version, encode)

    async def _place_of(self, choice: SchemaChoice, registered: RegisteredSchema) -> tuple[str | None, int | None]:
        """Subject and version of a schema that was named by its id. Raises SerializationFailed, SchemaUnavailable."""
        if choice.subject is None:
            return None, None
        subject = _subject(choice, registered.definition)
        try:
            return subject, (await self._registry.lookup(subject, registered.definition)).version
        except UnknownSchema as error:
            if self._subject_checked:
                raise SerializationFailed(
                    f"Schema {registered.id} is not registered under subject {subject}. Register it there, name the "
                    "subject, or set schema.id.subject.check=false."
                ) from error
        except RegistryClientError as error:
            if self._subject_checked:
                raise SchemaUnavailable(f"The version of schema {registered.id} cannot be had: {error}") from error
        return subject, None

    async def _registered(self, wanted: Format | None, choice: SchemaChoice) -> RegisteredSchema:
        if choice.schema_id is not None:
            return await self._registry.schema_by_id(choice.schema_id)
        if choice.subject is None:
            raise InvalidSchemaGiven("A schema is named by its id, or by a subject with a version or a text.")
        if choice.version is not None:
            return await self._registry.version(choice.subject, choice.version)
        if choice.text is not None:
            definition = _DEFINITIONS[wanted or Format.AVRO](choice.text)
            return await self._registry.register(_subject(choice, definition), definition)
        return await self._registry.latest(choice.subject)


def _subject(choice: SchemaChoice, definition: SchemaDefinition) -> str:
    if choice.name_strategy is None:
        assert choice.subject is not None
        return choice.subject
    name = writer_of(WholeSchema(definition, {}), WriteOptions()).record_name
    if name is None:
        raise InvalidSchemaGiven(f"The schema has no name that {choice.name_strategy} could use.")
    return name if choice.name_strategy == "RECORD_NAME" else f"{choice.topic}-{name}"


def _encoder(language: Format, schema: WholeSchema, schema_id: int) -> Encode:
    """JSON documents to framed payloads."""
    if language is Format.AVRO:
        parsed = parse(schema.definition.text, schema.texts)
        from_json, to_bytes = JsonEncoding(parsed, tag_unions=True).from_json, Encoder(parsed).encode

        def encode_avro(document: object) -> bytes | None:
            try:
                return frame(schema_id, to_bytes(from_json(document)))
            except EncodeError as error:
                raise ConversionFailed(f"The data does not fit schema {schema_id}: {error}") from error

        return encode_avro
    writer = writer_of(schema, WriteOptions())

    def encode(document: object) -> bytes | None:
        try:
            body = writer.write(document)
        except EncodeError as error:
            raise ConversionFailed(f"The data does not fit schema {schema_id}: {error}") from error
        return frame(schema_id, body.path + body.content)

    return encode

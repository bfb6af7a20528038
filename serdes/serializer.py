"""Encodes values to payloads with a schema id, in all three languages, like Confluent's serializers.

`SerializerCore` contains the logic and the cache. `Serializer` and `AsyncSerializer` run it with a client.
"""

import time
from collections.abc import Callable, MutableSequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from headgate.registry.model import Reference, SchemaType
from headgate.serdes.client.asynchronous import AsyncRegistryClient
from headgate.serdes.client.cache import BoundedCache
from headgate.serdes.client.core import RegistryCore
from headgate.serdes.client.errors import RegistryUnavailable
from headgate.serdes.client.steps import Steps
from headgate.serdes.client.sync import RegistryClient
from headgate.serdes.codec import BodyWriter, WriteOptions
from headgate.serdes.codecs import WholeSchema, writer_of
from headgate.serdes.framing import frame, guid_header, header_name
from headgate.serdes.models import ModelError, is_model, model_of
from headgate.serdes.naming import SubjectStrategy, topic_strategy
from headgate.serdes.rules import check_writable
from headgate.serdes.schemas import RegisteredSchema, SchemaDefinition

if TYPE_CHECKING:
    from google.protobuf.descriptor import FileDescriptor

SUBJECTS_MAX: Final = 1000
"""Cached subjects in one serializer. Record name strategies create one subject per topic and record."""

REFRESH_SECONDS: Final = 60.0
"""How long a serializer uses its writer for the latest version before it asks the client again."""


@dataclass(frozen=True, slots=True)
class SerializerOptions:
    subject_strategy: SubjectStrategy = topic_strategy
    auto_register: bool = True
    """Register the schema. If False, it must already be registered."""
    normalize: bool = False
    use_latest: bool = False
    """Encode with the latest version of the subject instead of the given schema."""
    schema_id: int | None = None
    """Encode with this registered schema."""
    version: int | None = None
    """Encode with this version of the subject."""
    id_in_header: bool = False
    """Put the schema guid into a record header instead of the payload."""
    write: WriteOptions = field(default_factory=WriteOptions)


@dataclass(frozen=True, slots=True)
class PreparedSchema:
    """A registered schema and its writer."""

    registered: RegisteredSchema
    schema: WholeSchema
    writer: BodyWriter


class SerializerCore:
    def __init__(
        self,
        registry: RegistryCore,
        schema: "SchemaDefinition | type | None",
        options: SerializerOptions,
    ) -> None:
        chosen = [options.use_latest, options.schema_id is not None, options.version is not None]
        if sum(chosen) > 1:
            raise ValueError("use_latest, schema_id and version are mutually exclusive")
        if schema is None and not any(chosen):
            raise ValueError("a schema is required without use_latest, schema_id or version")
        self._registry = registry
        self._options = options
        self._file: FileDescriptor | None = None
        self._write_options = options.write
        self._to_value: Callable[[Any], object] | None = None
        if is_model(schema):
            model = model_of(schema)
            schema, self._to_value = model.schema, model.to_value
        elif isinstance(schema, type):
            from headgate.serdes.protobuf.messages import definition_of

            descriptor: Any = getattr(schema, "DESCRIPTOR", None)
            if descriptor is None:
                raise ModelError(f"{schema!r} is neither a Protobuf message, a dataclass nor a pydantic model")
            self._file = descriptor.file
            self._write_options = WriteOptions(
                options.write.ignore_unknown_fields, options.write.validate_json, descriptor.full_name
            )
            schema = definition_of(descriptor.file)
        self._schema = schema
        self._own: PreparedSchema | None = None
        self._prepared: BoundedCache[str, PreparedSchema] = BoundedCache(SUBJECTS_MAX, time.monotonic)

    def serialize(
        self, value: object, topic: str, is_key: bool, headers: MutableSequence[tuple[str, bytes]] | None
    ) -> Steps[bytes | None]:
        if value is None:
            return None
        prepared = yield from self.prepare(topic, is_key)
        value = value if self._to_value is None else self._to_value(value)
        registered, body = prepared.registered, prepared.writer.write(value)
        if not self._options.id_in_header:
            if registered.id is None:
                raise RegistryUnavailable("the registry returned no id for the schema")
            return frame(registered.id, body.path + body.content)
        if headers is None:
            raise ValueError("id_in_header needs the list of the record's headers")
        guid = registered.guid
        if guid is None and registered.id is not None:
            # Responses of older registries to a registration do not contain the guid.
            guid = (yield from self._registry.schema_by_id(registered.id)).guid
        if guid is None:
            raise RegistryUnavailable("the registry returned no guid for the schema; it does not support header ids")
        headers.append((header_name(is_key), guid_header(guid, body.path)))
        return body.content

    def prepare(self, topic: str, is_key: bool) -> Steps[PreparedSchema]:
        """The schema for payloads of `topic`. Registers it if the options say so."""
        own = yield from self._own_schema()
        subject = self._options.subject_strategy(topic, is_key, None if own is None else own.writer.record_name)
        prepared = self._prepared.get(subject)
        if prepared is None:
            registered = yield from self._registered(subject)
            check_writable((yield from self._registry.rules_of(registered)), registered.id)
            if own is not None and registered.definition == self._schema:
                prepared = PreparedSchema(registered, own.schema, own.writer)
            else:
                prepared = yield from self._with_writer(registered)
            self._prepared.put(subject, prepared, REFRESH_SECONDS if self._options.use_latest else None)
        return prepared

    def _own_schema(self) -> Steps[PreparedSchema | None]:
        """The schema that the program gave, if any. Its record name may be part of the subject."""
        if self._schema is None:
            return None
        if self._own is None:
            references = () if self._file is None else (yield from self._register_dependencies(self._file))
            if references:
                self._schema = SchemaDefinition(SchemaType.PROTOBUF, self._schema.text, references)
            self._own = yield from self._with_writer(RegisteredSchema(self._schema, None))
        return self._own

    def _with_writer(self, registered: RegisteredSchema) -> Steps[PreparedSchema]:
        texts = yield from self._registry.reference_texts(registered.definition)
        schema = WholeSchema(registered.definition, texts)
        return PreparedSchema(registered, schema, writer_of(schema, self._write_options))

    def _registered(self, subject: str) -> Steps[RegisteredSchema]:
        options = self._options
        if options.schema_id is not None:
            return (yield from self._registry.schema_by_id(options.schema_id))
        if options.version is not None:
            return (yield from self._registry.version(subject, options.version))
        if options.use_latest:
            return (yield from self._registry.latest(subject))
        assert self._schema is not None
        find = self._registry.register if options.auto_register else self._registry.lookup
        return (yield from find(subject, self._schema, options.normalize))

    def _register_dependencies(self, file: "FileDescriptor") -> Steps[tuple[Reference, ...]]:
        """The imports of a generated file, each under a subject of its own name, like Confluent's clients."""
        from headgate.serdes.protobuf.messages import definition_of, dependencies_of

        references: list[Reference] = []
        for dependency in dependencies_of(file):
            inner = yield from self._register_dependencies(dependency)
            definition = SchemaDefinition(SchemaType.PROTOBUF, definition_of(dependency).text, inner)
            if self._options.auto_register:
                yield from self._registry.register(dependency.name, definition, self._options.normalize)
            found = yield from self._registry.lookup(dependency.name, definition, self._options.normalize)
            references.append(Reference(dependency.name, dependency.name, found.version or 1))
        return tuple(references)


class Serializer:
    """Serializer for threads. `schema` is a definition, a generated Protobuf class, a dataclass or a pydantic model."""

    def __init__(
        self,
        client: RegistryClient,
        schema: "SchemaDefinition | type | None" = None,
        options: SerializerOptions | None = None,
    ) -> None:
        self._client = client
        self._core = SerializerCore(client.core, schema, options or SerializerOptions())

    def serialize(
        self,
        value: object,
        *,
        topic: str = "",
        is_key: bool = False,
        headers: MutableSequence[tuple[str, bytes]] | None = None,
    ) -> bytes | None:
        """The payload; None for None.

        Raises `EncodeError`, `InvalidSchema`, a `RegistryClientError`, or `RulesNotExecuted` if the schema has rules.

        With `id_in_header`, the header is added to `headers`.
        """
        return self._client.run(self._core.serialize(value, topic, is_key, headers))


class AsyncSerializer:
    """`Serializer` for asyncio."""

    def __init__(
        self,
        client: AsyncRegistryClient,
        schema: "SchemaDefinition | type | None" = None,
        options: SerializerOptions | None = None,
    ) -> None:
        self._client = client
        self._core = SerializerCore(client.core, schema, options or SerializerOptions())

    async def serialize(
        self,
        value: object,
        *,
        topic: str = "",
        is_key: bool = False,
        headers: MutableSequence[tuple[str, bytes]] | None = None,
    ) -> bytes | None:
        return await self._client.run(self._core.serialize(value, topic, is_key, headers))

    async def prepare(self, *, topic: str = "", is_key: bool = False) -> PreparedSchema:
        """The schema that payloads of `topic` are written with, for programs that write them without waiting.

        Raises `InvalidSchema`, a `RegistryClientError`, `RulesNotExecuted`, or `NoRecordName`.
        """
        return await self._client.run(self._core.prepare(topic, is_key))

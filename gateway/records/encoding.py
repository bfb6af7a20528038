"""Encodes JSON payloads with registered schemas, with the rules of the REST proxy (`proxy.schemas`)."""

from dataclasses import dataclass, replace

from headgate.gateway.records.json_lines import BadRecord
from headgate.gateway.records.record import NewRecord
from headgate.proxy.errors import ConversionFailed, InvalidPayload
from headgate.proxy.formats import Format, SchemaChoice
from headgate.proxy.schemas import SchemaEncoders
from headgate.serdes import AsyncRegistryClient, EncodeError
from headgate.serdes.codecs import WholeSchema
from headgate.serdes.json_text import loads


@dataclass(frozen=True, slots=True)
class PayloadSchema:
    """The schema of all keys or all values: an id, a text to register under the subject, or the latest version."""

    subject: str
    schema_id: int | None = None
    text: str | None = None
    format: Format | None = None
    """The language of `text`."""


class RecordEncoder:
    """A schema id in a record takes precedence over the schemas of the constructor."""

    def __init__(
        self,
        registry: AsyncRegistryClient,
        topic: str,
        key: PayloadSchema | None,
        value: PayloadSchema | None,
        *,
        native_logical: bool,
    ) -> None:
        # A copied record keeps its schema, which need not be registered under the subject of the new topic.
        self._registry = registry
        self._encoders = SchemaEncoders(registry, subject_checked=False)
        self._topic = topic
        self._key = key
        self._value = value
        self._native_logical = native_logical

    async def prepare(self) -> None:
        """Find or register the schemas now, so that a wrong schema fails before the first record. Raises ProxyError."""
        for schema in (self._key, self._value):
            if schema is not None:
                await self._encoders.find(schema.format, self._choice(schema))

    def applies_to(self, record: NewRecord) -> bool:
        return bool(self._key or self._value or record.key_schema_id or record.value_schema_id)

    async def value_schema(self) -> tuple[int, WholeSchema]:
        """The id and the schema of all values. Raises ProxyError."""
        assert self._value is not None
        found = await self._encoders.find(self._value.format, self._choice(self._value))
        definition = (await self._registry.schema_by_id(found.schema_id)).definition
        return found.schema_id, WholeSchema(definition, await self._registry.reference_texts(definition))

    async def encode(self, record: NewRecord, *, has_value: bool = True) -> NewRecord:
        """Raises BadRecord if a payload does not match its schema, and ProxyError if a schema is not available.

        `has_value`: whether the value must be encoded.
        """
        key = await self._encoded("key", record.key, record.key_schema_id, self._key)
        if not has_value:
            return replace(record, key=key)
        value = await self._encoded("value", record.value, record.value_schema_id, self._value)
        return replace(record, key=key, value=value)

    async def _encoded(
        self, part: str, payload: bytes | None, schema_id: int | None, schema: PayloadSchema | None
    ) -> bytes | None:
        if schema_id is not None:
            schema = PayloadSchema(f"{self._topic}-{part}", schema_id)
        if payload is None or schema is None:
            return payload
        choice = self._choice(schema)
        found = self._encoders.cached(schema.format, choice) or await self._encoders.find(schema.format, choice)
        try:
            return found.encode(loads(payload))
        except (EncodeError, ConversionFailed, InvalidPayload) as error:
            raise BadRecord(f"the {part}: {error}") from error

    def _choice(self, schema: PayloadSchema) -> SchemaChoice:
        return SchemaChoice(
            schema.schema_id,
            None,
            schema.text,
            schema.subject,
            topic=self._topic,
            native_logical=self._native_logical,
        )

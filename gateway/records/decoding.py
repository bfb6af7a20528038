"""Decodes the keys and values of records for output, with the rules of the REST proxy (`proxy.reading.payloads`).

A payload that cannot be decoded makes its record poison. The payload itself is kept. The registry is contacted when
the first payload needs a schema.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from headgate.gateway.records.payload_format import AUTO, JSON, RAW, Decode, PayloadFormats, decoder_of
from headgate.gateway.records.record import Record, Text
from headgate.proxy.reading.formats import Formats, ReadFormat
from headgate.proxy.reading.payloads import Payloads, SchemaReader, Sides, one_line
from headgate.serdes import AsyncRegistryClient, Poison, Reason, RegisteredSchema
from headgate.serdes.codecs import WholeSchema
from headgate.serdes.framing import Frame, is_framed, message_path, unframe_record
from headgate.serdes.rules import read_advice, rule_on_read

_FIRST_MESSAGE = message_path([0])
_READ_FORMATS = {
    AUTO: ReadFormat.AUTO,
    JSON: ReadFormat.JSONSCHEMA,
    "avro": ReadFormat.AVRO,
    "protobuf": ReadFormat.PROTOBUF,
}


@dataclass(frozen=True, slots=True)
class ChosenSchema:
    """A schema that the user names by id or subject. Payloads then contain only the body, without a schema id."""

    schema_id: int | None = None
    subject: str | None = None

    async def load(self, registry: AsyncRegistryClient, *, native_logical: bool) -> Decode:
        """Raises RegistryClientError, InvalidSchema."""
        registered = await self._find(registry)
        texts = await registry.reference_texts(registered.definition)
        reader = SchemaReader(WholeSchema(registered.definition, texts), native_logical=native_logical)
        rule = rule_on_read(registered.rules or ())

        def decode(payload: bytes) -> Text | Poison:
            if rule is not None:
                return Poison(Reason.RULES_NOT_EXECUTED, read_advice(rule), payload, registered.id)
            rendered = reader.render(Frame(registered.id, None, payload, _FIRST_MESSAGE))
            if isinstance(rendered, Poison):
                return replace(rendered, raw=payload, schema_id=registered.id)
            # The payload has no schema id, so the output names none. Otherwise `produce -J` would add one.
            return Text(one_line(rendered), is_json=True)

        return decode

    async def _find(self, registry: AsyncRegistryClient) -> RegisteredSchema:
        if self.schema_id is not None:
            return await registry.schema_by_id(self.schema_id)
        assert self.subject is not None
        return await registry.latest(self.subject)


class RecordDecoder:
    """`key` and `value` decode payloads of chosen schemas. They replace the formats."""

    def __init__(
        self,
        formats: PayloadFormats,
        registry: Callable[[], AsyncRegistryClient],
        *,
        key: Decode | None = None,
        value: Decode | None = None,
        native_logical: bool = False,
    ) -> None:
        self._registry = registry
        self._payloads: Payloads | None = None
        self._parts = (
            _Part(formats.key, key or decoder_of(formats.key), is_key=True),
            _Part(formats.value, value or decoder_of(formats.value), is_key=False),
        )
        key_format, value_format = (_READ_FORMATS.get(part.name, ReadFormat.AUTO) for part in self._parts)
        self._formats = Formats(key_format, value_format, native_logical)

    async def decode(self, records: Sequence[Record]) -> list[Record]:
        """Decode records. Never raises: errors make a record poison."""
        if not any(part.wants_schema(record) for record in records for part in self._parts):
            return [self._decoded(record, None) for record in records]
        if self._payloads is None:
            self._payloads = Payloads(self._registry())
        sides = self._payloads.sides(self._formats)
        decoded = [self._decoded(record, sides) for record in records]
        if await sides.look_up():
            decoded = [self._decoded(record, sides) for record in records]
        return decoded

    def _decoded(self, record: Record, sides: Sides | None) -> Record:
        key, value = (part.decode(record, sides) for part in self._parts)
        for part, found in (("value", value), ("key", key)):
            if isinstance(found, Poison):
                return replace(record, poison=found, poison_part=part)
        assert not isinstance(key, Poison)
        assert not isinstance(value, Poison)
        return record if key is None and value is None else replace(record, key_text=key, value_text=value)


class _Part:
    """The keys or the values."""

    def __init__(self, name: str, decode: Decode | None, *, is_key: bool) -> None:
        self.name = name
        self._decode = decode
        self._is_key = is_key
        self._may_have_schema = decode is None and name != RAW

    def wants_schema(self, record: Record) -> bool:
        payload = record.key if self._is_key else record.value
        return self._may_have_schema and payload is not None and is_framed(payload, record.headers, self._is_key)

    def decode(self, record: Record, sides: Sides | None) -> Text | Poison | None:
        payload = record.key if self._is_key else record.value
        if payload is None or record.unreadable is not None or (self.name == RAW and self._decode is None):
            return None
        if self._decode is not None:
            return self._decode(payload)
        if not is_framed(payload, record.headers, self._is_key):
            return self._unframed(payload)
        assert sides is not None
        rendered = sides.both[0 if self._is_key else 1].bare()(payload, record.headers)
        if isinstance(rendered, Poison):
            return rendered
        frame = unframe_record(payload, record.headers, self._is_key)
        assert isinstance(frame, Frame)
        schema = frame.schema_id if frame.schema_id is not None else str(frame.schema_guid)
        return Text(one_line(rendered), is_json=True, schema=schema, in_header=frame.header_path is not None)

    def _unframed(self, payload: bytes) -> Text | Poison | None:
        if self.name == AUTO:
            return None
        if self.name != JSON:
            frame = unframe_record(payload, None, self._is_key)
            return frame if isinstance(frame, Poison) else None
        import orjson

        try:
            orjson.loads(payload)
        except orjson.JSONDecodeError as error:
            return Poison(Reason.CORRUPT, f"not JSON: {str(error)[:200]}", payload)
        return Text(one_line(payload), is_json=True)

"""Decodes payloads with a schema id, in all three languages. Poison is a return value, not an exception.

`DeserializerCore` contains the logic and the cache. `Deserializer` and `AsyncDeserializer` run it with a client.
"""

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from headgate.registry.errors import InvalidSchema
from headgate.serdes.client.asynchronous import AsyncRegistryClient
from headgate.serdes.client.cache import BoundedCache
from headgate.serdes.client.core import RegistryCore
from headgate.serdes.client.errors import RegistryClientError, UnknownSchema
from headgate.serdes.client.steps import Steps
from headgate.serdes.client.sync import RegistryClient
from headgate.serdes.codec import BodyReader, ReadOptions
from headgate.serdes.codecs import WholeSchema, reader_of
from headgate.serdes.errors import PoisonError
from headgate.serdes.framing import Frame, Headers, unframe_record
from headgate.serdes.models import model_of
from headgate.serdes.outcome import Decoded, Poison, Reason
from headgate.serdes.rules import Rules, read_advice, rule_on_migration, rule_on_read
from headgate.serdes.schemas import SchemaDefinition

READERS_MAX: Final = 1000
"""Cached pairs of writer and reader schema in one deserializer."""


@dataclass(frozen=True, slots=True)
class DeserializerOptions:
    reader: SchemaDefinition | None = None
    """Decode all payloads to values of this schema. None means the writer schema of each payload."""
    reader_subject: str | None = None
    """Decode all payloads to the latest version of this subject."""
    model: type | None = None
    """Decode all payloads to instances of this dataclass or pydantic model (`serdes.models`)."""
    read: ReadOptions = field(default_factory=ReadOptions)

    def __post_init__(self) -> None:
        if sum(one is not None for one in (self.reader, self.reader_subject, self.model)) > 1:
            raise ValueError("reader, reader_subject and model are mutually exclusive")


class DeserializerCore:
    def __init__(self, registry: RegistryCore, options: DeserializerOptions) -> None:
        self._registry = registry
        self._from_value: Callable[[Any], object] | None = None
        if options.model is not None:
            model = model_of(options.model)
            self._from_value = model.from_value
            options = DeserializerOptions(reader=model.schema, read=replace(options.read, tag_unions=True))
        self._options = options
        self._readers: BoundedCache[Hashable, BodyReader | Poison] = BoundedCache(READERS_MAX, time.monotonic)

    def decode(self, payload: bytes | None, headers: Headers, is_key: bool) -> Steps[Decoded | Poison]:
        """Decode a payload. All errors become `Poison`, except a payload that is not bytes-like: `TypeError`."""
        if payload is not None and type(payload) is not bytes:
            # bytes() of a number would return that many zero bytes.
            payload = memoryview(payload).tobytes()
        frame = unframe_record(payload, headers, is_key)
        if isinstance(frame, Poison):
            return frame
        outcome = yield from self._decode(frame)
        if isinstance(outcome, Poison):
            return replace(outcome, raw=payload, schema_id=frame.schema_id, schema_guid=frame.schema_guid)
        return outcome

    def _decode(self, frame: Frame) -> Steps[Decoded | Poison]:
        try:
            reader = yield from self._reader(frame)
        except UnknownSchema as error:
            return Poison(Reason.UNKNOWN_SCHEMA, str(error), None)
        except RegistryClientError as error:
            return Poison(Reason.REGISTRY_UNAVAILABLE, str(error), None)
        if isinstance(reader, Poison):
            return reader
        value = reader.read(frame)
        if isinstance(value, Poison):
            return value
        if self._from_value is not None:
            try:
                value = self._from_value(value)
            except (ValueError, TypeError) as error:
                return Poison(Reason.INVALID_VALUE, f"the model rejects the value: {error}", None)
        return Decoded(value, frame.schema_id, frame.schema_guid)

    def _reader(self, frame: Frame) -> Steps[BodyReader | Poison]:
        """The reader for the schema of the frame, or the poison."""
        read_as, reader_rules = self._options.reader, Rules()
        if self._options.reader_subject is not None:
            try:
                latest = yield from self._registry.latest(self._options.reader_subject)
            except UnknownSchema as error:
                return Poison(Reason.UNRESOLVABLE, f"the reader's subject: {error}", None)
            read_as, reader_rules = latest.definition, latest.rules or ()
        key = (frame.schema_id, frame.schema_guid, read_as)
        known = self._readers.get(key)
        if known is not None:
            return known
        if frame.schema_id is not None:
            registered = yield from self._registry.schema_by_id(frame.schema_id)
        else:
            assert frame.schema_guid is not None
            registered = yield from self._registry.schema_by_guid(frame.schema_guid)
        writer = yield from self._whole(registered.definition)
        reader: BodyReader | Poison
        is_migrated = read_as is not None and read_as != registered.definition
        rules = (*(registered.rules or ()), *reader_rules)
        rule = rule_on_read(rules) or (rule_on_migration(rules) if is_migrated else None)
        if rule is not None:
            reader = Poison(Reason.RULES_NOT_EXECUTED, read_advice(rule), None)
            self._readers.put(key, reader)
            return reader
        try:
            whole_reader = None if read_as is None else (yield from self._whole(read_as))
            reader = reader_of(writer, whole_reader, self._options.read)
        except InvalidSchema as error:
            reader = Poison(Reason.UNRESOLVABLE, str(error), None)
        except RecursionError:
            # Depends on the stack depth of the caller, so do not cache it.
            return Poison(Reason.UNRESOLVABLE, "the schemas are nested deeper than the caller's stack allows", None)
        self._readers.put(key, reader)
        return reader

    def _whole(self, definition: SchemaDefinition) -> Steps[WholeSchema]:
        return WholeSchema(definition, (yield from self._registry.reference_texts(definition)))


class Deserializer:
    """Deserializer for threads. Supports all three languages."""

    def __init__(self, client: RegistryClient, options: DeserializerOptions | None = None) -> None:
        self._client = client
        self._core = DeserializerCore(client.core, options or DeserializerOptions())

    def decode(self, payload: bytes | None, *, headers: Headers = None, is_key: bool = False) -> Decoded | Poison:
        """The value or the poison. Never raises."""
        return self._client.run(self._core.decode(payload, headers, is_key))

    def deserialize(self, payload: bytes | None, *, headers: Headers = None, is_key: bool = False) -> object:
        """The value; None for None. Raises `PoisonError`."""
        return _value(payload, self.decode(payload, headers=headers, is_key=is_key))


class AsyncDeserializer:
    """`Deserializer` for asyncio."""

    def __init__(self, client: AsyncRegistryClient, options: DeserializerOptions | None = None) -> None:
        self._client = client
        self._core = DeserializerCore(client.core, options or DeserializerOptions())

    async def decode(self, payload: bytes | None, *, headers: Headers = None, is_key: bool = False) -> Decoded | Poison:
        return await self._client.run(self._core.decode(payload, headers, is_key))

    async def deserialize(self, payload: bytes | None, *, headers: Headers = None, is_key: bool = False) -> object:
        return _value(payload, await self.decode(payload, headers=headers, is_key=is_key))


def _value(payload: bytes | None, outcome: Decoded | Poison) -> object:
    if payload is None:
        return None
    if isinstance(outcome, Poison):
        raise PoisonError(outcome)
    return outcome.value

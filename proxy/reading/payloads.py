"""Keys and values as JSON text, by format; what cannot be read is `Poison`, never an exception.

Texts are spliced into rows as they are, so each is one line. Schemas are looked up per batch, before its records are
rendered: rendering itself waits for nobody.
"""

import asyncio
import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias
from uuid import UUID

import orjson

from proxy.reading.formats import Formats, ReadFormat
from serdes import AsyncDeserializer, AsyncRegistryClient, Poison, ReadOptions, Reason
from serdes.avro import EncodeError, JsonEncoding
from serdes.avro import parse as parse_avro
from serdes.codec import BodyReader
from serdes.codecs import WholeSchema, reader_of
from serdes.framing import FRAME_BYTES, KEY_HEADER, VALUE_HEADER, Frame, unframe_record
from serdes.json_text import dumps

READERS_MAX: Final = 1000
"""Schemas whose readers are kept; as many as the registry client remembers."""
SCHEMA_WAIT_SECONDS_MAX: Final = 5.0
"""A registry that hangs must not hang the reader: after this its payloads are REGISTRY_UNAVAILABLE."""

Header: TypeAlias = tuple[str, bytes | None]
Rendered: TypeAlias = bytes | Poison
SchemaKey: TypeAlias = int | UUID
_NULL: Final = b"null"
_READ_OPTIONS: Final = ReadOptions(tag_unions=True, protobuf_as_dict=True)
_JSON_STARTS: Final = frozenset(b'{["-0123456789tfn \t\r\n')
_FAULTS_OF_SCHEMA: Final = frozenset({Reason.UNKNOWN_SCHEMA, Reason.REGISTRY_UNAVAILABLE, Reason.UNRESOLVABLE})


class KafkaRecord(Protocol):
    """What a fetched record has, whichever library parsed it."""

    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[Header]: ...


class SchemaReader:
    """Payloads of one writer's schema as JSON text."""

    def __init__(self, schema: WholeSchema) -> None:
        self._reader: BodyReader = reader_of(schema, None, _READ_OPTIONS)
        self.format = _LANGUAGES[str(schema.definition.type)]
        self._avro: JsonEncoding | None = None
        if self.format is ReadFormat.AVRO:
            self._avro = JsonEncoding(parse_avro(schema.definition.text, schema.texts), tag_unions=True)

    def render(self, frame: Frame) -> Rendered:
        value = self._reader.read(frame)
        if isinstance(value, Poison):
            return value
        if self._avro is not None:
            try:
                value = self._avro.to_json(value)
            except EncodeError as error:
                return Poison(Reason.INVALID_VALUE, str(error), None)
        elif self.format is ReadFormat.JSONSCHEMA:
            return one_line(frame.body)  # validated; numbers of any size stay as they were written
        return json_text(value)


_LANGUAGES: Final[Mapping[str, ReadFormat]] = {
    "AVRO": ReadFormat.AVRO,
    "JSON": ReadFormat.JSONSCHEMA,
    "PROTOBUF": ReadFormat.PROTOBUF,
}


class Payloads:
    """The schemas this worker has seen, and renderers that use them."""

    def __init__(self, registry: AsyncRegistryClient) -> None:
        self._registry = registry
        self._deserializer = AsyncDeserializer(registry)
        self._readers: dict[SchemaKey, SchemaReader] = {}

    async def sides(self, formats: Formats, records: Iterable[KafkaRecord]) -> tuple["Side", "Side"]:
        """Renderers for the keys and values of these records, with every schema they need."""
        faults: dict[SchemaKey, Poison] = {}
        for is_key, wanted in ((True, formats.key), (False, formats.value)):
            if wanted not in _FRAMED:
                continue
            missing: dict[SchemaKey, KafkaRecord] = {}
            for record in records:
                found = schema_key(record.key if is_key else record.value, record.headers, is_key)
                if found is not None and found not in self._readers and found not in missing:
                    missing[found] = record
            for key, record in missing.items():
                if key not in faults:
                    await self._load(key, record, is_key, faults)
        return Side(formats.key, True, self._readers, faults), Side(formats.value, False, self._readers, faults)

    async def _load(self, key: SchemaKey, record: KafkaRecord, is_key: bool, faults: dict[SchemaKey, Poison]) -> None:
        """Through the deserializer first: it tells every way in which a schema can be unusable."""
        try:
            async with asyncio.timeout(SCHEMA_WAIT_SECONDS_MAX):
                payload = record.key if is_key else record.value
                outcome = await self._deserializer.decode(payload, headers=record.headers, is_key=is_key)
                if isinstance(outcome, Poison) and outcome.reason in _FAULTS_OF_SCHEMA:
                    faults[key] = outcome
                    return
                if isinstance(key, int):
                    registered = await self._registry.schema_by_id(key)
                else:
                    registered = await self._registry.schema_by_guid(key)
                texts = await self._registry.reference_texts(registered.definition)
        except Exception as error:  # whatever the registry does, the record is still told
            detail = f"the registry did not give schema {key}: {str(error) or type(error).__name__}"
            faults[key] = Poison(Reason.REGISTRY_UNAVAILABLE, detail, None)
            return
        if len(self._readers) >= READERS_MAX:
            del self._readers[next(iter(self._readers))]
        self._readers[key] = SchemaReader(WholeSchema(registered.definition, texts))


class Side:
    """Renders the keys, or the values, of one batch."""

    __slots__ = ("_faults", "_format", "_header", "_is_key", "_name", "_plain", "_readers")

    def __init__(
        self,
        wanted: ReadFormat,
        is_key: bool,
        readers: Mapping[SchemaKey, SchemaReader],
        faults: Mapping[SchemaKey, Poison],
    ) -> None:
        self._format = wanted
        self._is_key = is_key
        self._header = KEY_HEADER if is_key else VALUE_HEADER
        self._plain = _PLAIN.get(wanted)
        self._name = _type_prefix(wanted)
        self._readers = readers
        self._faults = faults

    def bare(self, payload: bytes | None, headers: Sequence[Header]) -> Rendered:
        """The data alone."""
        if payload is None:
            return _NULL
        if self._plain is not None:
            return self._plain(payload)
        rendered = self._typed(payload, headers)
        return rendered if isinstance(rendered, Poison) else rendered[1]

    def wrapped(self, payload: bytes | None, headers: Sequence[Header]) -> Rendered:
        """As v3 writes records: `{"type":…,"schema_id":…,"data":…}`."""
        if payload is None:
            return _NULL
        if self._plain is not None:
            text = self._plain(payload)
            return text if isinstance(text, Poison) else b"%b%b}" % (self._name, text)
        rendered = self._typed(payload, headers)
        return rendered if isinstance(rendered, Poison) else b"%b%b}" % rendered

    def _typed(self, payload: bytes, headers: Sequence[Header]) -> "tuple[bytes, bytes] | Poison":
        if self._format is ReadFormat.AUTO and not self._is_framed(payload, headers):
            return _guess(payload)
        frame = unframe_record(payload, headers, self._is_key)
        if isinstance(frame, Poison):
            return frame
        key: SchemaKey | None = frame.schema_id if frame.schema_id is not None else frame.schema_guid
        assert key is not None
        reader = self._readers.get(key)
        if reader is None:
            fault = self._faults.get(key)
            if fault is None:
                return Poison(Reason.REGISTRY_UNAVAILABLE, f"schema {key} was not looked up", payload)
            return Poison(fault.reason, fault.detail, payload, frame.schema_id, frame.schema_guid)
        if self._format is not ReadFormat.AUTO and reader.format is not self._format:
            detail = f"schema {key} is {reader.format}, and {self._format} was asked for"
            return Poison(Reason.UNRESOLVABLE, detail, payload, frame.schema_id, frame.schema_guid)
        text = reader.render(frame)
        if isinstance(text, Poison):
            return Poison(text.reason, text.detail, payload, frame.schema_id, frame.schema_guid)
        return _type_prefix(reader.format, key), text

    def _is_framed(self, payload: bytes, headers: Sequence[Header]) -> bool:
        if len(payload) >= FRAME_BYTES and payload[0] == 0:
            return True
        return bool(headers) and any(name == self._header for name, _ in headers)


def schema_key(payload: bytes | None, headers: Sequence[Header], is_key: bool) -> SchemaKey | None:
    """Which schema a payload names; None where it names none."""
    if payload is None:
        return None
    if not headers:
        return int.from_bytes(payload[1:FRAME_BYTES]) if len(payload) >= FRAME_BYTES and payload[0] == 0 else None
    frame = unframe_record(payload, headers, is_key)
    if isinstance(frame, Poison):
        return None
    return frame.schema_id if frame.schema_id is not None else frame.schema_guid


def json_text(value: Any) -> Rendered:
    try:
        return orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError):
        pass  # whole numbers beyond 64 bits, which JSON may have
    try:
        return dumps(value).encode()
    except (EncodeError, UnicodeEncodeError) as error:
        return Poison(Reason.INVALID_VALUE, f"no JSON for this value: {error}", None)


def one_line(text: bytes) -> bytes:
    """In JSON, line ends outside of strings are only white space, and inside they are escaped."""
    if b"\n" in text or b"\r" in text:
        return text.replace(b"\n", b" ").replace(b"\r", b" ")
    return text


def _binary(payload: bytes) -> Rendered:
    return b'"%b"' % base64.b64encode(payload)


def _json(payload: bytes) -> Rendered:
    """The text itself, once it is known to be JSON: numbers keep their digits."""
    try:
        orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        return Poison(Reason.CORRUPT, f"not JSON: {str(error)[:200]}", payload)
    return one_line(payload)


def _string(payload: bytes) -> Rendered:
    try:
        return orjson.dumps(payload.decode())
    except UnicodeDecodeError as error:
        return Poison(Reason.CORRUPT, f"not UTF-8: {error.reason} at {error.start}", payload)


def _guess(payload: bytes) -> tuple[bytes, bytes]:
    if payload and payload[0] in _JSON_STARTS:
        text = _json(payload)
        if not isinstance(text, Poison):
            return _type_prefix(ReadFormat.JSON), text
    text = _string(payload)
    if not isinstance(text, Poison):
        return _type_prefix(ReadFormat.STRING), text
    return _type_prefix(ReadFormat.BINARY), b'"%b"' % base64.b64encode(payload)


def _type_prefix(kind: ReadFormat, schema: SchemaKey | None = None) -> bytes:
    if schema is None:
        return b'{"type":"%b","data":' % kind.name.encode()
    if isinstance(schema, int):
        return b'{"type":"%b","schema_id":%d,"data":' % (kind.name.encode(), schema)
    return b'{"type":"%b","schema_guid":"%b","data":' % (kind.name.encode(), str(schema).encode())


_PLAIN: Final[Mapping[ReadFormat, Callable[[bytes], Rendered]]] = {
    ReadFormat.BINARY: _binary,
    ReadFormat.JSON: _json,
    ReadFormat.STRING: _string,
}
_FRAMED: Final = frozenset({ReadFormat.AVRO, ReadFormat.JSONSCHEMA, ReadFormat.PROTOBUF, ReadFormat.AUTO})

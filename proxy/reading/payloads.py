"""Renders keys and values as JSON text, by format. Undecodable payloads become `Poison` and never raise an exception.

Rendering is synchronous. It collects missing schemas. The caller loads them after the batch and renders it again.
JSON payloads are copied into rows unchanged. `proxy.reading.rows` removes line feeds from them.
"""

import asyncio
from binascii import b2a_base64
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias
from uuid import UUID

import orjson

from headgate.proxy.reading.formats import Formats, ReadFormat
from headgate.serdes import AsyncDeserializer, AsyncRegistryClient, Poison, ReadOptions, Reason
from headgate.serdes.avro import EncodeError, JsonEncoding
from headgate.serdes.avro import parse as parse_avro
from headgate.serdes.codec import BodyReader
from headgate.serdes.codecs import WholeSchema, reader_of
from headgate.serdes.framing import Frame, is_framed, unframe_record
from headgate.serdes.json_text import dumps
from headgate.wire.expansion import Unreadable, UnreadableReason

READERS_MAX: Final = 1000
"""Cached readers of each form of logical types. The registry client caches the same number of schemas."""
SCHEMA_WAIT_SECONDS_MAX: Final = 5.0
"""Timeout of a schema lookup. After it, the payload is poison with the reason REGISTRY_UNAVAILABLE."""

Header: TypeAlias = tuple[str, bytes | None]
Rendered: TypeAlias = bytes | Poison
SchemaKey: TypeAlias = int | UUID
Render: TypeAlias = Callable[[bytes, "Sequence[Header]"], Rendered]
"""Renders a payload and the headers of its record as JSON text."""
_READ_OPTIONS: Final = ReadOptions(tag_unions=True, protobuf_as_dict=True, protobuf_json_names=True)
_JSON_STARTS: Final = frozenset(b'{["-0123456789tfn \t\r\n')
_FAULTS_OF_SCHEMA: Final = frozenset(
    {Reason.UNKNOWN_SCHEMA, Reason.REGISTRY_UNAVAILABLE, Reason.UNRESOLVABLE, Reason.RULES_NOT_EXECUTED}
)


class KafkaRecord(Protocol):
    """Fields of a fetched record, independent of the parser."""

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


@dataclass(frozen=True, slots=True)
class UnreadableRecord:
    """Replaces undeliverable records. It is rendered as a poison row with their first offset."""

    offset: int
    timestamp: int
    unreadable: Unreadable
    key: None = None
    value: None = None
    headers: Sequence[Header] = ()


_SETTINGS: Final[Mapping[UnreadableReason, str]] = {
    UnreadableReason.TOO_LARGE: " (fetch.batch.decompressed.bytes.max)",
    UnreadableReason.RECORD_TOO_LARGE: " (fetch.record.decompressed.bytes.max)",
}


def unreadable_poison(unreadable: Unreadable) -> Poison:
    is_corrupt = unreadable.reason is UnreadableReason.CORRUPT
    detail = unreadable.description + _SETTINGS.get(unreadable.reason, "")
    return Poison(Reason.CORRUPT if is_corrupt else Reason.INVALID_VALUE, detail, None)


class SchemaReader:
    """Renders payloads of one writer schema as JSON text."""

    def __init__(self, schema: WholeSchema, *, native_logical: bool = False) -> None:
        self._reader: BodyReader = reader_of(schema, None, _READ_OPTIONS)
        self.format = _LANGUAGES[str(schema.definition.type)]
        self._prefixes: dict[SchemaKey, bytes] = {}
        self._avro: JsonEncoding | None = None
        if self.format is ReadFormat.AVRO:
            parsed = parse_avro(schema.definition.text, schema.texts)
            self._avro = JsonEncoding(parsed, tag_unions=True, native_logical=native_logical)

    def prefix(self, key: SchemaKey) -> bytes:
        """Returns the start of the row for a payload with this schema reference."""
        known = self._prefixes.get(key)
        if known is None:
            known = self._prefixes[key] = _type_prefix(self.format, key)
        return known

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
            return frame.body  # Validated. The text keeps all digits of numbers.
        return json_text(value)


_LANGUAGES: Final[Mapping[str, ReadFormat]] = {
    "AVRO": ReadFormat.AVRO,
    "JSON": ReadFormat.JSONSCHEMA,
    "PROTOBUF": ReadFormat.PROTOBUF,
}


class Payloads:
    """Cached schemas of this worker and their renderers."""

    def __init__(self, registry: AsyncRegistryClient) -> None:
        self._registry = registry
        self._deserializer = AsyncDeserializer(registry)
        self._readers: dict[bool, dict[SchemaKey, SchemaReader]] = {False: {}, True: {}}
        """By `native_logical` and schema."""
        self.poison: Counter[Reason] = Counter()
        """Records that could not be decoded, for metrics."""

    def sides(self, formats: Formats) -> "Sides":
        return Sides(self, formats, self._readers[formats.native_logical])

    async def load(
        self, key: SchemaKey, example: "Example", faults: dict[SchemaKey, Poison], native_logical: bool = False
    ) -> None:
        """Caches the reader of a schema, or adds the reason to `faults` if the schema is unusable.

        Uses the deserializer first, because it reports every reason why a schema is unusable.
        """
        readers = self._readers[native_logical]
        if key in readers:
            return
        try:
            async with asyncio.timeout(SCHEMA_WAIT_SECONDS_MAX):
                outcome = await self._deserializer.decode(
                    example.payload, headers=example.headers, is_key=example.is_key
                )
                if isinstance(outcome, Poison) and outcome.reason in _FAULTS_OF_SCHEMA:
                    faults[key] = outcome
                    return
                if isinstance(key, int):
                    registered = await self._registry.schema_by_id(key)
                else:
                    registered = await self._registry.schema_by_guid(key)
                texts = await self._registry.reference_texts(registered.definition)
        except Exception as error:  # Errors of the registry must not fail the read.
            detail = f"the registry did not give schema {key}: {str(error) or type(error).__name__}"
            faults[key] = Poison(Reason.REGISTRY_UNAVAILABLE, detail, None)
            return
        if len(readers) >= READERS_MAX:
            del readers[next(iter(readers))]
        schema = WholeSchema(registered.definition, texts)
        readers[key] = SchemaReader(schema, native_logical=native_logical)


@dataclass(frozen=True, slots=True)
class Example:
    """A payload whose schema is not cached yet."""

    payload: bytes
    headers: Sequence[Header]
    is_key: bool


class Sides:
    """Renderers for keys and values of one batch, and the schemas that are not cached yet."""

    def __init__(self, payloads: Payloads, formats: Formats, readers: Mapping[SchemaKey, SchemaReader]) -> None:
        self._payloads = payloads
        self._native_logical = formats.native_logical
        self._missing: dict[SchemaKey, Example] = {}
        self._faults: dict[SchemaKey, Poison] = {}
        self.both = (
            Side(formats.key, True, readers, self._faults, self._missing),
            Side(formats.value, False, readers, self._faults, self._missing),
        )

    async def look_up(self) -> bool:
        """Loads missing schemas. Returns True if there were any: the rows must then be rendered again."""
        if not self._missing:
            return False
        for key, example in self._missing.items():
            await self._payloads.load(key, example, self._faults, self._native_logical)
        self._missing.clear()
        return True


class Side:
    """Renders keys or values."""

    __slots__ = ("_faults", "_is_key", "_missing", "_readers", "format")

    def __init__(
        self,
        wanted: ReadFormat,
        is_key: bool,
        readers: Mapping[SchemaKey, SchemaReader],
        faults: Mapping[SchemaKey, Poison],
        missing: dict[SchemaKey, Example],
    ) -> None:
        self.format = wanted
        self._is_key = is_key
        self._readers = readers
        self._faults = faults
        self._missing = missing

    def bare(self) -> Render:
        """Renders the data without type and schema."""
        plain = _PLAIN.get(self.format)
        if plain is not None:
            return plain

        def render(payload: bytes, headers: Sequence[Header]) -> Rendered:
            rendered = self._typed(payload, headers)
            return rendered if isinstance(rendered, Poison) else rendered[1]

        return render

    def wrapped(self) -> Render:
        """Renders the v3 format: `{"type":…,"schema_id":…,"data":…}`."""
        plain = _PLAIN.get(self.format)
        if plain is not None:
            return _wrapped(plain, _type_prefix(self.format))
        typed = self._typed
        guess = _guess if self.format is ReadFormat.AUTO else None

        def render(payload: bytes, headers: Sequence[Header]) -> Rendered:
            if guess is not None and not headers and (not payload or payload[0]):
                return b"%b%b}" % guess(payload)
            rendered = typed(payload, headers)
            return rendered if isinstance(rendered, Poison) else b"%b%b}" % rendered

        return render

    def _typed(self, payload: bytes, headers: Sequence[Header]) -> "tuple[bytes, bytes] | Poison":
        if self.format is ReadFormat.AUTO and not is_framed(payload, headers, self._is_key):
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
                self._missing[key] = Example(payload, headers, self._is_key)
                return Poison(Reason.REGISTRY_UNAVAILABLE, "not looked up yet", payload)
            return Poison(fault.reason, fault.detail, payload, frame.schema_id, frame.schema_guid)
        if self.format is not ReadFormat.AUTO and reader.format is not self.format:
            detail = f"schema {key} is {reader.format}, and {self.format} was asked for"
            return Poison(Reason.UNRESOLVABLE, detail, payload, frame.schema_id, frame.schema_guid)
        text = reader.render(frame)
        if isinstance(text, Poison):
            return Poison(text.reason, text.detail, payload, frame.schema_id, frame.schema_guid)
        return reader.prefix(key), text


def json_text(value: Any) -> Rendered:
    try:
        return orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError):
        pass  # Integers beyond 64 bits.
    try:
        return dumps(value).encode()
    except (EncodeError, UnicodeEncodeError) as error:
        return Poison(Reason.INVALID_VALUE, f"no JSON for this value: {error}", None)


def one_line(text: bytes) -> bytes:
    """Removes line feeds. In JSON, they are white space outside strings and are escaped inside strings."""
    if b"\n" in text or b"\r" in text:
        return text.replace(b"\n", b" ").replace(b"\r", b" ")
    return text


def _binary(payload: bytes, _: object) -> Rendered:
    return b'"%b"' % b2a_base64(payload, newline=False)


def _wrapped(plain: Render, prefix: bytes) -> Render:
    def render(payload: bytes, headers: Sequence[Header]) -> Rendered:
        rendered = plain(payload, headers)
        return rendered if isinstance(rendered, Poison) else b"%b%b}" % (prefix, rendered)

    return render


def _json(payload: bytes, _: object) -> Rendered:
    """Returns the original text if it is valid JSON. Numbers keep all digits."""
    try:
        orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        return Poison(Reason.CORRUPT, f"not JSON: {str(error)[:200]}", payload)
    return payload


def _string(payload: bytes, _: object) -> Rendered:
    try:
        return orjson.dumps(payload.decode())
    except UnicodeDecodeError as error:
        return Poison(Reason.CORRUPT, f"not UTF-8: {error.reason} at {error.start}", payload)


def _guess(payload: bytes) -> tuple[bytes, bytes]:
    if payload and payload[0] in _JSON_STARTS:
        try:
            orjson.loads(payload)
        except orjson.JSONDecodeError:
            pass
        else:
            return _JSON_PREFIX, payload
    try:
        return _STRING_PREFIX, orjson.dumps(payload.decode())
    except UnicodeDecodeError:
        return _BINARY_PREFIX, b'"%b"' % b2a_base64(payload, newline=False)


def _type_prefix(kind: ReadFormat, schema: SchemaKey | None = None) -> bytes:
    if schema is None:
        return b'{"type":"%b","data":' % kind.name.encode()
    if isinstance(schema, int):
        return b'{"type":"%b","schema_id":%d,"data":' % (kind.name.encode(), schema)
    return b'{"type":"%b","schema_guid":"%b","data":' % (kind.name.encode(), str(schema).encode())


_JSON_PREFIX: Final = _type_prefix(ReadFormat.JSON)
_STRING_PREFIX: Final = _type_prefix(ReadFormat.STRING)
_BINARY_PREFIX: Final = _type_prefix(ReadFormat.BINARY)
_PLAIN: Final[Mapping[ReadFormat, Render]] = {
    ReadFormat.BINARY: _binary,
    ReadFormat.JSON: _json,
    ReadFormat.STRING: _string,
}

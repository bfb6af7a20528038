"""Decode one payload at a time: for JSON Schema and Protobuf, and to explain bad Avro rows."""

from headgate.serdes import Decoded, InvalidSchema, Poison, ReadOptions, Reason
from headgate.serdes.avro.codec import AvroReader
from headgate.serdes.avro.column_size import DEFAULT_LIMITS, ColumnLimits
from headgate.serdes.avro.schema import Schema
from headgate.serdes.avro.schema import parse as parse_avro
from headgate.serdes.codec import BodyReader
from headgate.serdes.codecs import reader_of
from headgate.serdes.framing import Frame, unframe_record
from headgate.serdes.rules import read_advice
from headgate.spark_udfs.executor.writer_schemas import WriterSchemas
from headgate.spark_udfs.spec.reader import Reader

Headers = list[tuple[str, bytes | None]]


class RowReader:
    """Caches a body reader per writer schema. `avro` is the projected reader schema of Avro, with its limits."""

    def __init__(
        self, reader: Reader, writers: WriterSchemas, avro: Schema | None = None, columns: ColumnLimits = DEFAULT_LIMITS
    ) -> None:
        self._reader = reader
        self._writers = writers
        self._avro = avro
        self._options = ReadOptions(columns=columns)
        self._readers: dict[int, BodyReader | str] = {}

    def read(self, payload: bytes | None, headers: Headers, *, is_key: bool = False) -> Decoded | Poison:
        """Decode a payload. Raises only `NewVersionError` and `RegistryDownError`."""
        frame = unframe_record(payload, headers, is_key)
        if isinstance(frame, Poison):
            return frame
        number = self._writers.number_of_frame(frame)
        ready = number if isinstance(number, Reason) else self._reader_for(number)
        if isinstance(ready, Reason):
            return Poison(ready, self._message(ready, frame, number), payload, frame.schema_id, frame.schema_guid)
        if isinstance(ready, str):
            return Poison(Reason.UNRESOLVABLE, ready, payload, frame.schema_id, frame.schema_guid)
        value = ready.read(frame)
        if isinstance(value, Poison):
            return Poison(value.reason, value.detail, payload, frame.schema_id, frame.schema_guid)
        return Decoded(value, frame.schema_id, frame.schema_guid)

    def _reader_for(self, number: int) -> BodyReader | str | Reason:
        """The reader for payloads of a writer schema, or an error message or reason."""
        cached = self._readers.get(number)
        if cached is not None:
            return cached
        writer = self._writers.text(number)
        if isinstance(writer, Reason):
            return writer
        try:
            if writer.language != self._reader.language:
                made: BodyReader | str = f"{writer.language} payloads cannot be read as {self._reader.language}"
            elif self._avro is not None:
                made = AvroReader(parse_avro(writer.text, dict(writer.references)), self._avro, self._options)
            else:
                made = reader_of(writer.whole(), self._reader.schema.whole(), self._options)
        except InvalidSchema as error:
            made = str(error)
        self._readers[number] = made
        return made

    def _message(self, reason: Reason, frame: Frame, number: int | Reason) -> str:
        name = f"id {frame.schema_id}" if frame.schema_id is not None else f"guid {frame.schema_guid}"
        if reason is Reason.UNKNOWN_SCHEMA:
            return f"the registry does not know the schema {name}"
        if reason is Reason.RULES_NOT_EXECUTED and not isinstance(number, Reason):
            return read_advice(self._writers.rule_of(number) or "unknown")
        return f"the registry did not return the schema {name}; the payload may be valid"

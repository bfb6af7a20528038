"""One payload at a time: for the languages that have no columns, and to say what is wrong with a bad row."""

from headgate.serdes import Decoded, InvalidSchema, Poison, ReadOptions, Reason
from headgate.serdes.avro.codec import AvroReader
from headgate.serdes.avro.schema import Schema
from headgate.serdes.avro.schema import parse as parse_avro
from headgate.serdes.codec import BodyReader
from headgate.serdes.codecs import reader_of
from headgate.serdes.framing import Frame, unframe_record
from headgate.serdes.rules import read_advice
from headgate.spark_udfs.executor.writer_schemas import Writers
from headgate.spark_udfs.spec.reader import Reader

Headers = list[tuple[str, bytes | None]]


class RowReading:
    """Keeps a reader for each writer met. `avro` is the schema to read Avro as, with the fields chosen."""

    def __init__(self, reader: Reader, writers: Writers, avro: Schema | None = None) -> None:
        self._reader = reader
        self._writers = writers
        self._avro = avro
        self._ready: dict[int, BodyReader | str] = {}

    def read(self, payload: bytes | None, headers: Headers, *, is_key: bool = False) -> Decoded | Poison:
        """Raises nothing but what the writers' policy asks for."""
        frame = unframe_record(payload, headers, is_key)
        if isinstance(frame, Poison):
            return frame
        number = self._number_of(frame)
        ready = number if isinstance(number, Reason) else self._reader_for(number)
        if isinstance(ready, Reason):
            return Poison(ready, self._why(ready, frame, number), payload, frame.schema_id, frame.schema_guid)
        if isinstance(ready, str):
            return Poison(Reason.UNRESOLVABLE, ready, payload, frame.schema_id, frame.schema_guid)
        value = ready.read(frame)
        if isinstance(value, Poison):
            return Poison(value.reason, value.detail, payload, frame.schema_id, frame.schema_guid)
        return Decoded(value, frame.schema_id, frame.schema_guid)

    def _number_of(self, frame: Frame) -> int | Reason:
        if frame.schema_guid is not None:
            return self._writers.number_of(frame.schema_guid)
        assert frame.schema_id is not None
        return frame.schema_id

    def _reader_for(self, number: int) -> BodyReader | str | Reason:
        """The reader of this writer's payloads, or why there is none."""
        ready = self._ready.get(number)
        if ready is not None:
            return ready
        writer = self._writers.text(number)
        if isinstance(writer, Reason):
            return writer
        try:
            if writer.language != self._reader.language:
                made: BodyReader | str = f"{writer.language} cannot be read as {self._reader.language}"
            elif self._avro is not None:
                made = AvroReader(parse_avro(writer.text, dict(writer.references)), self._avro, ReadOptions())
            else:
                made = reader_of(writer.whole(), self._reader.schema.whole(), ReadOptions())
        except InvalidSchema as error:
            made = str(error)
        self._ready[number] = made
        return made

    def _why(self, reason: Reason, frame: Frame, number: int | Reason) -> str:
        name = f"id {frame.schema_id}" if frame.schema_id is not None else f"guid {frame.schema_guid}"
        if reason is Reason.UNKNOWN_SCHEMA:
            return f"the registry knows no schema of {name}"
        if reason is Reason.RULES_NOT_EXECUTED and not isinstance(number, Reason):
            return read_advice(self._writers.rule_of(number) or "unknown")
        return f"the registry could not be asked for the schema of {name}; the payload may be fine"

"""Avro bodies of framed payloads, including one exception of the wire format.

If the whole schema is of type `bytes`, Confluent's serializers write the bytes without a length.
"""

from headgate.serdes.avro.binary import read_long, write_long
from headgate.serdes.avro.decoder import Decoder
from headgate.serdes.avro.encoder import Encoder
from headgate.serdes.avro.schema import Enum, Fixed, Primitive, Record, Schema
from headgate.serdes.codec import Body, ReadOptions, WriteOptions
from headgate.serdes.framing import Frame
from headgate.serdes.outcome import Poison


def is_raw(schema: Schema) -> bool:
    return isinstance(schema, Primitive) and schema.kind == "bytes"


class AvroWriter:
    __slots__ = ("_encoder", "_raw", "record_name")

    def __init__(self, schema: Schema, options: WriteOptions) -> None:
        self._encoder = Encoder(schema, ignore_unknown_fields=options.ignore_unknown_fields)
        self._raw = is_raw(schema)
        # The specification names a primitive after its type, and so do Confluent's serializers.
        self.record_name: str | None = None
        if isinstance(schema, (Record, Enum, Fixed)):
            self.record_name = schema.name
        elif isinstance(schema, Primitive):
            self.record_name = schema.kind

    def write(self, value: object) -> Body:
        content = self._encoder.encode(value)
        if self._raw:
            content = content[read_long(content, 0)[1] :]
        return Body(content)


class AvroReader:
    __slots__ = ("_decoder", "_raw")

    def __init__(self, writer: Schema, reader: Schema | None, options: ReadOptions) -> None:
        self._decoder = Decoder(writer, reader, tag_unions=options.tag_unions, columns=options.columns)
        self._raw = is_raw(writer)

    def read(self, frame: Frame) -> object | Poison:
        if not self._raw:
            return self._decoder.decode(frame.body)
        length = bytearray()
        write_long(length, len(frame.body))
        return self._decoder.decode(bytes(length) + frame.body)

"""Framed payloads to Spark's columns, in an executor: the one step that the functions, the frames and the source share.

A `Decoding` is plain data that travels with the plan. Each Python worker makes one decoder of it and keeps it: writers'
schemas that the plan did not bring are asked for once per worker, and what the registry did not know is remembered too.
Avro goes through `serdes.columnar`; JSON Schema and Protobuf row by row (`spark_udfs.row_decoding`).
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from pyarrow import lib as pa

from serdes.avro import Schema, parse
from serdes.columnar import BatchTooLarge, ColumnarDecoder, project
from serdes.columnar.layout import RECURSION_MAX_DEFAULT
from serdes.outcome import Reason
from spark_udfs.policy import OnNewVersion, OnPoison
from spark_udfs.reader_choice import Reader
from spark_udfs.registry_options import RegistryOptions
from spark_udfs.types import spark_arrow_type, to_spark
from spark_udfs.writers import Writers

DECODERS_MAX = 32
"""Decoders that one Python worker keeps: as many queries can share it."""

PIECE_BYTES_MAX = 8 * 1024 * 1024
"""Payload bytes decoded at once. A null in a list takes one byte, and a slot in every column below it: what is decoded
can be a hundred times larger."""

REASON_NAMES = pa.array([None, *(reason.name for reason in sorted(Reason))], pa.string())
"""By the number of the reason; null for 0."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Row for row: the value as Spark takes it, the name of the reason (null where good), the schema id if any."""

    values: pa.Array
    reasons: pa.Array
    schema_ids: pa.Array


@dataclass(frozen=True, slots=True)
class Decoding:
    """Picklable and hashable."""

    reader: Reader
    registry: RegistryOptions
    on_poison: OnPoison = OnPoison.DEAD_LETTER
    on_new_version: OnNewVersion = OnNewVersion.KEEP
    recursion_max: int = RECURSION_MAX_DEFAULT

    def decoder(self) -> "Decoder":
        """The decoder of this process; the same for an equal spec."""
        return _decoder(self)

    def decode(self, payloads: pa.Array | pa.ChunkedArray) -> Columns:
        return self.decoder().decode(payloads)


class Decoder(Protocol):
    @property
    def type(self) -> pa.DataType:
        """The Arrow type of the values, as Spark takes it."""
        ...

    def decode(self, payloads: pa.Array | pa.ChunkedArray) -> Columns:
        """Raises nothing for any payload."""
        ...


@lru_cache(maxsize=DECODERS_MAX)
def _decoder(spec: Decoding) -> Decoder:
    return AvroColumns(spec)


def reader_schema(reader: Reader) -> Schema:
    """The Avro schema of the columns. Raises `InvalidSchema` or `UnknownField`."""
    schema = parse(reader.schema.text, dict(reader.schema.references))
    return schema if reader.fields is None else project(schema, reader.fields)


class AvroColumns:
    def __init__(self, spec: Decoding) -> None:
        writers = Writers(spec.reader, spec.registry)
        self._decoder = ColumnarDecoder(reader_schema(spec.reader), writers, recursion_max=spec.recursion_max)
        self.type = spark_arrow_type(self._decoder.type)

    def decode(self, payloads: pa.Array | pa.ChunkedArray) -> Columns:
        try:
            batch = self._decoder.decode(payloads)
        except BatchTooLarge:
            half = len(payloads) // 2
            return joined([self.decode(payloads.slice(0, half)), self.decode(payloads.slice(half))])
        return Columns(to_spark(batch.values), REASON_NAMES.take(batch.reasons), batch.schema_ids)


def joined(parts: list[Columns]) -> Columns:
    return Columns(
        pa.concat_arrays([part.values for part in parts]),
        pa.concat_arrays([part.reasons for part in parts]),
        pa.concat_arrays([part.schema_ids for part in parts]),
    )

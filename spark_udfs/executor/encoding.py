"""Columns to registered Avro payloads: `to_registry_avro`.

The schema is registered or looked up on the driver, where the registry refuses what is not compatible; executors only
encode, through `serdes.columnar`, and never ask the registry. A row that the schema cannot hold is treated as the mode
says; a column that it cannot hold fails the query, naming the field.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from pyarrow import lib as pa

from headgate.serdes import EncodeError, Poison, PoisonError, Reason
from headgate.serdes.avro import Schema, parse
from headgate.serdes.avro.codec import AvroWriter
from headgate.serdes.codec import WriteOptions
from headgate.serdes.columnar import (
    BatchTooLarge,
    ColumnarDecoder,
    ColumnarEncoder,
    ColumnarError,
    FixedSchemas,
    NotEncodable,
)
from headgate.spark_udfs.executor.decoding import REASON_SENTENCES, poison_rows_of, reason_names
from headgate.spark_udfs.executor.spark_types import cut_times
from headgate.spark_udfs.spec.policy import OnPoison
from headgate.spark_udfs.spec.reader import SchemaText

if TYPE_CHECKING:
    pass

ENCODERS_MAX = 32


class EncodingError(ValueError):
    """The columns cannot be written with the schema, or the registry does not take it; the text says why."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """Picklable and hashable."""

    schema: SchemaText
    schema_id: int
    on_poison: OnPoison = OnPoison.FAIL

    def encode(self, values: pa.Array) -> "Iterator[tuple[pa.Array, pa.Array]]":
        """Payloads and reasons of runs of rows, in order. Raises `EncodingError`; in the mode FAIL `PoisonError`."""
        for start, payloads, reasons in _encoder(self).encode(values):
            if self.on_poison is OnPoison.FAIL:
                # A null row is no fault of its own: it becomes a null payload, which Kafka calls a tombstone.
                bad = [row for row in poison_rows_of(reasons) if reasons[row].as_py() != Reason.NULL.name]
                if bad:
                    raise PoisonError(self._poison(values[start + bad[0]].as_py(), reasons[bad[0]].as_py()))
            yield payloads, reasons

    def _poison(self, value: object, reason: str) -> Poison:
        schema = parse(self.schema.text, dict(self.schema.references))
        detail = REASON_SENTENCES[reason]
        try:
            AvroWriter(schema, WriteOptions()).write(_plain(value))
        except EncodeError as error:
            detail = str(error)
        return Poison(Reason[reason], f"{detail} (schema id {self.schema_id})", None, self.schema_id)


@lru_cache(maxsize=ENCODERS_MAX)
def _encoder(spec: Encoding) -> "_Encoder":
    return _Encoder(parse(spec.schema.text, dict(spec.schema.references)), spec.schema_id)


class _Encoder:
    """Kept per process."""

    def __init__(self, schema: Schema, schema_id: int) -> None:
        self._encoder = ColumnarEncoder(schema, schema_id)
        self._type = ColumnarDecoder(schema, FixedSchemas({})).type
        self._fits: set[pa.DataType] = set()

    def encode(self, values: pa.Array) -> "Iterator[tuple[int, pa.Array, pa.Array]]":
        self._check(values)
        values = cut_times(values, self._type)
        work = [(0, values)]
        while work:
            start, some = work.pop()
            try:
                encoded = self._encoder.encode(some)
            except (NotEncodable, BatchTooLarge):
                # The types fit, so one row or another does not: Arrow casts all of a column or nothing.
                half = len(some) // 2
                if half == 0:
                    yield start, pa.nulls(1, pa.binary()), pa.array([Reason.INVALID_VALUE.name])
                else:
                    work.append((start + half, some.slice(half)))
                    work.append((start, some.slice(0, half)))
            else:
                yield start, encoded.payloads, reason_names().take(encoded.reasons)

    def _check(self, values: pa.Array) -> None:
        """Columns of the wrong type are the query's fault and not a row's; they show on no rows at all."""
        if values.type in self._fits:
            return
        try:
            self._encoder.encode(cut_times(values.slice(0, 0), self._type))
        except ColumnarError as error:
            raise EncodingError(f"the columns are not of the schema: {error}") from error
        self._fits.add(values.type)


def _plain(value: object) -> object:
    """As `serdes` takes it: a map comes out of Arrow as pairs."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(entry, tuple) for entry in value):
            return {name: _plain(inner) for name, inner in value}
        return [_plain(entry) for entry in value]
    return value
